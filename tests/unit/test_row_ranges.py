"""Ranges of rows: made disjoint, expanded, joined again."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, strategies as st

from lance_core.encodings.rows import disjoint, expand_ranges, runs_of

ranges = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 15)).map(lambda pair: (pair[0], sum(pair)))
)


@given(requests=ranges)
def test_disjoint_ranges_hold_what_was_asked_for(requests: list[tuple[int, int]]) -> None:
    merged, positions = disjoint(requests)
    rows = [row for start, stop in merged for row in range(start, stop)]
    assert rows == sorted(set(rows))
    wanted = [row for start, stop in requests for row in range(start, stop)]
    if positions is None:
        assert rows == wanted
        return
    found = [
        row
        for (start, stop), position in zip(requests, positions, strict=True)
        for row in rows[position : position + stop - start]
    ]
    assert found == wanted


@given(requests=ranges)
def test_expanding_lists_every_row(requests: list[tuple[int, int]]) -> None:
    starts = np.array([start for start, _ in requests], np.int64)
    stops = np.array([stop for _, stop in requests], np.int64)
    wanted = [row for start, stop in requests for row in range(start, stop)]
    assert expand_ranges(starts, stops).tolist() == wanted


@given(rows=st.sets(st.integers(0, 50)))
def test_runs_join_neighbours(rows: set[int]) -> None:
    runs = runs_of(np.array(sorted(rows), np.int64))
    assert [row for start, stop in runs for row in range(start, stop)] == sorted(rows)
    assert all(before[1] < after[0] for before, after in itertools.pairwise(runs))
