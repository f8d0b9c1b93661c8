from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, strategies as st
from pyroaring import BitMap

from lance_core.scan.live_rows import LiveRows, RowSelection

SIZE = 1000
deletions = st.sets(st.integers(0, SIZE - 1)) | st.builds(
    lambda start, end, kept: set(range(start, end)) - kept,
    st.integers(0, SIZE),
    st.integers(0, SIZE),
    st.sets(st.integers(0, SIZE - 1)),
)
bounds = st.integers(0, SIZE + 5)


def live_offsets(deleted: set[int]) -> list[int]:
    return [row for row in range(SIZE) if row not in deleted]


def rows_read(selection: RowSelection) -> list[int]:
    return [row for start, end in selection.ranges for row in range(start, end)]


@given(deletions)
def test_the_number_of_live_rows_is_what_deletions_leave(deleted: set[int]) -> None:
    assert len(LiveRows(SIZE, BitMap(deleted))) == SIZE - len(deleted)


@given(deletions, bounds, bounds)
def test_a_selection_is_a_slice_of_the_live_rows(deleted: set[int], start: int, end: int) -> None:
    selection = LiveRows(SIZE, BitMap(deleted)).select(start, end)
    assert selection.row_offsets.tolist() == live_offsets(deleted)[start:end]


@given(deletions, bounds, bounds)
def test_what_is_kept_of_the_ranges_read_is_the_selection(
    deleted: set[int], start: int, end: int
) -> None:
    selection = LiveRows(SIZE, BitMap(deleted)).select(start, end)
    read = np.array(rows_read(selection), np.int64)
    kept = read if selection.kept is None else read[selection.kept]
    np.testing.assert_array_equal(kept, selection.row_offsets)


@given(deletions, bounds, bounds)
def test_ranges_ascend_and_leave_out_long_stretches_of_deleted_rows(
    deleted: set[int], start: int, end: int
) -> None:
    ranges = LiveRows(SIZE, BitMap(deleted)).select(start, end).ranges
    assert all(first < last for first, last in ranges)
    assert all(after[0] - before[1] > 128 for before, after in itertools.pairwise(ranges))


@given(deletions)
def test_ranks_are_the_inverse_of_selecting(deleted: set[int]) -> None:
    live = LiveRows(SIZE, BitMap(deleted))
    offsets = live.select(0, SIZE).row_offsets
    np.testing.assert_array_equal(live.ranks(offsets), np.arange(len(live)))


@given(deletions)
def test_the_offset_of_a_rank_is_the_live_row_in_that_place(deleted: set[int]) -> None:
    live = LiveRows(SIZE, BitMap(deleted))
    ranks = np.arange(len(live))[::-3]
    assert live.row_offsets(ranks).tolist() == live_offsets(deleted)[::-3]
