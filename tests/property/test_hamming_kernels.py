from __future__ import annotations

import mmap
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lance_core.kernels.distance import HAMMING
from lance_core.kernels.exact import scan_pages, score_rows
from lance_core.kernels.exact_batch import scan_pages_for_all
from lance_core.kernels.hamming import hamming_distance
from lance_core.kernels.ivf_flat import search_flat
from lance_core.kernels.memory import address_of
from lance_core.kernels.rank import rank_centroids
from lance_core.kernels.topk import TopRows
from tests.kernel_blocks import all_rows, block_table, nearest

if TYPE_CHECKING:
    from numpy.typing import NDArray

seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(0, 400)
dimensions = st.integers(1, 70)


def drawn(seed: int, *shape: int) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8)


def differing_bits(vectors: NDArray[np.uint8], query: NDArray[np.uint8]) -> NDArray[np.float32]:
    bits: NDArray[np.float32] = np.unpackbits(vectors ^ query, axis=1).sum(axis=1, dtype=np.float32)
    return bits


@given(seed=seeds, rows=sizes, dimension=dimensions)
def test_bytes_have_as_much_distance_as_bits_differ(seed: int, rows: int, dimension: int) -> None:
    vectors, query = drawn(seed, rows, dimension), drawn(seed + 1, dimension)
    order = np.random.default_rng(seed).permutation(rows)
    addresses = address_of(vectors) + order.astype(np.int64) * dimension
    found = score_rows(addresses, query.astype(np.float32), HAMMING)
    assert found.tolist() == differing_bits(vectors[order], query).tolist()


@pytest.mark.parametrize("width", [1, 7, 8, 9, 15, 64, 67])
def test_nothing_behind_the_last_byte_of_a_map_is_touched(width: int) -> None:
    with mmap.mmap(-1, mmap.PAGESIZE) as pages:
        memory = np.frombuffer(pages, np.uint8)
        last = address_of(memory) + mmap.PAGESIZE - width
        query = np.full(width, 255, np.uint8)
        assert hamming_distance(last, address_of(query), width) == 8 * width
        del memory


@given(
    seed=seeds,
    pages=st.lists(sizes, max_size=4),
    dimension=dimensions,
    k=st.integers(0, 50),
    num_queries=st.integers(1, 3),
)
def test_scanning_pages_of_bytes_finds_the_nearest(
    seed: int, pages: list[int], dimension: int, k: int, num_queries: int
) -> None:
    total = sum(pages)
    vectors, queries = drawn(seed, total, dimension), drawn(seed + 1, num_queries, dimension)
    firsts = np.cumsum([0, *pages], dtype=np.int64)[:-1]
    addresses, rows = address_of(vectors) + firsts * dimension, np.array(pages, np.int64)
    tops = [TopRows(k, total) for _ in queries]
    asked = queries.astype(np.float32)
    words = all_rows(total)
    scan_pages_for_all(addresses, rows, firsts, asked, HAMMING, words, tops)
    alone = TopRows(k, total)
    scan_pages(addresses, rows, firsts, asked[0], HAMMING, words, alone)
    ordinals = np.arange(total, dtype=np.uint32)
    for query, top in zip([*queries, queries[0]], [*tops, alone], strict=True):
        distances, found = top.nearest()
        expected = nearest(differing_bits(vectors, query), ordinals, k)
        assert (distances.tolist(), found.tolist()) == expected


@given(seed=seeds, lengths=st.lists(sizes, max_size=4), k=st.integers(0, 50), dimension=dimensions)
def test_searching_partitions_of_bytes_finds_the_nearest_live_rows(
    seed: int, lengths: list[int], k: int, dimension: int
) -> None:
    total = sum(lengths)
    generator = np.random.default_rng(seed)
    vectors, query = drawn(seed, total, dimension), drawn(seed + 1, dimension)
    ordinals = generator.permutation(total).astype(np.uint32)
    cuts = np.cumsum(lengths)[:-1]
    payloads, owns = np.split(vectors, cuts), np.split(ordinals, cuts)
    alive = generator.random(total + 1) < 0.5
    words = np.packbits(np.resize(alive, -(-(total + 1) // 64) * 64), bitorder="little")
    top = TopRows(k, total)
    blocks = block_table(payloads, owns)
    search_flat(blocks, query.astype(np.float32), HAMMING, words.view(np.uint64), top)
    distances, found = top.nearest()
    expected = nearest(differing_bits(vectors, query), ordinals, k, alive=alive)
    assert (distances.tolist(), found.tolist()) == expected


@given(seed=seeds, num_partitions=st.integers(1, 40), dimension=dimensions)
def test_partitions_of_bytes_are_ranked_by_differing_bits(
    seed: int, num_partitions: int, dimension: int
) -> None:
    centroids, query = drawn(seed, num_partitions, dimension), drawn(seed + 1, dimension)
    order, distances = rank_centroids(
        centroids.astype(np.float32), query.astype(np.float32), HAMMING
    )
    expected = differing_bits(centroids, query)
    assert order.tolist() == np.lexsort((np.arange(num_partitions), expected)).tolist()
    assert distances.tolist() == np.sort(expected).tolist()
