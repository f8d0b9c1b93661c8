from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from pyroaring import BitMap

from lance_core.errors import CorruptFileError
from lance_core.row_set import (
    bitmap_from_bytes,
    bitmap_of,
    bitmap_offsets,
    bitmaps_by_fragment,
    clear_ordinals,
    clear_range,
    contains,
    count,
    empty_words,
    full_words,
    set_range,
    to_ordinals,
    words_of,
    words_of_bitmap,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray


def ordinals(*members: int) -> NDArray[np.uint32]:
    return np.array(members, np.uint32)


def test_a_full_set_has_every_bit_below_its_size_and_none_above() -> None:
    words = full_words(70)
    assert words.shape == (2,)
    assert count(words) == 70
    assert words[1] == 0b111111


def test_the_empty_set_over_nothing_takes_no_word() -> None:
    assert empty_words(0).shape == (0,)
    assert count(full_words(0)) == 0


def test_a_repeated_ordinal_counts_once() -> None:
    assert count(words_of(ordinals(3, 3, 64), 65)) == 2


def test_clearing_an_ordinal_that_is_absent_changes_nothing() -> None:
    words = words_of(ordinals(1), 10)
    clear_ordinals(words, ordinals(2))
    assert to_ordinals(words).tolist() == [1]


def test_membership_is_answered_per_ordinal() -> None:
    words = words_of(ordinals(0, 63, 64), 128)
    assert contains(words, ordinals(0, 1, 63, 64, 127)).tolist() == [True, False, True, True, False]


def test_an_empty_range_changes_nothing() -> None:
    words = empty_words(64)
    set_range(words, 5, 5)
    clear_range(words, 9, 3)
    assert count(words) == 0


@pytest.mark.parametrize("members", [[], [0], [5, 70_000, 4_000_000_000], range(10_000)])
def test_a_serialized_bitmap_comes_back(members: Iterable[int]) -> None:
    bitmap = BitMap(members)
    bitmap.run_optimize()
    assert bitmap_from_bytes(bitmap.serialize(), "x") == bitmap


def test_the_worked_example_of_the_format_is_read() -> None:
    data = bytes.fromhex("3b300000010000630001000000 6300")
    assert bitmap_from_bytes(data, "x") == BitMap(range(100))


@pytest.mark.parametrize("data", [b"", b"\x3a\x30", b"\xff" * 40], ids=["empty", "cut", "foreign"])
def test_bytes_that_are_no_bitmap_are_a_corrupt_file(data: bytes) -> None:
    with pytest.raises(CorruptFileError, match=r"_deletions/0-1-2\.bin"):
        bitmap_from_bytes(data, "_deletions/0-1-2.bin")


def test_a_bitmap_whose_header_lies_about_its_cardinality_is_a_corrupt_file() -> None:
    data = bytearray(BitMap(range(0, 40_000, 2)).serialize())
    data[16:] = b"\xff" * (len(data) - 16)
    with pytest.raises(CorruptFileError):
        bitmap_from_bytes(bytes(data), "x")


def test_bitmap_offsets_are_ascending() -> None:
    assert bitmap_offsets(BitMap([70_000, 2, 9])).tolist() == [2, 9, 70_000]


def test_a_bitmap_is_made_of_offsets_in_any_order() -> None:
    assert bitmap_of(ordinals(70_000, 3, 3, 0)) == BitMap([0, 3, 70_000])
    assert bitmap_of(ordinals()) == BitMap()


@pytest.mark.parametrize("count_of_rows", [5_000, 60_000, 300_000])
def test_a_bitmap_is_made_of_many_offsets(count_of_rows: int) -> None:
    generator = np.random.default_rng(count_of_rows)
    offsets = generator.permutation(310_000).astype(np.uint32)[:count_of_rows]
    offsets = offsets[(offsets < 70_000) | (offsets > 200_000) | (offsets % 40 == 0)]
    assert bitmap_of(offsets) == BitMap(offsets.tolist())


def test_addresses_are_parted_by_fragment() -> None:
    addresses = np.array([(7 << 32) | 1, 5, (7 << 32) | 0, 2, 5], np.uint64)
    found = bitmaps_by_fragment(addresses)
    assert found == {0: BitMap([2, 5]), 7: BitMap([0, 1])}
    assert list(found) == [0, 7]
    assert bitmaps_by_fragment(addresses[:0]) == {}


@pytest.mark.parametrize("is_optimized", [False, True])
@pytest.mark.parametrize(
    ("members", "num_bits"),
    [
        ([], 0),
        ([], 70),
        ([0, 69], 70),
        (range(5, 9_000_000, 7), 9_000_000),
        (range(9_000_001), 9_000_001),
        ([*range(100_000), 131_072, 131_073], 131_074),
        ([8_388_608], 1 << 24),
    ],
    ids=["nothing", "none", "few", "many", "all", "some of each kind", "one far away"],
)
def test_a_bitmap_is_made_dense(
    members: Iterable[int], num_bits: int, *, is_optimized: bool
) -> None:
    bitmap = BitMap(members)
    if is_optimized:
        bitmap.run_optimize()
    words = words_of_bitmap(bitmap, num_bits)
    assert words.shape == ((num_bits + 63) // 64,)
    assert to_ordinals(words).tolist() == list(members)
