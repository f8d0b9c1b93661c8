"""Which partition each vector belongs to: the one whose centroid is nearest."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from lance_core.index.vector.build.scores import BlockScores, tile_centroids
from lance_core.index.vector.metric import Metric
from lance_core.kernels.cluster_sums import measure_dot, measure_l2, nearest_bytes
from lance_core.kernels.memory import address_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

NUM_THREADS = 2
_ROWS_WORTH_A_THREAD = 4096


def assign(
    vectors: NDArray[np.float32],
    centroids: NDArray[np.float32],
    metric: Metric,
    *,
    num_threads: int = NUM_THREADS,
) -> tuple[NDArray[np.uint32], NDArray[np.float32]]:
    """Find the partition of each vector.

    Parameters
    ----------
    vectors
        Shape ``(n, d)``; finite, and of unit length with cosine.
    centroids
        Shape ``(P, d)``, finite.
    metric
        ``l2``, ``cosine`` or ``dot``.
    num_threads
        Threads that share the rows.

    Returns
    -------
    partition
        Shape ``(n,)``.
    distance
        Shape ``(n,)``: ``1 - x.c`` with dot, else the squared distance to the centroid; infinite
        where that leaves float32.

    Notes
    -----
    Rounding decides between centroids that are about as near. Vector index page, section 3.
    """
    is_dot = metric == Metric.DOT
    measure = measure_dot if is_dot else measure_l2
    rows, known = np.ascontiguousarray(vectors), np.ascontiguousarray(centroids)
    tiled = tile_centroids(known, is_dot=is_dot)
    partition, distance = _empty_answer(len(rows))

    def find(start: int, end: int) -> None:
        scores = BlockScores(tiled)
        for first in range(start, end, scores.rows_at_once):
            part = slice(first, min(first + scores.rows_at_once, end))
            partition[part] = scores.nearest(rows[part])
            measure(
                address_of(rows[part]),
                address_of(known),
                rows.shape[1],
                partition[part],
                distance[part],
            )

    share_rows(len(rows), find, num_threads)
    return partition, distance


def assign_bytes(
    vectors: NDArray[np.uint8], centroids: NDArray[np.uint8], *, num_threads: int = NUM_THREADS
) -> tuple[NDArray[np.uint32], NDArray[np.float32]]:
    """Find the partition of each vector of bytes, shape ``(n, d)``, by the bits that differ.

    Returns partition and distance as `assign` does, of centroids that are as near the first.
    """
    rows, known = np.ascontiguousarray(vectors), np.ascontiguousarray(centroids)
    partition, distance = _empty_answer(len(rows))

    def find(start: int, end: int) -> None:
        nearest_bytes(
            address_of(rows[start:end]),
            address_of(known),
            len(known),
            known.shape[1],
            partition[start:end],
            distance[start:end],
        )

    share_rows(len(rows), find, num_threads)
    return partition, distance


def share_rows(
    num_rows: int, work: Callable[[int, int], None], num_threads: int = NUM_THREADS
) -> None:
    """Have threads do equal shares of the rows; ``work`` is given the first row and the end.

    Shares depend on the number of rows alone, so that what is added up in each is the same again.
    """
    num_shares = min(num_threads, max(1, num_rows // _ROWS_WORTH_A_THREAD))
    if num_shares == 1:
        work(0, num_rows)
        return
    bounds = [num_rows * share // num_shares for share in range(num_shares + 1)]
    with ThreadPoolExecutor(num_shares, "lance-build") as pool:
        for done in [pool.submit(work, *pair) for pair in pairwise(bounds)]:
            done.result()


def _empty_answer(num_rows: int) -> tuple[NDArray[np.uint32], NDArray[np.float32]]:
    return np.empty(num_rows, np.uint32), np.empty(num_rows, np.float32)
