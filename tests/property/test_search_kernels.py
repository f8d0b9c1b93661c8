from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lance_core.kernels import distance
from lance_core.kernels.exact import scan_pages, score_rows
from lance_core.kernels.exact_rank import ExactRanking, OrdinalRuns
from lance_core.kernels.ivf_flat import search_flat
from lance_core.kernels.ivf_pq import search_pq
from lance_core.kernels.memory import address_of
from lance_core.kernels.rank import rank_centroids
from lance_core.kernels.topk import TopRows
from tests.kernel_blocks import all_rows, block_table, exact_distances, nearest, pylance_sums

if TYPE_CHECKING:
    from numpy.typing import NDArray

CODES = {"l2": distance.L2, "cosine": distance.COSINE, "dot": distance.DOT}
metrics = st.sampled_from(sorted(CODES))
seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(0, 700)
dimensions = st.integers(1, 70)


def normal(seed: int, *shape: int) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


@given(seed=seeds, rows=sizes, dimension=dimensions, metric=metrics)
def test_scored_rows_have_the_distances_of_the_definition(
    seed: int, rows: int, dimension: int, metric: str
) -> None:
    vectors, query = normal(seed, rows, dimension), normal(seed + 1, dimension)
    order = np.random.default_rng(seed).permutation(rows)
    addresses = address_of(vectors) + order.astype(np.int64) * dimension * 4
    found = score_rows(addresses, query, CODES[metric])
    expected = exact_distances(vectors[order], query, metric)
    scale = np.linalg.norm(query) * np.linalg.norm(vectors[order], axis=1) + 1
    np.testing.assert_allclose(found / scale, expected / scale, atol=2e-6)


@pytest.mark.parametrize("metric", sorted(CODES))
def test_a_vector_with_a_nan_has_no_distance(metric: str) -> None:
    vectors = np.array([[1, 2], [np.nan, 1]], np.float32)
    addresses = address_of(vectors) + np.array([0, 8], np.int64)
    found = score_rows(addresses, np.ones(2, np.float32), CODES[metric])
    assert np.isnan(found).tolist() == [False, True]


def test_a_zero_vector_has_no_cosine_distance() -> None:
    vectors = np.zeros((1, 3), np.float32)
    addresses = np.array([address_of(vectors)], np.int64)
    assert np.isnan(score_rows(addresses, np.ones(3, np.float32), distance.COSINE)).all()


@given(seed=seeds, dimension=dimensions)
def test_the_cosine_distance_of_a_vector_to_itself_is_not_negative(
    seed: int, dimension: int
) -> None:
    vector = normal(seed, dimension)
    addresses = np.array([address_of(vector)], np.int64)
    (found,) = score_rows(addresses, vector, distance.COSINE)
    assert 0 <= found <= 1e-6


@given(seed=seeds, pages=st.lists(sizes, max_size=4), metric=metrics, k=st.integers(0, 50))
def test_scanning_pages_finds_what_scoring_every_row_does(
    seed: int, pages: list[int], metric: str, k: int
) -> None:
    total = sum(pages)
    vectors, query = normal(seed, total, 7), normal(seed + 1, 7)
    vectors[::5, 0] = np.nan
    firsts = np.cumsum([0, *pages], dtype=np.int64)[:-1]
    addresses = address_of(vectors) + firsts * 28
    top = TopRows(k, total)
    code = CODES[metric]
    rows = np.array(pages, np.int64)
    scan_pages(addresses, rows, firsts, query, code, all_rows(total), top)
    each = address_of(vectors) + np.arange(total, dtype=np.int64) * 28
    expected = nearest(score_rows(each, query, code), np.arange(total, dtype=np.uint32), k)
    found, ordinals = top.nearest()
    assert ordinals.tolist() == expected[1]
    assert found.tolist() == expected[0]


