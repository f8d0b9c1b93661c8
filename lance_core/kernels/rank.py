"""Ranking the partitions of a segment by the distance of the query to their centroids."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.distance import COSINE, HAMMING, L2, inner_product, squared_l2
from lance_core.kernels.hamming import differing_bits
from lance_core.kernels.memory import float32_at
from lance_core.kernels.topk import keep_smallest, pack_key, write_sorted
from lance_core.kernels.uncounted import uncounted

if TYPE_CHECKING:
    from numpy.typing import NDArray


_FLOAT_BYTES = 4
_FEW_FLOATS = 1 << 18
"""About 40 microseconds of work."""


def rank_centroids(
    centroids: NDArray[np.float32],
    query: NDArray[np.float32],
    metric: int,
    wanted: int | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Order partitions by centroid distance, ties by partition.

    Parameters
    ----------
    centroids
        Shape ``(P, d)``, C-contiguous and writable.
    query
        Shape ``(d,)``, C-contiguous and writable; of unit length for cosine.
    metric
        Code of `lance_core.kernels.distance`. Partitions of a cosine segment are ranked by l2:
        their centroids are means of unit vectors, and the length of a mean matters. For hamming
        the centroids are bytes held as floats.
    wanted
        How many of the nearest partitions to return; None = all.

    Returns
    -------
    tuple
        Partition ids, shape ``(min(P, wanted),)``, nearest first; and their distances, of the same
        shape, ascending. A partition whose centroid holds NaN comes last, at an infinite distance.

    Notes
    -----
    Vector index page, section 3.
    """
    keys = np.empty(len(centroids), np.uint64)
    count = len(keys) if wanted is None else min(wanted, len(keys))
    find = nearest_of_few if centroids.size <= _FEW_FLOATS else nearest_centroids
    find(centroids, query, L2 if metric == COSINE else metric, keys, count)
    distances = np.empty(count, np.float32)
    partitions = np.empty(count, np.int64)
    write_sorted(keys[:count], distances, partitions)
    return partitions, distances


@kernel
def nearest_centroids(
    centroids: NDArray[np.float32],
    query: NDArray[np.float32],
    metric: int,
    keys: NDArray[np.uint64],
    count: int,
) -> None:
    """Write the sort key of every partition, shape ``(P,)``, the smallest ``count`` in front."""
    asked = uncounted(query)
    dimension = len(asked)
    for partition in range(len(centroids)):
        # By address: counting views costs more than looking at what they show.
        centroid = float32_at(
            centroids.ctypes.data + partition * dimension * _FLOAT_BYTES, dimension
        )
        if metric == HAMMING:
            distance = differing_bits(centroid, asked)
        elif metric == L2:  # `exact_distance` would take three times as long
            distance = squared_l2(centroid, asked)
        else:
            distance = np.float32(1) - inner_product(centroid, asked)
        if np.isnan(distance):
            distance = np.float32(np.inf)
        keys[partition] = pack_key(distance, np.uint32(partition))
    if 0 < count < len(keys):
        keep_smallest(keys, count)


@kernel(brief=True)
def nearest_of_few(
    centroids: NDArray[np.float32],
    query: NDArray[np.float32],
    metric: int,
    keys: NDArray[np.uint64],
    count: int,
) -> None:
    """Do the same, for few centroids."""
    nearest_centroids(centroids, query, metric, keys, count)


@warmup
def _warm() -> None:
    few = np.ones((2, 4), np.float32)
    rank_centroids(few, few[0].copy(), 0, 1)
    nearest_centroids(few, few[0].copy(), 0, np.empty(2, np.uint64), 1)
