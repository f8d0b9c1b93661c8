"""Exact distances between a query and stored vectors: the only place that knows them.

l2 is the squared Euclidean distance, cosine ``1 - cos`` not below 0, dot ``1 - q.x``; these are of
float32 vectors. A zero vector has no cosine distance: the result is NaN, as is that of a vector
with a NaN component. hamming counts the bits that differ between vectors of bytes; the query comes
as floats all the same, which hold bytes exactly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.hamming import as_bytes, hamming_distance
from lance_core.kernels.memory import address_of, float32_at, prefetch_bytes

if TYPE_CHECKING:
    from numpy.typing import NDArray

L2 = 0
COSINE = 1
DOT = 2
HAMMING = 3

_FLOAT_BYTES = 4
# Lengths between these have squares, and products with each other, well inside float32.
_SHORTEST = np.float32(1e-15)
_LONGEST = np.float32(1e15)
# Far enough that a line has arrived when it is needed; 16 rows of 128 dimensions (hot-path, 3).
_AHEAD_BYTES = 8192


@kernel
def squared_l2(vector: NDArray[np.float32], query: NDArray[np.float32]) -> np.float32:
    """Return the squared Euclidean distance of two vectors of shape ``(d,)``."""
    total = np.float32(0)
    for j in range(len(query)):
        gap = vector[j] - query[j]
        total += gap * gap
    return total


@kernel
def inner_product(vector: NDArray[np.float32], query: NDArray[np.float32]) -> np.float32:
    """Return the inner product of two vectors of shape ``(d,)``."""
    total = np.float32(0)
    for j in range(len(query)):
        total += vector[j] * query[j]
    return total


@kernel
def is_extreme(norm: np.float32) -> bool:
    """Tell whether float32 says too little of a vector's length: too short, too long or NaN."""
    return not (_SHORTEST <= norm <= _LONGEST)


@kernel
def cosine_of_extremes(vector: NDArray[np.float32], query: NDArray[np.float32]) -> np.float32:
    """Return the cosine distance of vectors whose squares leave the range of float32."""
    product, square, query_square = 0.0, 0.0, 0.0
    for j in range(len(query)):
        x, q = np.float64(vector[j]), np.float64(query[j])
        product += x * q
        square += x * x
        query_square += q * q
    distance = np.float32(1 - product / (np.sqrt(square) * np.sqrt(query_square)))
    return np.float32(0) if distance < 0 else distance


@kernel
def usual_cosine(
    vector: NDArray[np.float32], query: NDArray[np.float32], query_norm: np.float32
) -> np.float32:
    """Return the cosine distance, NaN where float32 says too little of a length to tell.

    Without a call for the other vectors, which makes loops over this half as slow again.
    """
    product = np.float32(0)
    square = np.float32(0)
    for j in range(len(query)):
        product += vector[j] * query[j]
        square += vector[j] * vector[j]
    norm = np.sqrt(square)
    distance = np.float32(1) - product / (norm * query_norm)
    distance = np.float32(0) if distance < 0 else distance
    return np.float32(np.nan) if is_extreme(norm) or is_extreme(query_norm) else distance


@kernel
def cosine_distance(
    vector: NDArray[np.float32], query: NDArray[np.float32], query_norm: np.float32
) -> np.float32:
    """Return ``1 - cos`` of two vectors of shape ``(d,)``, not below 0; NaN for a zero vector."""
    distance = usual_cosine(vector, query, query_norm)
    return cosine_of_extremes(vector, query) if np.isnan(distance) else distance


@kernel
def exact_distance(
    vector: NDArray[np.float32],
    query: NDArray[np.float32],
    query_norm: np.float32,
    metric: int,
) -> np.float32:
    """Return the distance of two vectors of floats, shape ``(d,)``, under a metric code."""
    # Small enough to become part of the loops that call it; hamming in here made them three times
    # as slow (numba 0.68, 128 dimensions).
    if metric == L2:
        return squared_l2(vector, query)
    if metric == COSINE:
        return cosine_distance(vector, query, query_norm)
    return np.float32(1) - inner_product(vector, query)


@kernel
def stored_bytes(width: int, metric: int) -> int:
    """Return the size of a stored vector of ``width`` numbers."""
    return width if metric == HAMMING else width * _FLOAT_BYTES


@kernel
def score_run(
    address: int,
    count: int,
    query: NDArray[np.float32],
    query_norm: np.float32,
    metric: int,
    distances: NDArray[np.float32],
) -> None:
    """Score ``count`` vectors that lie one after the other at ``address``.

    Writes ``distances[:count]``. Memory behind the run is prefetched too, which is harmless.
    """
    if metric == HAMMING:
        score_byte_run(address, count, as_bytes(query), distances)
    else:
        score_float_run(address, count, query, query_norm, metric, distances)


@kernel
def score_float_run(
    address: int,
    count: int,
    query: NDArray[np.float32],
    query_norm: np.float32,
    metric: int,
    distances: NDArray[np.float32],
) -> None:
    """Write the distances of ``count`` vectors of floats, one after the other."""
    width = len(query)
    row_bytes = width * _FLOAT_BYTES
    for i in range(count):
        row = address + i * row_bytes
        prefetch_bytes(row + _AHEAD_BYTES, row_bytes)
        vector = float32_at(row, width)
        # `exact_distance` would do the same in twice the time.
        if metric == L2:
            distances[i] = squared_l2(vector, query)
        elif metric == COSINE:
            distances[i] = usual_cosine(vector, query, query_norm)
        else:
            distances[i] = np.float32(1) - inner_product(vector, query)
    if metric == COSINE:
        for i in range(count):
            if np.isnan(distances[i]):
                vector = float32_at(address + i * row_bytes, width)
                distances[i] = cosine_of_extremes(vector, query)


@kernel
def score_byte_run(
    address: int, count: int, query: NDArray[np.uint8], distances: NDArray[np.float32]
) -> None:
    """Write the hamming distances of ``count`` vectors of bytes, one after the other."""
    width = len(query)
    asked = query.ctypes.data
    for i in range(count):
        row = address + i * width
        prefetch_bytes(row + _AHEAD_BYTES, width)
        distances[i] = hamming_distance(row, asked, width)


@warmup
def _warm() -> None:
    vectors, distances = np.ones((2, 4), np.float32), np.empty(2, np.float32)
    score_run(address_of(vectors), 2, vectors[0].copy(), np.float32(2), HAMMING, distances)
