"""Graph kernels against plain walks and numpy."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lance_core.index.vector.hnsw_graph import NO_GRAPH, GraphArrays, GraphHeader, decode_graph
from lance_core.kernels import distance, hnsw_scoring as scoring
from lance_core.kernels.hnsw import GraphStorage, search_graphs
from lance_core.kernels.hnsw_heap import pop_entry, push_entry
from lance_core.kernels.hnsw_scoring import Scorer, score_nodes
from lance_core.kernels.memory import address_of
from lance_core.kernels.topk import TopRows
from tests import graph_twins
from tests.kernel_blocks import all_rows, exact_distances, nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tests.graph_twins import PlainGraph

DIMENSION = 8
seeds = st.integers(0, 2**32 - 1)
few_rows = st.integers(1, 300)
CODES = {"l2": distance.L2, "cosine": distance.COSINE, "dot": distance.DOT}


def whole_vectors(metric: int = distance.L2) -> GraphStorage:
    return GraphStorage(scoring.VECTORS, metric, row_bytes=4 * DIMENSION, width=DIMENSION)


@dataclass(frozen=True, eq=False)
class Partition:
    """A partition of vectors with a graph, as kernels see it."""

    plain: PlainGraph
    graph: GraphArrays
    vectors: NDArray[np.float32]
    ordinals: NDArray[np.uint32]

    @property
    def row(self) -> list[int]:
        arrays = map(address_of, self.graph)
        return [address_of(self.vectors), address_of(self.ordinals), len(self.ordinals), *arrays]


def partition(seed: int, num_rows: int, first: int = 0) -> Partition:
    plain = graph_twins.random_graph(seed, num_rows)
    header = GraphHeader(plain.entry_point, plain.level_offsets())
    vectors = np.random.default_rng(seed).standard_normal((num_rows, DIMENSION), np.float32)
    ordinals = np.arange(first, first + num_rows, dtype=np.uint32)
    graph = decode_graph(*plain.rows(), header, num_rows, "x")
    return Partition(plain, graph, vectors, ordinals)


def search(
    partitions: Sequence[Partition],
    query: NDArray[np.float32],
    k: int,
    ef: int,
    *,
    words: NDArray[np.uint64] | None = None,
    storage: GraphStorage | None = None,
    lower: float | None = None,
    upper: float | None = None,
    is_fast: bool = False,
) -> tuple[list[float], list[int]]:
    num_rows = sum(len(each.ordinals) for each in partitions)
    top = TopRows(k, num_rows, lower, upper)
    search_graphs(
        np.array([each.row for each in partitions], np.int64).reshape(-1, 9),
        np.arange(len(partitions)),
        query,
        whole_vectors() if storage is None else storage,
        all_rows(num_rows) if words is None else words,
        top,
        ef=ef,
        upper=upper,
        is_fast=is_fast,
    )
    distances, ordinals = top.nearest()
    return distances.tolist(), ordinals.tolist()


def mask(seed: int, num_rows: int, share: float) -> tuple[NDArray[np.bool_], NDArray[np.uint64]]:
    passing = np.random.default_rng(seed).random(num_rows) < share
    words = np.zeros(num_rows // 64 + 1, np.uint64)
    for ordinal in np.flatnonzero(passing).tolist():
        words[ordinal // 64] |= np.uint64(1 << (ordinal % 64))
    return passing, words


def query_near(seed: int) -> NDArray[np.float32]:
    return np.random.default_rng(seed + 1).standard_normal(DIMENSION, np.float32)


def squares(own: Partition, query: NDArray[np.float32]) -> NDArray[np.float32]:
    return exact_distances(own.vectors, query, "l2").astype(np.float32)


@given(seed=seeds, num_rows=few_rows, ef=st.integers(1, 40))
def test_a_walk_finds_what_the_plain_walk_finds(seed: int, num_rows: int, ef: int) -> None:
    own, query = partition(seed, num_rows), query_near(seed)
    distances = squares(own, query)
    entry = graph_twins.descend(own.plain, distances)
    everything = np.ones(num_rows, np.bool_)
    expected = graph_twins.beam(own.plain, distances, everything, ef, entry)
    found, ordinals = search([own], query, ef, ef)
    assert ordinals == expected
    np.testing.assert_allclose(found, distances[expected], rtol=1e-5)


@given(seed=seeds, num_rows=few_rows, ef=st.integers(1, 40), share=st.floats(0.2, 0.9))
def test_rows_that_fail_are_walked_through(seed: int, num_rows: int, ef: int, share: float) -> None:
    own, query = partition(seed, num_rows), query_near(seed)
    passing, words = mask(seed, num_rows, share)
    distances = squares(own, query)
    entry = graph_twins.descend(own.plain, distances)
    expected = graph_twins.beam(own.plain, distances, passing, ef, entry)
    if passing.sum() >= num_rows * 10 // 100:
        assert search([own], query, ef, ef, words=words)[1] == expected


@given(
    seed=seeds,
    num_rows=few_rows,
    ef=st.integers(1, 40),
    k=st.integers(1, 40),
    share=st.floats(0, 1),
)
def test_a_fast_walk_finds_what_the_plain_one_finds(
    seed: int, num_rows: int, ef: int, k: int, share: float
) -> None:
    own, query = partition(seed, num_rows), query_near(seed)
    ef = max(ef, k)
    passing, words = mask(seed, num_rows, share)
    distances = squares(own, query)
    entry = graph_twins.descend(own.plain, distances)
    if passing.sum() < num_rows * 10 // 100:
        expected = np.flatnonzero(passing)[np.argsort(distances[passing])].tolist()
    elif passing.all():
        expected = graph_twins.beam(own.plain, distances, passing, ef, entry)
    else:
        expected = graph_twins.TwoHopWalk(own.plain, distances, passing, ef, entry).run()
        if len(expected) < min(k, int(passing.sum())):
            expected = graph_twins.beam(own.plain, distances, passing, ef, entry)
    found = search([own], query, k, ef, words=words, is_fast=True)[1]
    assert found == expected[:k]


@given(
    seed=seeds,
    num_rows=few_rows,
    share=st.floats(0, 1),
    bounds=st.tuples(st.none() | st.floats(0, 20), st.none() | st.floats(0, 20)),
    metric=st.sampled_from(sorted(CODES)),
)
def test_a_walk_that_keeps_all_rows_is_an_exact_search(
    seed: int, num_rows: int, share: float, bounds: tuple[float | None, float | None], metric: str
) -> None:
    own, query = partition(seed, num_rows), query_near(seed)
    passing, words = mask(seed, num_rows, share)
    lower, upper = bounds
    distances = exact_distances(own.vectors, query, metric).astype(np.float32)
    found = search(
        [own],
        query,
        num_rows,
        num_rows,
        words=words,
        storage=whole_vectors(CODES[metric]),
        lower=lower,
        upper=upper,
    )
    kept = passing.copy()
    if lower is not None:
        kept &= distances >= lower
    if upper is not None:
        kept &= distances < upper
    unsure = np.zeros(num_rows, np.bool_)
    for bound in bounds:
        if bound is not None:
            unsure |= np.abs(distances - bound) < 1e-5
    assert set(np.flatnonzero(kept & ~unsure)) <= set(found[1])
    assert set(found[1]) <= set(np.flatnonzero(passing & (kept | unsure)))
    assert found[0] == sorted(found[0])


@given(seed=seeds, sizes=st.lists(st.integers(0, 90), max_size=4))
def test_partitions_are_searched_as_one(seed: int, sizes: list[int]) -> None:
    starts = np.cumsum([0, *sizes]).tolist()
    parts = [
        partition(seed, size, first)
        if size > 0
        else Partition(
            graph_twins.PlainGraph([], 0),
            NO_GRAPH,
            np.zeros((0, DIMENSION), np.float32),
            np.zeros(0, np.uint32),
        )
        for size, first in zip(sizes, starts, strict=False)
    ]
    query = query_near(seed)
    merged: list[tuple[float, int]] = []
    for part, first in zip(parts, starts, strict=False):
        alone = replace(part, ordinals=np.arange(len(part.ordinals), dtype=np.uint32))
        found = search([alone], query, 5, 9)
        merged.extend((d, o + first) for d, o in zip(*found, strict=True))
    merged = sorted(merged)[:5]
    assert search(parts, query, 5, 9) == ([d for d, _ in merged], [o for _, o in merged])


def test_rows_that_are_gone_are_never_found() -> None:
    own = partition(3, 200)
    gone = np.random.default_rng(1).random(200) < 0.5
    ordinals = np.where(gone, 200, own.ordinals).astype(np.uint32)
    own = replace(own, ordinals=ordinals)
    query = query_near(3)
    distances = squares(own, query)
    for is_fast in (False, True):
        found = search([own], query, 200, 200, words=all_rows(200), is_fast=is_fast)[1]
        expected = nearest(distances[~gone], ordinals[~gone], 200)[1]
        assert found == expected


def test_a_nan_is_walked_over() -> None:
    own = partition(3, 50)
    own.vectors[own.plain.entry_point] = np.nan
    found = search([own], query_near(3), 50, 50)
    assert not any(map(math.isnan, found[0]))
    assert own.plain.entry_point not in found[1]


@given(keys=st.lists(st.integers(0, 2**64 - 1), max_size=60))
def test_a_heap_gives_its_entries_by_distance(keys: list[int]) -> None:
    heap = np.zeros(len(keys) + 1, np.uint64)
    for size, key in enumerate(keys):
        push_entry(heap, size, np.uint64(key))
    popped = [int(pop_entry(heap, size)) for size in range(len(keys), 0, -1)]
    assert sorted(popped) == sorted(keys)
    assert [key >> 32 for key in popped] == sorted(key >> 32 for key in keys)


def scores(
    storage: int,
    rows: NDArray[np.generic],
    query: NDArray[np.generic],
    *,
    width: int,
    factor: float = 1,
    offset: float = 0,
) -> NDArray[np.float32]:
    scorer = Scorer(
        storage,
        distance.L2,
        address_of(rows),
        rows.itemsize * rows.shape[1],
        address_of(query),
        width,
        np.float32(factor),
        np.float32(offset),
    )
    order = np.random.default_rng(1).permutation(len(rows)).astype(np.uint32)
    out = np.empty(len(rows), np.float32)
    score_nodes(scorer, order, len(rows), out)
    unordered = np.empty_like(out)
    unordered[order] = out
    return unordered


@given(seed=seeds, width=st.integers(1, 200))
def test_byte_codes_are_compared_exactly(seed: int, width: int) -> None:
    generator = np.random.default_rng(seed)
    rows = generator.integers(0, 256, (9, width), np.uint8)
    query = generator.integers(0, 256, width).astype(np.int16)
    found = scores(scoring.SCALAR_CODES, rows, query, width=width, factor=0.5)
    gaps = rows.astype(np.int64) - query
    np.testing.assert_array_equal(found, (gaps**2).sum(axis=1) * np.float32(0.5))


@given(seed=seeds, width=st.integers(1, 200))
def test_products_with_byte_codes_are_those_of_numpy(seed: int, width: int) -> None:
    generator = np.random.default_rng(seed)
    rows = generator.integers(0, 256, (9, width), np.uint8)
    query = generator.standard_normal(width, np.float32)
    found = scores(scoring.SCALAR_CODES_DOT, rows, query, width=width, factor=0.1, offset=3)
    expected = 1 - (3 + 0.1 * (rows @ query.astype(np.float64)))
    np.testing.assert_allclose(found, expected, atol=1e-4 * width)


@pytest.mark.parametrize("bits", [4, 8])
@given(seed=seeds, half=st.integers(1, 20))
def test_table_entries_are_added_in_order(bits: int, seed: int, half: int) -> None:
    generator = np.random.default_rng(seed)
    width = 2 * half
    table = generator.standard_normal((width, 2**bits), np.float32)
    codes = generator.integers(0, 2**bits, (9, width), np.uint8)
    rows = codes if bits == 8 else codes[:, ::2] | codes[:, 1::2] << 4
    storage = scoring.PRODUCT_CODES if bits == 8 else scoring.PRODUCT_NIBBLES
    found = scores(storage, np.ascontiguousarray(rows), table, width=width, offset=2)
    total = np.zeros(9, np.float32)
    for j in range(width):
        total += table[j, codes[:, j]]
    np.testing.assert_array_equal(found, total - np.float32(2))


@given(seed=seeds, width=st.integers(1, 40))
def test_bytes_are_compared_bit_by_bit(seed: int, width: int) -> None:
    rows = np.random.default_rng(seed).integers(0, 256, (9, width), np.uint8)
    found = scores(scoring.BYTES, rows, rows[0].copy(), width=width)
    expected = np.unpackbits(rows ^ rows[0], axis=1).sum(axis=1)
    np.testing.assert_array_equal(found, expected)