@given(seed=seeds, lengths=st.lists(sizes, max_size=4), metric=metrics, k=st.integers(0, 50))
def test_searching_whole_vectors_finds_the_nearest_live_rows(
    seed: int, lengths: list[int], metric: str, k: int
) -> None:
    total = sum(lengths)
    generator = np.random.default_rng(seed)
    vectors, query = normal(seed, total, 5), normal(seed + 1, 5)
    ordinals = generator.permutation(total).astype(np.uint32)
    cuts = np.cumsum(lengths)[:-1]
    payloads, owns = np.split(vectors, cuts), np.split(ordinals, cuts)
    alive = generator.random(total + 1) < 0.5
    words = np.packbits(np.resize(alive, -(-(total + 1) // 64) * 64), bitorder="little")
    top = TopRows(k, total)
    search_flat(block_table(payloads, owns), query, CODES[metric], words.view(np.uint64), top)
    each = address_of(vectors) + np.arange(total, dtype=np.int64) * 20
    scores = score_rows(each, query, CODES[metric])
    found, found_ordinals = top.nearest()
    expected = nearest(scores, ordinals, k, alive=alive)
    assert (found.tolist(), found_ordinals.tolist()) == expected


def pq_distances(
    codes: NDArray[np.uint8],
    query: NDArray[np.float32],
    codebook: NDArray[np.float32],
    *,
    is_dot: bool,
) -> NDArray[np.float32]:
    """Form the sums of the vector index page, 4.2, one float32 addition after the other."""
    num_sub_vectors, width, _ = codebook.shape
    total = np.zeros(codes.shape[1], np.float32)
    for j in range(num_sub_vectors):
        values = codebook[j].T
        part = np.broadcast_to(query[j * width : (j + 1) * width], values.shape)
        gaps = part - values
        table = 1 - pylance_sums(part, values) if is_dot else pylance_sums(gaps, gaps)
        total += table[codes[j]]
    return total - np.float32(num_sub_vectors - 1) if is_dot else total


@given(
    seed=seeds,
    lengths=st.lists(st.integers(0, 300), min_size=1, max_size=3),
    num_sub_vectors=st.integers(1, 9),
    width=st.integers(1, 50),
    is_dot=st.booleans(),
)
def test_pq_sums_are_formed_in_the_oracles_order(
    seed: int, lengths: list[int], num_sub_vectors: int, width: int, is_dot: bool
) -> None:
    generator = np.random.default_rng(seed)
    dimension = num_sub_vectors * width
    codebook = normal(seed, num_sub_vectors, width, 256)
    centroids, query = normal(seed + 1, 5, dimension), normal(seed + 2, dimension)
    probes = generator.permutation(5)[: len(lengths)]
    codes = [generator.integers(0, 256, (num_sub_vectors, n)).astype(np.uint8) for n in lengths]
    total = sum(lengths)
    ordinals = np.split(generator.permutation(total).astype(np.uint32), np.cumsum(lengths)[:-1])
    top = TopRows(10, total)
    search_pq(
        block_table(codes, ordinals),
        probes,
        query,
        centroids,
        codebook,
        all_rows(total),
        top,
        is_dot=is_dot,
    )
    each = [
        pq_distances(c, query if is_dot else query - centroids[p], codebook, is_dot=is_dot)
        for c, p in zip(codes, probes, strict=True)
    ]
    found, found_ordinals = top.nearest()
    expected = nearest(np.concatenate(each), np.concatenate(ordinals), 10)
    assert (found.tolist(), found_ordinals.tolist()) == expected


@given(
    seed=seeds, rows=st.integers(1, 500), k=st.integers(1, 600), metric=metrics, cut=st.floats(0, 1)
)
def test_a_pq_search_that_ranks_exactly_finds_what_scoring_its_rows_does(
    seed: int, rows: int, k: int, metric: str, cut: float
) -> None:
    generator = np.random.default_rng(seed)
    codebook, centroids = normal(seed, 2, 3, 256), normal(seed + 1, 1, 6)
    query, vectors = normal(seed + 2, 6), normal(seed + 3, rows, 6)
    vectors[::7, 2] = np.nan
    codes = [generator.integers(0, 256, (2, rows)).astype(np.uint8)]
    ordinals = generator.permutation(rows).astype(np.uint32)
    blocks, words = block_table(codes, [ordinals]), all_rows(rows)
    probes, is_dot = np.zeros(1, np.int64), metric == "dot"
    plain, ranked = TopRows(k, rows), TopRows(k, rows)
    search_pq(blocks, probes, query, centroids, codebook, words, plain, is_dot=is_dot)
    starts = np.array([0, round(cut * (rows - 1))], np.int64)
    runs = OrdinalRuns(starts, address_of(vectors) + starts * 24, 24, vectors)
    exact = ExactRanking(runs, query, CODES[metric])
    search_pq(blocks, probes, query, centroids, codebook, words, ranked, is_dot=is_dot, exact=exact)
    found = plain.nearest()[1]
    places = address_of(vectors) + found.astype(np.int64) * 24
    expected = nearest(score_rows(places, query, CODES[metric]), found, k)
    distances, kept = ranked.nearest()
    assert exact.is_done
    assert (distances.tolist(), kept.tolist()) == expected


def test_a_pq_search_that_finds_too_few_rows_to_rank_leaves_their_estimates() -> None:
    codebook, query = normal(1, 1, 2, 256), normal(2, 2)
    blocks = block_table([np.arange(3, dtype=np.uint8)[None]], [np.arange(3, dtype=np.uint32)])
    given = (blocks, np.zeros(1, np.int64), query, normal(3, 1, 2), codebook)
    vectors, start = normal(4, 3, 2), np.zeros(1, np.int64)
    runs = OrdinalRuns(start, start + address_of(vectors), 8, vectors)
    exact = ExactRanking(runs, query, distance.L2)
    plain, ranked = TopRows(3, 3), TopRows(3, 3)
    two = np.array([0b101], np.uint64)
    search_pq(*given, two, plain, is_dot=False)
    search_pq(*given, two, ranked, is_dot=False, exact=exact)
    assert not exact.is_done
    assert [each.tolist() for each in ranked.nearest()] == [e.tolist() for e in plain.nearest()]


@given(seed=seeds, num_partitions=st.integers(0, 200), metric=metrics)
def test_partitions_are_ranked_by_the_distance_of_their_centroids(
    seed: int, num_partitions: int, metric: str
) -> None:
    centroids, query = normal(seed, num_partitions, 6), normal(seed + 1, 6)
    order, distances = rank_centroids(centroids, query, CODES[metric])
    assert sorted(order.tolist()) == list(range(num_partitions))
    assert (np.diff(distances) >= 0).all()
    ranked_by = "dot" if metric == "dot" else "l2"
    expected = exact_distances(centroids[order], query, ranked_by)
    np.testing.assert_allclose(distances, expected, rtol=1e-5, atol=1e-5)


def test_equal_centroids_are_ranked_by_partition() -> None:
    order, _ = rank_centroids(np.ones((4, 2), np.float32), np.zeros(2, np.float32), distance.L2)
    assert order.tolist() == [0, 1, 2, 3]


def test_a_centroid_with_a_nan_comes_last() -> None:
    centroids = np.array([[np.nan, 0], [9, 9]], np.float32)
    order, distances = rank_centroids(centroids, np.zeros(2, np.float32), distance.L2)
    assert order.tolist() == [1, 0]
    assert distances[1] == np.inf
