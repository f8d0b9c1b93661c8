from __future__ import annotations

import struct

import numpy as np
import xxhash
from hypothesis import given, strategies as st

from lance_core.kernels.bloom import BLOCK_BYTES, may_hold_any
from lance_core.kernels.memory import address_of

SALTS = bytes.fromhex("47b6137b 44974d91 8824ad5b a2b7289d 705495c7 2df1424b 9efc4947 5c6bfb31")


def bits_of(value: bytes, num_blocks: int) -> list[int]:
    """Return which bits of a filter a value sets, as the format says, in whole numbers."""
    number = xxhash.xxh64_intdigest(value)
    block = ((number >> 32) * num_blocks) >> 32
    low = number & 0xFFFF_FFFF
    return [
        256 * block + 32 * word + ((low * salt) % 2**32 >> 27)
        for word, salt in enumerate(struct.unpack(">8I", SALTS))
    ]


def filter_of(values: list[bytes], num_blocks: int) -> np.ndarray:
    bits = np.zeros(256 * num_blocks, np.bool_)
    for value in values:
        bits[bits_of(value, num_blocks)] = True
    return np.packbits(bits, bitorder="little")


def hashes_of(values: list[bytes]) -> np.ndarray:
    return np.array([xxhash.xxh64_intdigest(value) for value in values], np.uint64)


values = st.lists(st.binary(max_size=12), max_size=12)


@given(
    held=st.lists(st.tuples(st.integers(1, 7), values), max_size=6),
    asked=values,
)
def test_a_filter_may_hold_what_has_all_its_bits_set(
    held: list[tuple[int, list[bytes]]], asked: list[bytes]
) -> None:
    filters = [filter_of(members, num_blocks) for num_blocks, members in held]
    found = np.empty(len(filters), np.bool_)
    addresses = np.array([address_of(each) for each in filters], np.int64)
    lengths = np.array([each.nbytes for each in filters], np.int64)
    may_hold_any(addresses, lengths, hashes_of(asked), found)
    sets = [set(np.flatnonzero(np.unpackbits(f, bitorder="little")).tolist()) for f in filters]
    expected = [
        any(bits.issuperset(bits_of(value, num_blocks)) for value in asked)
        for bits, (num_blocks, _) in zip(sets, held, strict=True)
    ]
    assert found.tolist() == expected


def test_the_bits_of_known_values_are_found_where_the_format_puts_them() -> None:
    assert xxhash.xxh64_intdigest(b"c3") == 0x515B7F5CCB83DAA2
    assert [bit - 325 * 256 for bit in bits_of(b"c3", 1024)] == [
        32 * word + bit for word, bit in enumerate([29, 29, 8, 6, 17, 29, 7, 26])
    ]
    number = struct.pack("<q", 984)
    assert xxhash.xxh64_intdigest(number) == 0x5562A99257543A4A
    assert bits_of(number, 1024)[0] // 256 == 341
    one = filter_of([number], 1024)
    found = np.empty(1, np.bool_)
    place = np.array([address_of(one)], np.int64)
    assert one.nbytes == 1024 * BLOCK_BYTES
    may_hold_any(place, np.array([one.nbytes], np.int64), hashes_of([number]), found)
    assert found.tolist() == [True]
    may_hold_any(place, np.array([one.nbytes], np.int64), hashes_of([b"c3"]), found)
    assert found.tolist() == [False]
