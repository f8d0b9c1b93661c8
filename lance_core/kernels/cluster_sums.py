"""What a round of k-means needs to know of the rows of each cluster.

Vectors and centroids come by address: those of a caller may be read-only. Sums are float64: a
cluster may have millions of rows, and the squares of long vectors leave float32.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel
from lance_core.kernels.distance import inner_product, squared_l2
from lance_core.kernels.hamming import hamming_distance
from lance_core.kernels.memory import bytes_at, float32_at

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BYTE_BITS = 8
_FLOAT_BYTES = 4


@kernel
def measure_l2(
    vectors: int,
    centroids: int,
    dimension: int,
    labels: NDArray[np.uint32],
    distances: NDArray[np.float32],
) -> None:
    """Write the squared distance of each row to the centroid of its label, shape ``(n,)``."""
    row_bytes = dimension * _FLOAT_BYTES
    for i in range(len(labels)):
        vector = float32_at(vectors + i * row_bytes, dimension)
        centroid = float32_at(centroids + int(labels[i]) * row_bytes, dimension)
        distances[i] = squared_l2(vector, centroid)


@kernel
def measure_dot(
    vectors: int,
    centroids: int,
    dimension: int,
    labels: NDArray[np.uint32],
    distances: NDArray[np.float32],
) -> None:
    """Write ``1 - x.c`` of each row and the centroid of its label, shape ``(n,)``."""
    row_bytes = dimension * _FLOAT_BYTES
    for i in range(len(labels)):
        vector = float32_at(vectors + i * row_bytes, dimension)
        centroid = float32_at(centroids + int(labels[i]) * row_bytes, dimension)
        distances[i] = np.float32(1) - inner_product(vector, centroid)


@kernel
def add_rows(vectors: int, labels: NDArray[np.uint32], sums: NDArray[np.float64]) -> None:
    """Add each row of floats to the sum of its cluster, shape ``(P, d)``."""
    dimension = sums.shape[1]
    for i in range(len(labels)):
        vector = float32_at(vectors + i * dimension * _FLOAT_BYTES, dimension)
        total = sums[labels[i]]
        for j in range(dimension):
            total[j] += vector[j]


@kernel
def add_bits(vectors: int, labels: NDArray[np.uint32], sums: NDArray[np.float64]) -> None:
    """Count the bits that are set in the rows of each cluster, shape ``(P, 8 d)``.

    Bit ``i`` of byte ``j`` is counted at ``8 j + i``.
    """
    width = sums.shape[1] // _BYTE_BITS
    for i in range(len(labels)):
        vector = bytes_at(vectors + i * width, width)
        total = sums[labels[i]]
        for j in range(width):
            for bit in range(_BYTE_BITS):
                total[j * _BYTE_BITS + bit] += (vector[j] >> bit) & 1


@kernel
def nearest_bytes(
    vectors: int,
    centroids: int,
    num_centroids: int,
    width: int,
    labels: NDArray[np.uint32],
    distances: NDArray[np.float32],
) -> None:
    """Write which centroid is nearest to each row by hamming, and how far it is; ``(n,)`` each.

    Of several that are as near the first.
    """
    for i in range(len(labels)):
        nearest, label = np.float32(np.inf), 0
        for j in range(num_centroids):
            distance = hamming_distance(vectors + i * width, centroids + j * width, width)
            if distance < nearest:
                nearest, label = distance, j
        labels[i] = label
        distances[i] = nearest
