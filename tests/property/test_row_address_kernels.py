"""Kernels on row addresses give what numpy gives step by step."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lance_core.kernels.rank import rank_centroids
from lance_core.kernels.row_addresses import (
    by_fragment,
    largest_of_one_fragment,
    nearest_first,
    pointers_to_rows,
)

offsets = st.lists(st.integers(0, 2**32 - 2), min_size=1, max_size=20)


@given(fragment=st.sampled_from([0, 7, 2**31, 2**32 - 1]), of_rows=offsets)
def test_rows_of_one_fragment_give_their_largest_address(fragment, of_rows):
    addresses = np.array([(fragment << 32) | offset for offset in of_rows], np.uint64)
    assert largest_of_one_fragment(addresses) == int(addresses.max())


def test_rows_of_several_fragments_give_none():
    addresses = np.array([1, (1 << 32) | 1, 2], np.uint64)
    addresses.flags.writeable = False
    assert largest_of_one_fragment(addresses) is None
    assert largest_of_one_fragment(addresses[::2]) == 2


@given(
    count=st.sampled_from([1, 2, 11, 512, 513, 700]),
    num_fragments=st.integers(1, 6),
    seed=st.integers(0, 99),
)
def test_rows_are_grouped_by_fragment_in_their_order(count, num_fragments, seed):
    generator = np.random.default_rng(seed)
    names = np.array([0, 1, 5, 2**20, 2**31, 2**32 - 1], np.uint64)[:num_fragments]
    fragments = generator.choice(names, count)
    order, ends = by_fragment(
        (fragments << np.uint64(32)) | generator.integers(0, 9, count, np.uint64)
    )
    assert order.tolist() == np.argsort(fragments, kind="stable").tolist()
    assert ends == np.cumsum(np.unique(fragments, return_counts=True)[1]).tolist()


@given(lengths=st.lists(st.integers(1, 9), min_size=1, max_size=5), seed=st.integers(0, 99))
def test_pointers_count_rows_from_the_start_of_their_run(lengths, seed):
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.uint64)
    pointers = np.arange(len(lengths), dtype=np.int64) * 10_000
    rows = np.random.default_rng(seed).integers(0, sum(lengths), 12).astype(np.uint64)
    expected = []
    for row in rows.tolist():
        run = max(i for i, start in enumerate(starts.tolist()) if start <= row)
        expected.append(int(pointers[run]) + (row - int(starts[run])) * 16)
    assert pointers_to_rows(rows, starts, pointers, 16).tolist() == expected


@given(
    distances=st.lists(st.sampled_from([-2.5, -0.0, 0.0, 1.0, np.inf, np.nan]), max_size=12),
    repeats=st.sampled_from([1, 60]),
)
def test_rows_are_sorted_by_distance_then_id_without_those_that_have_none(distances, repeats):
    given_distances = np.array(distances * repeats, np.float32)
    ids = np.random.default_rng(1).permutation(len(given_distances)).astype(np.uint64)
    kept = ~np.isnan(given_distances)
    order = np.lexsort((ids[kept], given_distances[kept]))
    found_distances, found_ids = nearest_first(given_distances, ids)
    assert found_distances.tolist() == given_distances[kept][order].tolist()
    assert found_ids.tolist() == ids[kept][order].tolist()


@pytest.mark.parametrize("wanted", [0, 1, 5, 40, 99])
def test_asking_for_fewer_partitions_gives_the_first_of_all(wanted):
    centroids = np.random.default_rng(3).integers(0, 3, (40, 2)).astype(np.float32)
    query = np.ones(2, np.float32)
    order, distances = rank_centroids(centroids, query, 0)
    few, few_distances = rank_centroids(centroids, query, 0, wanted)
    assert few.tolist() == order[:wanted].tolist()
    assert few_distances.tolist() == distances[:wanted].tolist()
