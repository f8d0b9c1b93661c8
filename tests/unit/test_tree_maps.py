"""Sets of rows as the files of scalar indices hold them."""

from __future__ import annotations

import numpy as np
import pytest
from pyroaring import BitMap

from lance_core.errors import CorruptFileError
from lance_core.index.scalar.fragment_rows import every_offset
from lance_core.index.scalar.tree_map import decode_tree_map, encode_tree_map

EXAMPLE = bytes.fromhex(
    "0200000000000000140000003a30000001000000000001001000000007006b00"
    "01000000120000003a30000001000000000000001000000005 00".replace(" ", "")
)
"""The example of the scalar index page, section 1.2."""


def test_the_example_is_read_and_written() -> None:
    rows = {0: BitMap([7, 107]), 1: BitMap([5])}
    assert decode_tree_map(EXAMPLE, "p") == rows
    assert encode_tree_map(rows) == EXAMPLE


def test_an_empty_set_has_four_bytes() -> None:
    assert decode_tree_map(bytes(4), "p") == {}
    assert encode_tree_map({}) == bytes(4)


def test_an_entry_without_a_bitmap_is_a_whole_fragment() -> None:
    data = encode_tree_map({3: every_offset()})
    assert data == bytes([1, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0])
    assert decode_tree_map(data, "p")[3] is every_offset()


def test_runs_and_dense_parts_are_read() -> None:
    rows = {0: BitMap(range(100_000)), 9: BitMap(range(0, 200_000, 3))}
    rows[0].run_optimize()
    assert decode_tree_map(encode_tree_map(rows), "p") == rows


def test_empty_bitmaps_are_left_out() -> None:
    assert decode_tree_map(encode_tree_map({0: BitMap(), 1: BitMap([2])}), "p") == {1: BitMap([2])}


@pytest.mark.parametrize("length", range(len(EXAMPLE)))
def test_what_is_cut_off_is_damage(length: int) -> None:
    with pytest.raises(CorruptFileError):
        decode_tree_map(EXAMPLE[:length], "p")


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xff\xff\xff",
        EXAMPLE + b"\0",
        bytes([1, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255]),
        bytes([1, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 1, 2, 3, 4]),
        bytes([2, 0, 0, 0]) + 2 * bytes(8),
    ],
)
def test_what_is_no_set_is_damage(data: bytes) -> None:
    with pytest.raises(CorruptFileError):
        decode_tree_map(data, "p")


def test_no_flipped_byte_does_more_than_change_the_set() -> None:
    data = encode_tree_map({0: BitMap(range(0, 9000, 2)), 2: BitMap(range(50))})
    generator = np.random.default_rng(1)
    for _ in range(300):
        damaged = bytearray(data)
        damaged[generator.integers(len(data))] = generator.integers(256)
        try:
            decode_tree_map(bytes(damaged), "p")
        except CorruptFileError:
            continue
