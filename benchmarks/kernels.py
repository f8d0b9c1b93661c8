"""Time the search kernels on synthetic blocks shaped like 1M x 128 vectors in 1,000 partitions.

Run with ``python -m benchmarks.kernels``; prints CPU milliseconds per call, medians. The codes are
random, so the figures say nothing about recall.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.exact import scan_pages, score_rows
from lance_core.kernels.ivf_flat import search_flat
from lance_core.kernels.ivf_pq import search_pq
from lance_core.kernels.memory import address_of
from lance_core.kernels.pq_table import NUM_CODES
from lance_core.kernels.rank import rank_centroids
from lance_core.kernels.topk import TopRows

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

NUM_ROWS = 1_000_000
NUM_PARTITIONS = 1_000
DIMENSION = 128
NUM_SUB_VECTORS = 16
NUM_PROBES = 64
ROWS_PER_PARTITION = 1_078


def timed(name: str, call: Callable[[], object], repeats: int) -> None:
    """Print the median CPU time of ``call`` in milliseconds."""
    times = []
    for _ in range(repeats):
        start = time.thread_time()
        call()
        times.append(time.thread_time() - start)
    print(f"{name:42s} {np.median(times) * 1e3:8.3f} ms")


def blocks_of(
    data: NDArray[np.generic], ordinals: NDArray[np.uint32], row_bytes: int
) -> NDArray[np.int64]:
    """Return the block table of partitions of equal size, one after the other in memory."""
    partitions = np.arange(len(ordinals) // ROWS_PER_PARTITION, dtype=np.int64)
    table = np.empty((len(partitions), 3), np.int64)
    table[:, 0] = address_of(data) + partitions * ROWS_PER_PARTITION * row_bytes
    table[:, 1] = address_of(ordinals) + partitions * ROWS_PER_PARTITION * 4
    table[:, 2] = ROWS_PER_PARTITION
    return table


def main() -> None:
    """Run all measurements."""
    generator = np.random.default_rng(1)
    vectors = generator.standard_normal((NUM_ROWS, DIMENSION), np.float32)
    ordinals = generator.permutation(NUM_ROWS).astype(np.uint32)
    codes = generator.integers(0, NUM_CODES, (NUM_ROWS, NUM_SUB_VECTORS)).astype(np.uint8)
    shape = (NUM_SUB_VECTORS, DIMENSION // NUM_SUB_VECTORS, NUM_CODES)
    codebook = generator.standard_normal(shape, np.float32)
    centroids = generator.standard_normal((NUM_PARTITIONS, DIMENSION), np.float32)
    queries = generator.standard_normal((500, DIMENSION), np.float32)
    words = np.full(NUM_ROWS // 64 + 1, 2**64 - 1, np.uint64)
    pq_blocks = blocks_of(codes, ordinals, NUM_SUB_VECTORS)
    flat_blocks = blocks_of(vectors, ordinals, DIMENSION * 4)

    def query() -> NDArray[np.float32]:
        chosen: NDArray[np.float32] = queries[generator.integers(len(queries))].copy()
        return chosen

    def probes() -> NDArray[np.int64]:
        return generator.choice(len(pq_blocks), NUM_PROBES, replace=False)

    def run_pq(k: int, *, is_dot: bool = False) -> None:
        chosen = probes()
        top = TopRows(k, NUM_PROBES * ROWS_PER_PARTITION)
        blocks = pq_blocks[chosen]
        search_pq(blocks, chosen, query(), centroids, codebook, words, top, is_dot=is_dot)
        top.nearest()

    def run_flat(metric: int) -> None:
        top = TopRows(10, NUM_PROBES * ROWS_PER_PARTITION)
        search_flat(flat_blocks[probes()], query(), metric, words, top)
        top.nearest()

    def run_scan(metric: int, rows: int) -> None:
        top = TopRows(10, rows)
        pages = np.array([[address_of(vectors)], [rows], [0]], np.int64)
        scan_pages(pages[0], pages[1], pages[2], query(), metric, words, top)
        top.nearest()

    def run_refine() -> None:
        rows = generator.integers(0, NUM_ROWS, 100)
        score_rows(address_of(vectors) + rows * DIMENSION * 4, query(), 0)

    timed("choosing probes and a query", lambda: (probes(), query()), 200)
    timed("rank 1,000 centroids", lambda: rank_centroids(centroids, query(), 0), 500)
    for k in (10, 100, 400, 1_000, 3_000):
        timed(f"PQ, 64 probes, k' = {k}", partial(run_pq, k), 300)
    timed("PQ dot, 64 probes, k' = 100", partial(run_pq, 100, is_dot=True), 300)
    for metric, name in enumerate(("l2", "cosine", "dot")):
        timed(f"FLAT {name}, 64 probes", partial(run_flat, metric), 100)
        timed(f"scan of 100,000, {name}", partial(run_scan, metric, 100_000), 50)
        timed(f"scan of 1M, {name}", partial(run_scan, metric, NUM_ROWS), 10)
    timed("refine 100 rows", run_refine, 500)


if __name__ == "__main__":
    main()
