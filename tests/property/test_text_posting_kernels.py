"""Blocks of postings and positions, laid out by plain Python, and what kernels read of them."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lance_core.kernels.memory import address_of
from lance_core.kernels.text_bits import TOO_SHORT, varint_at
from lance_core.kernels.text_positions import read_position_lists, read_position_stream
from lance_core.kernels.text_postings import ALL_FIT, read_postings
from tests.text_blocks import bits_of, differences, large_block, packed, small_block, tail, varint

NUM_DOCS = 1 << 20
SEEDS = st.integers(0, 2**32 - 1)


def posting_list(docs: list[int], counts: list[int], size: int, *, is_varint: bool) -> list[bytes]:
    blocks = []
    for start in range(0, len(docs), size):
        some = slice(start, start + size)
        if len(docs[some]) < size:
            blocks.append(
                tail(docs[some], counts[some], has_score=size == 128, is_varint=is_varint)
            )
        elif size == 128:
            blocks.append(small_block(docs[some], counts[some]))
        else:
            blocks.append(large_block(docs[some], counts[some], 2))
    return blocks


def laid_out(parts: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    data = np.frombuffer(b"".join(parts) + b"\0", np.uint8).copy()
    return data, np.cumsum([0, *map(len, parts)])


def random_postings(seed: int, num: int) -> tuple[list[int], list[int]]:
    rng = np.random.default_rng(seed)
    most = int(rng.choice([num, 2 * num, NUM_DOCS]))
    docs = np.sort(rng.choice(most, num, replace=False)).tolist()
    counts = np.ones(num, np.int64)
    counts[rng.random(num) < 0.02] = rng.integers(1, 1 << int(rng.integers(1, 20)))
    return docs, counts.tolist()


def read(
    blocks: list[bytes], num: int, size: int, *, is_varint: bool, num_docs: int = NUM_DOCS
) -> tuple[int, list[int], list[int]]:
    data, offsets = laid_out(blocks)
    docs, counts = np.zeros(num, np.uint32), np.zeros(num, np.uint32)
    bad = read_postings(address_of(data), offsets, size, is_varint, num_docs, docs, counts)
    return bad, docs.tolist(), counts.tolist()


@pytest.mark.parametrize("size", [128, 256])
@pytest.mark.parametrize("is_varint", [False, True])
@given(seed=SEEDS, num=st.integers(1, 700) | st.sampled_from([128, 256, 512]))
def test_postings_are_read_as_they_were_laid_out(
    size: int, is_varint: bool, seed: int, num: int
) -> None:
    docs, counts = random_postings(seed, num)
    blocks = posting_list(docs, counts, size, is_varint=is_varint)
    assert read(blocks, num, size, is_varint=is_varint) == (ALL_FIT, docs, counts)
    is_too_far = read(blocks, num, size, is_varint=is_varint, num_docs=docs[-1])
    assert is_too_far[0] == len(blocks) - 1


@pytest.mark.parametrize("width", range(33))
def test_numbers_of_every_width_are_unpacked(width: int) -> None:
    rng = np.random.default_rng(width)
    counts = rng.integers(0, 1 << width, 128).tolist()
    counts[5] = (1 << width) - 1
    docs = list(range(128))
    assert read([small_block(docs, counts)], 128, 128, is_varint=True) == (ALL_FIT, docs, counts)
    twice = counts + counts
    block = large_block(list(range(256)), twice, width)
    assert read([block], 256, 256, is_varint=True)[2] == twice


@pytest.mark.parametrize("size", [128, 256])
@given(seed=SEEDS)
def test_damaged_blocks_are_told_or_give_documents_that_exist(size: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    docs, counts = random_postings(seed, size + 40)
    blocks = [bytearray(each) for each in posting_list(docs, counts, size, is_varint=True)]
    block = blocks[int(rng.integers(2))]
    for _ in range(int(rng.integers(1, 4))):
        block[int(rng.integers(len(block)))] = int(rng.integers(256))
    del block[len(block) - int(rng.integers(2)) :]
    bad, found, _ = read([bytes(each) for each in blocks], size + 40, size, is_varint=True)
    if bad == ALL_FIT:
        assert max(found) < NUM_DOCS
        assert found == sorted(set(found))


def test_documents_that_do_not_ascend_are_told() -> None:
    blocks = posting_list(list(range(300)), [1] * 300, 128, is_varint=True)
    assert read([blocks[0], blocks[0], blocks[2]], 300, 128, is_varint=True)[0] == 1
    twice = struct.pack("<f", 1) + bytes([3, 0, 1, 1])
    assert read([twice], 2, 128, is_varint=True)[0] == 0


@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize("size", [128, 256])
@given(seed=SEEDS, num=st.integers(1, 300))
def test_positions_of_a_stream_are_read(size: int, is_packed: bool, seed: int, num: int) -> None:
    rng = np.random.default_rng(seed)
    lists = [
        np.sort(rng.choice(5000, int(rng.integers(1, 8)), replace=False)).tolist()
        for _ in range(num)
    ]
    lists[num // 2] = list(range(300))
    streams = []
    for start in range(0, num, size):
        own = [
            value
            for each in lists[start : start + size]
            for value in [each[0], *differences(each)[1:]]
        ]
        full = len(own) // 128 * 128 if is_packed else 0
        groups = [own[at : at + 128] for at in range(0, full, 128)]
        stream = b"".join(
            bytes([bits_of(each)]) + packed(each, bits_of(each), 4) for each in groups
        )
        streams.append(stream + b"".join(map(varint, own[full:])))
    data, bounds = laid_out(streams)
    starts = np.cumsum([0, *map(len, lists)])
    out = np.zeros(starts[-1], np.uint32)
    address = address_of(data)
    assert read_position_stream(address, bounds, size, is_packed, starts, out) == ALL_FIT
    assert out.tolist() == [value for each in lists for value in each]
    bounds[-1] -= 1
    last = len(streams) - 1
    assert read_position_stream(address, bounds, size, is_packed, starts, out) == last


@given(seed=SEEDS)
def test_positions_in_parts_are_read(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lists = [
        np.sort(rng.choice(5000, int(size), replace=False)).tolist()
        for size in rng.choice([1, 3, 127, 128, 129, 256, 300], 6)
    ]
    parts: list[bytes] = []
    firsts = [0]
    for each in lists:
        parts.append(struct.pack("<I", len(each)))
        full = len(each) // 128 * 128
        for at in range(0, full, 128):
            own = differences(each[at : at + 128])
            width = bits_of(own)
            parts.append(struct.pack("<IB", each[at], width) + packed(own, width, 4))
        if full < len(each):
            parts.append(struct.pack(f"<{len(each) - full}I", *each[full:]))
        firsts.append(len(parts))
    data, offsets = laid_out(parts)
    starts = np.cumsum([0, *map(len, lists)])
    out = np.zeros(starts[-1], np.uint32)
    bounds = np.array(firsts)
    assert read_position_lists(address_of(data), offsets, bounds, starts, out) == ALL_FIT
    assert out.tolist() == [value for each in lists for value in each]
    bounds[1] += 1
    assert read_position_lists(address_of(data), offsets, bounds, starts, out) == 0


def test_a_varint_has_32_bits_and_ends() -> None:
    for number in (0, 127, 128, 2**32 - 1):
        data = np.frombuffer(varint(number), np.uint8).copy()
        assert varint_at(data, 0, len(data)) == (number, len(data))
        assert varint_at(data, 0, len(data) - 1)[1] == TOO_SHORT
    data = np.frombuffer(varint(2**32), np.uint8).copy()
    assert varint_at(data, 0, len(data))[1] == TOO_SHORT
