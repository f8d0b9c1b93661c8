"""Coding vectors by product quantisation: the nearest of the codes of every sub-vector."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel
from lance_core.kernels.memory import float32_at

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BLOCK_ROWS = 256
"""So many rows are coded by one sub-vector's codes before these make way for the next one's."""

_FLOAT_BYTES = 4


@kernel
def encode_sub_vectors(
    address: int,
    partitions: NDArray[np.uint32],
    centroids: NDArray[np.float32],
    codebook: NDArray[np.float32],
    codes: NDArray[np.uint8],
) -> None:
    """Write the code of each sub-vector of ``n`` vectors.

    Parameters
    ----------
    address
        Where the vectors lie, float32, shape ``(n, d)``.
    partitions
        Shape ``(n,)``, below ``P``.
    centroids
        Shape ``(P, d)``: what is taken from vectors before; ``(0, d)`` to take nothing.
    codebook
        Shape ``(m, d / m, K)``, ``K`` up to 256.
    codes
        Shape ``(n, m)``: receives the nearest code by l2, the first of equally near ones.
    """
    num_rows, num_subs = codes.shape
    width = codebook.shape[1]
    dimension = num_subs * width
    part = np.empty(width, np.float32)
    distances = np.empty(codebook.shape[2], np.float32)
    for first in range(0, num_rows, _BLOCK_ROWS):
        for j in range(num_subs):
            for i in range(first, min(first + _BLOCK_ROWS, num_rows)):
                at = i * dimension + j * width
                vector = float32_at(address + at * _FLOAT_BYTES, width)
                if len(centroids) > 0:
                    centroid = centroids[partitions[i], j * width : (j + 1) * width]
                    for s in range(width):
                        part[s] = vector[s] - centroid[s]
                else:
                    part[:] = vector
                _fill_distances(part, codebook[j], distances)
                codes[i, j] = _first_least(distances)


@kernel
def _fill_distances(
    part: NDArray[np.float32], codes: NDArray[np.float32], distances: NDArray[np.float32]
) -> None:
    """Write the squared distance to every code; four coordinates a pass, which halves the time."""
    whole = len(part) - len(part) % 4
    distances[:] = 0
    for s in range(0, whole, 4):
        one, two, three, four = codes[s], codes[s + 1], codes[s + 2], codes[s + 3]
        a, b, c, d = part[s], part[s + 1], part[s + 2], part[s + 3]
        for k in range(len(distances)):
            total = (one[k] - a) * (one[k] - a) + (two[k] - b) * (two[k] - b)
            total += (three[k] - c) * (three[k] - c) + (four[k] - d) * (four[k] - d)
            distances[k] += total
    for s in range(whole, len(part)):
        values, a = codes[s], part[s]
        for k in range(len(distances)):
            distances[k] += (values[k] - a) * (values[k] - a)


@kernel
def _first_least(distances: NDArray[np.float32]) -> int:
    """Return the place of the least number, all of which are 0 or more.

    Their bits order as they do, and whole numbers are compared many at a time: all of them twice,
    which is faster than to stop at the place.
    """
    bits = distances.view(np.int32)
    least = bits[0]
    for k in range(len(bits)):
        least = min(least, bits[k])
    place = after = np.int32(len(bits))
    for k in range(len(bits)):
        place = min(place, np.int32(k) if bits[k] == least else after)
    return int(place)
