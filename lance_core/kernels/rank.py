"""Ranking the partitions of a segment by the distance of the query to their centroids."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.distance import DOT, L2, exact_distance
from lance_core.kernels.topk import pack_key, split_keys

if TYPE_CHECKING:
    from numpy.typing import NDArray


def rank_centroids(
    centroids: NDArray[np.float32], query: NDArray[np.float32], metric: int
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
        their centroids are means of unit vectors, and the length of a mean matters.

    Returns
    -------
    tuple
        Partition ids, shape ``(P,)``, nearest first; and their distances, shape ``(P,)``,
        ascending. A partition whose centroid holds NaN comes last, at an infinite distance.

    Notes
    -----
    Vector index page, section 3.
    """
    keys = np.empty(len(centroids), np.uint64)
    centroid_keys(centroids, query, DOT if metric == DOT else L2, keys)
    keys.sort()
    distances = np.empty(len(keys), np.float32)
    partitions = np.empty(len(keys), np.uint32)
    split_keys(keys, distances, partitions)
    return partitions.astype(np.int64), distances


@kernel
def centroid_keys(
    centroids: NDArray[np.float32],
    query: NDArray[np.float32],
    metric: int,
    keys: NDArray[np.uint64],
) -> None:
    """Write the sort key of every partition, shape ``(P,)``."""
    for partition in range(len(centroids)):
        distance = exact_distance(centroids[partition], query, np.float32(1), metric)
        if np.isnan(distance):
            distance = np.float32(np.inf)
        keys[partition] = pack_key(distance, np.uint32(partition))


@warmup
def _warm() -> None:
    rank_centroids(np.ones((2, 4), np.float32), np.ones(4, np.float32), 0)
