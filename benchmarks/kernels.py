"""Time the search kernels on synthetic blocks shaped like 1M x 128 vectors in 1,000 partitions.

Run with ``python -m benchmarks.kernels``; prints CPU milliseconds per call, medians. The codes are
random, so the figures say nothing about recall.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from lance_core.index.vector.rabit_extra import extra_layout
from lance_core.kernels.exact import scan_pages, score_rows
from lance_core.kernels.ivf_flat import search_flat
from lance_core.kernels.ivf_pq import search_pq
from lance_core.kernels.ivf_rq import ROUNDED, RabitCodes, search_rq
from lance_core.kernels.ivf_sq import search_sq
from lance_core.kernels.memory import address_of
from lance_core.kernels.pq_table import NUM_CODES
from lance_core.kernels.rank import rank_centroids
from lance_core.kernels.rq_rotation import NUM_ROUNDS
from lance_core.kernels.topk import TopRows

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

NUM_ROWS = 1_000_000
NUM_PARTITIONS = 1_000
DIMENSION = 128
NUM_SUB_VECTORS = 16
NUM_EXTRA_BITS = 4
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


def rabit_codes() -> RabitCodes:
    """Return the form of codes of one sign and `NUM_EXTRA_BITS` bits per dimension."""
    layout = extra_layout(NUM_EXTRA_BITS, DIMENSION)
    return RabitCodes(
        signs=np.ones((NUM_ROUNDS, DIMENSION), np.float32),
        matrix=np.empty((0, DIMENSION), np.float32),
        num_extra_bits=NUM_EXTRA_BITS,
        row_bytes=layout.row_bytes,
        fields=layout.fields,
        dimensions=layout.dimensions,
        factors=layout.factors,
        is_residual=False,
        is_dot=False,
    )


class Synthetic:
    """Random vectors and codes of the measured size, and one run of each kernel over them."""

    def __init__(self) -> None:
        self.generator = np.random.default_rng(1)
        self.vectors = self._normal(NUM_ROWS, DIMENSION)
        self.centroids = self._normal(NUM_PARTITIONS, DIMENSION)
        self.codebook = self._normal(NUM_SUB_VECTORS, DIMENSION // NUM_SUB_VECTORS, NUM_CODES)
        self.queries = self._normal(500, DIMENSION)
        self.codes = self.generator.integers(0, NUM_CODES, (NUM_ROWS, NUM_SUB_VECTORS), np.uint8)
        self.ordinals = self.generator.permutation(NUM_ROWS).astype(np.uint32)
        self.words = np.full(NUM_ROWS // 64 + 1, 2**64 - 1, np.uint64)
        self.pq_blocks = blocks_of(self.codes, self.ordinals, NUM_SUB_VECTORS)
        self.bytes = self.generator.integers(0, 256, (NUM_ROWS, DIMENSION), np.uint8)
        self.sq_blocks = blocks_of(self.bytes, self.ordinals, DIMENSION)
        self.flat_blocks = blocks_of(self.vectors, self.ordinals, DIMENSION * 4)
        self.rabit = rabit_codes()
        # Errors are such that the signs rule out all but about one row of a hundred.
        self.factors = self.generator.random((3, NUM_ROWS), np.float32)
        self.factors *= np.array([[100], [0.01], [0.1]], np.float32)
        self.rq_blocks = self._rq_blocks()

    def _rq_blocks(self) -> NDArray[np.int64]:
        """Return the block table of RaBitQ: codes, factors and extra codes of each partition."""
        extra = blocks_of(self.bytes, self.ordinals, self.rabit.row_bytes)[:, :1]
        add, scale, error = (blocks_of(row, self.ordinals, 4)[:, :1] for row in self.factors)
        return np.hstack([self.pq_blocks, add, scale, error, extra, add, scale])

    def _normal(self, *shape: int) -> NDArray[np.float32]:
        return self.generator.standard_normal(shape, np.float32)

    def query(self) -> NDArray[np.float32]:
        """Choose a query."""
        chosen: NDArray[np.float32] = self.queries[self.generator.integers(500)].copy()
        return chosen

    def probes(self) -> NDArray[np.int64]:
        """Choose partitions."""
        return self.generator.choice(len(self.pq_blocks), NUM_PROBES, replace=False)

    def rank(self) -> None:
        """Order all partitions."""
        rank_centroids(self.centroids, self.query(), 0)

    def search_pq(self, k: int, *, is_dot: bool = False) -> None:
        """Search partitions of codes."""
        chosen = self.probes()
        top = TopRows(k, NUM_PROBES * ROWS_PER_PARTITION)
        search_pq(
            self.pq_blocks[chosen],
            chosen,
            self.query(),
            self.centroids,
            self.codebook,
            self.words,
            top,
            is_dot=is_dot,
        )
        top.nearest()

    def search_sq(self, *, is_dot: bool = False) -> None:
        """Search partitions of scalar-quantised vectors."""
        top = TopRows(10, NUM_PROBES * ROWS_PER_PARTITION)
        blocks = self.sq_blocks[self.probes()]
        search_sq(blocks, self.query(), (-4.0, 4.0), self.words, top, is_dot=is_dot)
        top.nearest()

    def search_rq(self, k: int, *, use_extra: bool = True) -> None:
        """Search partitions of RaBitQ codes."""
        chosen = self.probes()
        top = TopRows(k, NUM_PROBES * ROWS_PER_PARTITION)
        search_rq(
            self.rq_blocks[chosen],
            chosen,
            self.query(),
            self.centroids,
            self.rabit,
            self.words,
            top,
            levels=ROUNDED,
            use_extra=use_extra,
        )
        top.nearest()

    def search_flat(self, metric: int) -> None:
        """Search partitions of whole vectors."""
        top = TopRows(10, NUM_PROBES * ROWS_PER_PARTITION)
        blocks = self.flat_blocks[self.probes()]
        search_flat(blocks, self.query(), metric, self.words, top)
        top.nearest()

    def scan(self, metric: int, rows: int) -> None:
        """Score the first rows exactly."""
        top = TopRows(10, rows)
        page = np.array([[address_of(self.vectors)], [rows], [0]], np.int64)
        scan_pages(page[0], page[1], page[2], self.query(), metric, self.words, top)
        top.nearest()

    def refine(self) -> None:
        """Score a hundred rows anywhere."""
        rows = self.generator.integers(0, NUM_ROWS, 100)
        score_rows(address_of(self.vectors) + rows * DIMENSION * 4, self.query(), 0)


def main() -> None:
    """Run all measurements."""
    data = Synthetic()
    timed("choosing probes and a query", lambda: (data.probes(), data.query()), 200)
    timed("rank 1,000 centroids", data.rank, 500)
    for k in (10, 100, 400, 1_000, 3_000):
        timed(f"PQ, 64 probes, k' = {k}", partial(data.search_pq, k), 300)
    timed("PQ dot, 64 probes, k' = 100", partial(data.search_pq, 100, is_dot=True), 300)
    for k in (10, 40, 1_000):
        timed(f"RQ, 64 probes, k' = {k}", partial(data.search_rq, k), 300)
    timed("RQ by signs, 64 probes", partial(data.search_rq, 10, use_extra=False), 300)
    timed("SQ, 64 probes", data.search_sq, 200)
    timed("SQ dot, 64 probes", partial(data.search_sq, is_dot=True), 200)
    for metric, name in enumerate(("l2", "cosine", "dot")):
        timed(f"FLAT {name}, 64 probes", partial(data.search_flat, metric), 100)
        timed(f"scan of 100,000, {name}", partial(data.scan, metric, 100_000), 50)
        timed(f"scan of 1M, {name}", partial(data.scan, metric, NUM_ROWS), 10)
    timed("refine 100 rows", data.refine, 500)


if __name__ == "__main__":
    main()
