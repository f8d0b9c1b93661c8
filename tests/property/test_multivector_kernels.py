from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from lance_core.index.candidates import Candidates
from lance_core.kernels.distance import COSINE, DOT, HAMMING, L2
from lance_core.kernels.memory import address_of
from lance_core.kernels.multivector import scan_lists, score_lists
from lance_core.kernels.topk import TopRows
from lance_core.query.multivector import rank_by_hits
from lance_core.scan.vector_arrays import as_lists
from lance_core.scan.vector_type import VectorType
from tests.kernel_blocks import exact_distances, nearest

if TYPE_CHECKING:
    from numpy.typing import NDArray

CODES = {"l2": L2, "cosine": COSINE, "dot": DOT, "hamming": HAMMING}
seeds = st.integers(0, 2**32 - 1)
metrics = st.sampled_from(sorted(CODES))
lists = st.lists(st.integers(0, 6), max_size=150)


def drawn(seed: int, count: int, dimension: int, metric: str) -> NDArray[np.generic]:
    generator = np.random.default_rng(seed)
    if metric == "hamming":
        return generator.integers(0, 256, (count, dimension), np.uint8)
    return generator.standard_normal((count, dimension), np.float32)


def row_table(vectors: NDArray[np.generic], lengths: list[int]) -> NDArray[np.int64]:
    starts = np.cumsum([0, *lengths], dtype=np.int64)[:-1]
    first = address_of(vectors) + starts * vectors.strides[0]
    return np.ascontiguousarray(np.stack([first, np.array(lengths, np.int64)], axis=1))


def sums_of_minima(
    vectors: NDArray[np.generic], lengths: list[int], queries: NDArray[np.generic], metric: str
) -> NDArray[np.float64]:
    """Add up, over the queries, the distance to the nearest vector of each row; NaN = none."""
    ends = np.cumsum([0, *lengths])
    total = np.zeros(len(lengths))
    for query in queries:
        if metric == "hamming":
            bits = np.unpackbits(vectors.view(np.uint8) ^ query.view(np.uint8), axis=1)
            distances = bits.sum(axis=1).astype(np.float64)
        else:
            distances = exact_distances(
                vectors.astype(np.float32), query.astype(np.float32), metric
            )
        rows = [distances[start:end] for start, end in pairwise(ends)]
        known = [row[~np.isnan(row)] for row in rows]
        total += [row.min() if len(row) > 0 else np.nan for row in known]
    return total


@given(
    seed=seeds,
    lengths=lists,
    metric=metrics,
    dimension=st.integers(1, 40),
    num_vectors=st.integers(1, 5),
)
def test_a_row_is_as_far_as_its_nearest_vectors_add_up_to(
    seed: int, lengths: list[int], metric: str, dimension: int, num_vectors: int
) -> None:
    vectors = drawn(seed, sum(lengths), dimension, metric)
    if metric != "hamming":
        vectors[::4] = 0  # without a distance under cosine
        vectors[::5, 0] = np.nan
    queries = drawn(seed + 1, num_vectors, dimension, metric)
    table = row_table(vectors, lengths)
    places = address_of(table) + np.arange(len(lengths), dtype=np.int64) * 16
    found = score_lists(places, queries.astype(np.float32), CODES[metric])
    expected = sums_of_minima(vectors, lengths, queries, metric)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * num_vectors)


@given(seed=seeds, lengths=lists, metric=metrics, k=st.integers(0, 40))
def test_scanning_lists_finds_the_nearest_live_rows(
    seed: int, lengths: list[int], metric: str, k: int
) -> None:
    generator = np.random.default_rng(seed)
    vectors = drawn(seed, sum(lengths), 9, metric)
    queries = drawn(seed + 1, 3, 9, metric).astype(np.float32)
    total, code = len(lengths), CODES[metric]
    alive = generator.random(total + 1) < 0.6
    words = np.packbits(np.resize(alive, -(-(total + 1) // 64) * 64), bitorder="little")
    table = row_table(vectors, lengths)
    cut = total // 3
    firsts = np.array([0, cut], np.int64)
    rows = np.array([cut, total - cut], np.int64)
    top = TopRows(k, total)
    scan_lists(
        address_of(table) + firsts * 16, rows, firsts, queries, code, words.view(np.uint64), top
    )
    every = score_lists(address_of(table) + np.arange(total, dtype=np.int64) * 16, queries, code)
    distances, ordinals = top.nearest()
    expected = nearest(every, np.arange(total, dtype=np.uint32), k, alive=alive)
    assert (distances.tolist(), ordinals.tolist()) == expected


@given(
    rows=st.lists(
        st.none()
        | st.lists(st.none() | st.tuples(st.integers(0, 255), st.integers(0, 255)), max_size=4),
        max_size=20,
    ),
    skipped=st.integers(0, 5),
    element=st.sampled_from(["uint8", "float32", "float64"]),
)
def test_lists_become_a_table_of_their_vectors(
    rows: list[list[tuple[int, int] | None] | None], skipped: int, element: str
) -> None:
    arrow = {"uint8": pa.uint8(), "float32": pa.float32(), "float64": pa.float64()}[element]
    array = pa.array(rows, pa.list_(pa.list_(arrow, 2)))[skipped:]
    vectors, table = as_lists(array, VectorType(2, element, is_searchable=True, is_multi=True))
    starts = ((table[:, 0] - address_of(vectors)) // (2 * vectors.itemsize)).tolist()
    found = [
        vectors[start : start + count].tolist()
        for start, count in zip(starts, table[:, 1].tolist(), strict=True)
    ]
    expected = [[list(v) for v in row or [] if v is not None] for row in rows[skipped:]]
    assert found == expected
    assert vectors.dtype == (np.uint8 if element == "uint8" else np.float32)


def test_a_byte_that_is_null_takes_its_vector_away() -> None:
    array = pa.array([[[1, None], [2, 3]]], pa.list_(pa.list_(pa.uint8(), 2)))
    vectors, table = as_lists(array, VectorType(2, "uint8", is_searchable=True, is_multi=True))
    assert (vectors.tolist(), table[:, 1].tolist()) == ([[2, 3]], [1])


hits = st.lists(
    st.lists(st.tuples(st.floats(0, 2, width=32), st.integers(0, 12)), max_size=12).map(sorted),
    min_size=1,
    max_size=4,
)


@given(found=hits, k=st.integers(0, 20))
def test_rows_are_ranked_by_their_best_hits_and_by_what_they_missed(
    found: list[list[tuple[float, int]]], k: int
) -> None:
    expected = []
    for row in {row for one in found for _, row in one}:
        score = 0.0
        for one in found:
            own = [1 - distance for distance, other in one if other == row]
            missed = 1 - one[-1][0] if one else 0.0
            score += own[0] if own else missed
        expected.append((len(found) - score, row))
    lists_of_hits = [
        Candidates(
            np.array([d for d, _ in one], np.float32), np.array([r for _, r in one], np.uint64)
        )
        for one in found
    ]
    ranked = rank_by_hits(lists_of_hits, k)
    wanted = sorted(expected)[:k]
    assert ranked.distances.tolist() == pytest.approx([d for d, _ in wanted], abs=1e-5)
    by_row = {row: distance for distance, row in expected}
    assert [by_row[row] for row in ranked.row_ids.tolist()] == pytest.approx(
        ranked.distances.tolist(), abs=1e-5
    )
    assert len(set(ranked.row_ids.tolist())) == len(ranked)
