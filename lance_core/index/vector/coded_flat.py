"""Partitions of whole vectors, searched through byte codes that are made while they are in use.

Codes are a fourth of the vectors and tell most rows apart from the nearest; what is found equals
what a scan of the vectors finds, bit for bit (see `lance_core.kernels.coded_scan`).
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from lance_core.cache.keys import CacheKey
from lance_core.cache.shares import most_bytes_of_codes
from lance_core.index.vector.flat import FlatVectors
from lance_core.kernels.coded_scan import scan_coded_pages
from lance_core.kernels.memory import address_of
from lance_core.kernels.vector_codes import FIRST_PART, MOST_DIMENSIONS, encode_vectors

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from lance_core.cache.byte_cache import ByteCache
    from lance_core.index.vector.held_partitions import HeldPartitions
    from lance_core.index.vector.metric import Metric
    from lance_core.index.vector.quantizer import SearchOptions
    from lance_core.index.vector.segment import VectorSegment
    from lance_core.kernels.topk import TopRows

_CODED_PART = 16
"""A search codes one row for so many that it scores, which takes about half as long again."""
_MOST_NUMBERS = 1 << 23
"""About 10 milliseconds of work: larger partitions are scored whole."""


class PartitionCodes:
    """Codes of the vectors of a segment, partition after partition; shared between threads.

    Parameters
    ----------
    segment
        A segment of whole vectors.
    metric
        What the codes serve, l2 or cosine.
    """

    def __init__(self, segment: VectorSegment, metric: Metric) -> None:
        width, self._metric = segment.dimension, metric
        part = min(width, FIRST_PART)
        # Memory is taken as it is written to.
        self._first = np.empty((segment.num_rows, part), np.uint8)
        self._rest = np.empty((segment.num_rows, width - part), np.uint8)
        self._offsets = segment.offsets
        self._is_done = np.zeros(segment.num_partitions, np.bool_)
        self._is_done[segment.lengths * width > _MOST_NUMBERS] = True
        self._num_rows = 0
        self._lock = Lock()
        self._told: Callable[[], object] = _ignore
        self._places: NDArray[np.int64] = np.zeros((segment.num_partitions, 3), np.int64)
        self.grids: NDArray[np.float64] = np.zeros((segment.num_partitions, 4), np.float64)
        """What `scan_coded_pages` takes, a grid for each partition."""

    @property
    def nbytes(self) -> int:
        """Memory of the codes made so far, and of where they are."""
        row_bytes = self._first.shape[1] + self._rest.shape[1]
        return int(self._num_rows * row_bytes + self._places.nbytes + self.grids.nbytes)

    def watch_growth(self, told: Callable[[], object]) -> None:
        """Call ``told`` from now on after more was coded."""
        self._told = told

    def pages(self, held: HeldPartitions) -> NDArray[np.int64]:
        """Return partitions as `scan_coded_pages` takes them, with the codes that there are."""
        found = np.zeros((len(held.partitions), 7), np.int64)
        found[:, 0] = held.rows[:, 0]
        found[:, 1] = held.rows[:, 2]
        found[:, 3] = held.rows[:, 1]
        found[:, 4:] = self._places[held.partitions]
        return found

    def advance(self, held: HeldPartitions) -> None:
        """Code some more of the partitions that a search holds, unless another thread does so."""
        missing = np.flatnonzero(~self._is_done[held.partitions])
        if len(missing) == 0 or not self._lock.acquire(blocking=False):
            return
        try:
            rows_left = held.num_rows // _CODED_PART
            for each in missing.tolist():
                self._code(int(held.partitions[each]), int(held.rows[each, 0]), held.rows[each, 2])
                rows_left -= int(held.rows[each, 2])
                if rows_left <= 0:
                    break
        finally:
            self._lock.release()
        self._told()

    def _code(self, partition: int, address: int, num_rows: int) -> None:
        start = int(self._offsets[partition])
        rows = slice(start, start + int(num_rows))
        first, rest = self._first[rows], self._rest[rows]
        grid = None
        if num_rows > 0 and not self._is_done[partition]:
            grid = encode_vectors(address, self._metric.code, first, rest)
        if grid is not None:
            self.grids[partition] = grid
            self._places[partition] = address_of(first), address_of(rest), partition
            self._num_rows += len(first)
        self._is_done[partition] = True


class CodedFlat:
    """Searches partitions of whole vectors, through codes as far as these are made.

    Parameters
    ----------
    segment
        A segment of whole vectors.
    metric
        What its codes serve.
    cache
        Keeps the codes.
    store_key
        Names the store of the segment in the cache.
    """

    def __init__(
        self, segment: VectorSegment, metric: Metric, cache: ByteCache, store_key: str
    ) -> None:
        self._segment = segment
        self._cache = cache
        self._coded_for = metric
        self._key = CacheKey("partition codes", store_key, segment.uuid)

    def search(
        self,
        held: HeldPartitions,
        query: NDArray[np.float32],
        words: NDArray[np.uint64],
        top: TopRows,
        options: SearchOptions,
    ) -> None:
        """Offer every row that may be among the nearest."""
        del options
        codes = self._cache.get_or_load(
            self._key, lambda: PartitionCodes(self._segment, self._coded_for)
        )
        codes.advance(held)
        metric = self._segment.metric.code
        scan_coded_pages(codes.pages(held), codes.grids, query[np.newaxis], metric, words, [top])


def coded_flat(segment: VectorSegment, cache: ByteCache, store_key: str) -> CodedFlat | None:
    """Return what searches a segment through codes, None where it has no use for them.

    Graphs are walked from vector to vector, and quantised vectors are codes already.
    """
    metric = segment.metric.coded_for
    if segment.graph is not None or not isinstance(segment.quantizer, FlatVectors):
        return None
    num_numbers = segment.num_rows * segment.dimension
    if segment.dimension > MOST_DIMENSIONS or num_numbers > most_bytes_of_codes(cache):
        return None
    return None if metric is None else CodedFlat(segment, metric, cache, store_key)


def _ignore() -> None:
    """Stand in for who wants to know of growth."""
