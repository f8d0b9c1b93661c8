"""What k-means does differently for vectors of floats, of directions, and of bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np

from lance_core.index.vector.build.assign import assign, assign_bytes, share_rows
from lance_core.index.vector.metric import Metric
from lance_core.kernels.cluster_sums import add_bits, add_rows, measure_l2
from lance_core.kernels.memory import address_of
from lance_core.kernels.pq_encode import encode_sub_vectors

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

Number = TypeVar("Number", np.float32, np.uint8)

_BYTE_BITS = 8


class Space(Protocol[Number]):
    """Vectors and centroids of shape ``(n, d)`` and ``(P, d)``, and what is near."""

    def assign(
        self, vectors: NDArray[Number], centroids: NDArray[Number]
    ) -> tuple[NDArray[np.uint32], NDArray[np.float32]]:
        """Return the nearest centroid of each vector and its distance, shape ``(n,)`` each."""

    def centroids_of(
        self,
        vectors: NDArray[Number],
        labels: NDArray[np.uint32],
        counts: NDArray[np.int64],
        previous: NDArray[Number],
    ) -> NDArray[Number]:
        """Return the centre of the vectors of each label, ``previous`` where there are none."""

    def as_centroids(self, vectors: NDArray[Number]) -> NDArray[Number]:
        """Return vectors as centroids."""


@dataclass(frozen=True, slots=True)
class FloatSpace:
    """Vectors of float32: centroids are means, with dot their directions.

    Parameters
    ----------
    metric
        ``l2``, ``cosine`` or ``dot``.
    num_threads
        Threads that share the work.
    """

    metric: Metric
    num_threads: int

    def assign(
        self, vectors: NDArray[np.float32], centroids: NDArray[np.float32]
    ) -> tuple[NDArray[np.uint32], NDArray[np.float32]]:
        """Return the nearest centroid of each vector and its distance."""
        return assign(vectors, centroids, self.metric, num_threads=self.num_threads)

    def centroids_of(
        self,
        vectors: NDArray[np.float32],
        labels: NDArray[np.uint32],
        counts: NDArray[np.int64],
        previous: NDArray[np.float32],
    ) -> NDArray[np.float32]:
        """Return means, or their directions."""
        shape = (len(counts), vectors.shape[1])
        sums = _summed(add_rows, vectors, labels, shape, self.num_threads)
        if self.metric == Metric.DOT:
            return _directions(sums, previous)
        means = sums / np.maximum(counts, 1)[:, np.newaxis]
        return np.where(counts[:, np.newaxis] > 0, means, previous).astype(np.float32)

    def as_centroids(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the vectors, or their directions."""
        if self.metric == Metric.DOT:
            return _directions(vectors.astype(np.float64), np.zeros_like(vectors))
        return vectors


@dataclass(frozen=True, slots=True)
class ShortSpace(FloatSpace):
    """Vectors of few coordinates with at most 256 centroids, for one thread; squared l2."""

    metric: Metric = Metric.L2
    num_threads: int = 1

    def assign(
        self, vectors: NDArray[np.float32], centroids: NDArray[np.float32]
    ) -> tuple[NDArray[np.uint32], NDArray[np.float32]]:
        """Return the nearest centroid of each vector and its distance."""
        num_rows, width = vectors.shape
        codes, labels = np.empty((num_rows, 1), np.uint8), np.zeros(num_rows, np.uint32)
        nothing = np.empty((0, width), np.float32)
        codebook = np.ascontiguousarray(centroids.T)[np.newaxis]
        encode_sub_vectors(address_of(vectors), labels, nothing, codebook, codes)
        labels[:] = codes[:, 0]
        distances = np.empty(num_rows, np.float32)
        measure_l2(address_of(vectors), address_of(centroids), width, labels, distances)
        return labels, distances


@dataclass(frozen=True, slots=True)
class BitSpace:
    """Vectors of bytes under hamming: a bit of a centroid is that of most vectors."""

    num_threads: int

    def assign(
        self, vectors: NDArray[np.uint8], centroids: NDArray[np.uint8]
    ) -> tuple[NDArray[np.uint32], NDArray[np.float32]]:
        """Return the nearest centroid of each vector and its distance."""
        return assign_bytes(vectors, centroids, num_threads=self.num_threads)

    def centroids_of(
        self,
        vectors: NDArray[np.uint8],
        labels: NDArray[np.uint32],
        counts: NDArray[np.int64],
        previous: NDArray[np.uint8],
    ) -> NDArray[np.uint8]:
        """Return the bits that more than half of the vectors have."""
        shape = (len(counts), vectors.shape[1] * _BYTE_BITS)
        sums = _summed(add_bits, vectors, labels, shape, self.num_threads)
        bits = np.packbits(sums * 2 > counts[:, np.newaxis], axis=1, bitorder="little")
        return np.where(counts[:, np.newaxis] > 0, bits, previous)

    def as_centroids(self, vectors: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return the vectors."""
        return vectors


def _summed(
    add: Callable[[int, NDArray[np.uint32], NDArray[np.float64]], None],
    vectors: NDArray[np.float32] | NDArray[np.uint8],
    labels: NDArray[np.uint32],
    shape: tuple[int, int],
    num_threads: int,
) -> NDArray[np.float64]:
    """Add up the vectors of each label: each thread those of its share, then in their order."""
    sums: dict[int, NDArray[np.float64]] = {}

    def work(start: int, end: int) -> None:
        sums[start] = np.zeros(shape, np.float64)
        add(address_of(vectors[start:end]), labels[start:end], sums[start])

    share_rows(len(vectors), work, num_threads)
    total = sums.pop(0)
    for start in sorted(sums):
        total += sums[start]
    return total


def _directions(sums: NDArray[np.float64], previous: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale rows to unit length; ``previous`` where there is no direction, else the first axis."""
    directions = np.where(np.any(sums != 0, axis=1)[:, np.newaxis], sums, previous)
    directions[~directions.any(axis=1), 0] = 1
    directions /= np.abs(directions).max(axis=1, keepdims=True)
    lengths = np.linalg.norm(directions, axis=1, keepdims=True)
    return np.asarray(directions / lengths, np.float32)
