"""Unpacking undoes packing, for every width of every element type."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from lance_core.kernels.bitpacking import (
    BLOCK_ROWS,
    DONE,
    UNSIGNED,
    unpack_block,
    unpack_inline,
    unpack_one,
    unpack_out_of_line,
    unpack_selected,
)
from lance_core.kernels.memory import address_of

Words = NDArray[np.unsignedinteger]
ORDER = [0, 4, 2, 6, 1, 5, 3, 7]


def positions(bits: int) -> NDArray[np.int64]:
    """Return, by row and lane of the packed form, the position of the value there."""
    lanes = BLOCK_ROWS // bits
    rows = [ORDER[row // 8] * 16 + (row % 8) * 128 for row in range(bits)]
    return np.array(rows)[:, None] + np.arange(lanes)


def pack(values: Words, width: int) -> Words:
    """Pack 1,024 values by the rule of the format, in Python integers."""
    bits = values.dtype.itemsize * 8
    by_lane = values.astype(object)[positions(bits)]
    stream = sum(
        (by_lane[row] << (row * width) for row in range(bits)),
        np.zeros(BLOCK_ROWS // bits, object),
    )
    words = [stream >> (word * bits) & (2**bits - 1) for word in range(width)]
    return np.array(words, object).reshape(-1).astype(values.dtype)


def random_values(bits: int, width: int, seed: int, count: int = BLOCK_ROWS) -> Words:
    raw = np.random.default_rng(seed).integers(0, 2**64, count, dtype=np.uint64)
    return (raw >> np.uint64(64 - width) if width > 0 else raw * 0).astype(UNSIGNED[bits])


@pytest.mark.parametrize("bits", UNSIGNED)
def test_unpacking_undoes_packing_for_every_width(bits: int) -> None:
    for width in range(bits + 1):
        values = random_values(bits, width, seed=width)
        packed = pack(values, width)
        out = np.empty(BLOCK_ROWS, UNSIGNED[bits])
        unpack_block(address_of(packed), width, out)
        np.testing.assert_array_equal(out, values)


@pytest.mark.parametrize("bits", UNSIGNED)
def test_unpacking_writes_nothing_beside_the_values(bits: int) -> None:
    for width in range(bits + 1):
        packed = pack(random_values(bits, width, seed=width), width)
        beside = 5
        out = np.full(BLOCK_ROWS + 2 * beside, 77, UNSIGNED[bits])
        unpack_block(address_of(packed), width, out[beside:-beside])
        assert set(out[:beside].tolist() + out[-beside:].tolist()) == {77}


@given(bits=st.sampled_from(list(UNSIGNED)), seed=st.integers(0, 99), data=st.data())
def test_one_value_is_the_same_as_of_the_whole_block(
    bits: int, seed: int, data: st.DataObject
) -> None:
    width = data.draw(st.integers(0, bits))
    position = data.draw(st.integers(0, BLOCK_ROWS - 1))
    values = random_values(bits, width, seed)
    packed = pack(values, width)
    assert unpack_one(address_of(packed), width, position, values) == values[position]


def test_the_vectors_of_the_format_page_hold() -> None:
    packed = pack((np.arange(BLOCK_ROWS) % 8).astype(np.uint32), 3)
    assert packed[:4].tolist() == [0, 0x49249249, 0x92492492, 0xDB6DB6DB]
    wide = pack(np.arange(BLOCK_ROWS).astype(np.uint16), 10)
    assert wide[:4].tolist() == [0x0000, 0x0401, 0x0802, 0x0C03]
    assert wide[64:67].tolist() == [0x1002, 0x5012, 0x9022]


def inline(values: Words, width: int) -> Words:
    return np.concatenate([np.array([width], values.dtype), pack(values, width)])


def one_block(block: Words) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return np.array([address_of(block)]), np.array([block.nbytes])


@given(count=st.integers(0, BLOCK_ROWS), width=st.integers(0, 16))
def test_an_inline_block_says_its_width_itself(count: int, width: int) -> None:
    values = random_values(16, width, seed=count)
    block = inline(values, width)
    out = np.empty(count, np.uint16)
    assert unpack_inline(*one_block(block), np.array([count]), out) == DONE
    np.testing.assert_array_equal(out, values[:count])


@given(width=st.integers(0, 16), rows=st.lists(st.integers(0, BLOCK_ROWS - 1), max_size=5))
def test_selected_values_are_those_of_the_whole_block(width: int, rows: list[int]) -> None:
    values = random_values(16, width, seed=width)
    block = inline(values, width)
    out = np.empty(len(rows), np.uint16)
    home = np.zeros(len(rows), np.int64)
    assert unpack_selected(*one_block(block), home, np.array(rows, np.int64), out) == DONE
    np.testing.assert_array_equal(out, values[rows])


@given(width=st.integers(1, 16), missing=st.integers(1, 8))
def test_an_inline_block_that_is_cut_off_is_found(width: int, missing: int) -> None:
    block = inline(random_values(16, width, seed=1), width)
    addresses, sizes = one_block(block)
    out = np.empty(BLOCK_ROWS, np.uint16)
    assert unpack_inline(addresses, sizes - missing, np.array([BLOCK_ROWS]), out) == 0


def test_a_width_above_the_type_is_found() -> None:
    block = np.full(4000, 17, np.uint16)
    out = np.empty(1, np.uint16)
    assert unpack_inline(*one_block(block), np.array([1]), out) == 0


@given(
    count=st.integers(0, 3000),
    width=st.integers(0, 15),
    is_tail_raw=st.booleans(),
)
def test_a_tail_may_be_raw_or_packed(count: int, width: int, is_tail_raw: bool) -> None:
    values = random_values(16, width, seed=count, count=count)
    full = count // BLOCK_ROWS * BLOCK_ROWS
    parts = [pack(values[i : i + BLOCK_ROWS], width) for i in range(0, full, BLOCK_ROWS)]
    tail = values[full:]
    if is_tail_raw:
        parts.append(tail)
    elif len(tail) > 0:
        parts.append(pack(np.pad(tail, (0, BLOCK_ROWS - len(tail))), width))
    block = np.concatenate([*parts, np.empty(0, np.uint16)])
    # a packed tail as long as a raw one is read as raw: writers never pack then
    if not is_tail_raw and len(tail) * 16 == BLOCK_ROWS * width:
        return
    out = np.empty(count, np.uint16)
    assert unpack_out_of_line(*one_block(block), np.array([count]), width, out) == DONE
    np.testing.assert_array_equal(out, values)
