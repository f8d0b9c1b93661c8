"""Merging ranked lists is sorting their union."""

from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st

from lance_core.query.merge import merge, rank, rank_first, within, without

rows = st.lists(
    st.tuples(
        st.floats(-1e6, 1e6, width=32) | st.sampled_from([0.0, 1.0, float("inf")]),
        st.integers(0, 2**64 - 1),
    ),
    unique_by=lambda row: row[1],
    max_size=40,
)


def ranked(given_rows):
    distances = np.array([distance for distance, _ in given_rows], np.float32)
    addresses = np.array([address for _, address in given_rows], np.uint64)
    return rank(distances, addresses)


def pairs(candidates):
    return list(zip(candidates.distances.tolist(), candidates.row_ids.tolist(), strict=True))


@given(rows, st.integers(1, 4), st.integers(0, 60))
def test_merging_parts_gives_the_first_rows_of_the_sorted_whole(whole, num_parts, k):
    parts = [ranked(whole[part::num_parts]) for part in range(num_parts)]
    expected = sorted((float(np.float32(distance)), address) for distance, address in whole)
    assert pairs(merge(parts, k)) == expected[:k]


@given(rows, st.floats(-1e6, 1e6, width=32), st.floats(-1e6, 1e6, width=32))
def test_bounds_keep_the_lower_and_drop_the_upper(whole, lower, upper):
    kept = pairs(within(ranked(whole), lower, upper))
    assert kept == [row for row in pairs(ranked(whole)) if lower <= row[0] < upper]


def test_rows_without_a_distance_are_dropped():
    found = rank(np.array([2, np.nan, 1], np.float32), np.array([7, 8, 9], np.uint64))
    assert pairs(found) == [(1.0, 9), (2.0, 7)]


def test_nothing_merged_is_nothing():
    assert len(merge([], 5)) == 0


@given(
    st.lists(st.sampled_from([0.0, -0.0, 1.0, float("inf"), float("nan")]), max_size=600),
    st.randoms(use_true_random=False),
)
def test_many_ties_are_ranked_by_row_address(distances, shuffle):
    addresses = list(range(len(distances)))
    shuffle.shuffle(addresses)
    found = rank(np.array(distances, np.float32), np.array(addresses, np.uint64))
    numbers = [
        (distance, address)
        for distance, address in zip(distances, addresses, strict=True)
        if not np.isnan(distance)
    ]
    assert pairs(found) == sorted(numbers)


@given(
    st.lists(st.sampled_from([0.0, 1.0, 2.0, float("inf"), float("nan")]), max_size=200),
    st.integers(0, 60),
)
def test_ranking_the_first_rows_is_ranking_all_and_cutting(distances, k):
    numbers = np.array(distances, np.float32)
    addresses = np.arange(len(numbers), dtype=np.uint64)[::-1].copy()
    expected = rank(numbers, addresses).first(k)
    assert pairs(rank_first(numbers, addresses, k)) == pairs(expected)


@given(rows, st.integers(0, 50))
def test_a_row_that_is_left_out_leaves_the_others_in_order(whole, place):
    found = ranked(whole)
    row = int(found.row_ids[place]) if place < len(found) else 1
    expected = [each for each in pairs(found) if each[1] != row]
    assert pairs(without(found, row)) == expected
