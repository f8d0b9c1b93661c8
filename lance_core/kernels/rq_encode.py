"""Coding vectors as RaBitQ does: signs of the rotated residual, more bits, and factors.

Vector index page, section 4.4, whose symbols are used: ``r`` is the rotated residual of a vector to
its centroid, ``n2`` the squared length of the residual, and a code stands for a vector ``b`` whose
products with ``r`` and with the rotated centroid make the factors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel
from lance_core.kernels.memory import float32_at
from lance_core.kernels.rq_levels import find_levels, room_for_rises
from lance_core.kernels.rq_rotation import rotate

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CONFIDENCE = 1.9
_LEAST_SQUARE = np.float32(1.1920929e-7)
_BYTE_BITS = 8
_FLOAT_BYTES = 4


@kernel(ordered=True)
def encode_rows(
    address: int,
    partitions: NDArray[np.uint32],
    centroids: NDArray[np.float32],
    rotated_centroids: NDArray[np.float32],
    rotation: tuple[NDArray[np.float32], NDArray[np.float32]],
    is_dot: bool,
    num_extra_bits: int,
    signs: NDArray[np.uint8],
    extra: NDArray[np.uint8],
    factors: NDArray[np.float32],
) -> None:
    """Code ``n`` vectors.

    Parameters
    ----------
    address
        Where the vectors lie, float32, shape ``(n, d)``.
    partitions
        Shape ``(n,)``, below ``P``.
    centroids, rotated_centroids
        Shape ``(P, d)``.
    rotation
        Signs and matrix as `rotate` takes them.
    is_dot
        Whether the metric is dot.
    num_extra_bits
        Bits beside the sign, 0 to 8.
    signs
        Shape ``(n, d / 8)``, zeros: receives the sign codes.
    extra
        Shape ``(n, d)``: receives one extra code a byte; ``(n, 0)`` without extra bits.
    factors
        Shape ``(5, n)``: receives what to add and to scale by, and errors; then what to add and to
        scale by with the extra bits. ``(3, n)`` without these.
    """
    num_rows, dimension = len(partitions), centroids.shape[1]
    residual = np.empty(dimension, np.float32)
    rotated = np.empty(dimension, np.float32)
    levels = np.empty(dimension, np.int32)
    room = room_for_rises(dimension, num_extra_bits)
    for i in range(num_rows):
        vector = float32_at(address + i * dimension * _FLOAT_BYTES, dimension)
        centroid = centroids[partitions[i]]
        for j in range(dimension):
            residual[j] = vector[j] - centroid[j]
        rotate(residual, rotation[0], rotation[1], rotated)
        square = _square(residual)
        own_centre = rotated_centroids[partitions[i]]
        shift = np.float32(1) - _product(rotated, own_centre) if is_dot else np.float32(0)
        _write_signs(rotated, signs[i])
        own, centre = _sign_products(rotated, own_centre)
        _write_factors(square, shift, own, centre, is_dot, factors[:2, i])
        factors[2, i] = _error(square, own, dimension, is_dot)
        if num_extra_bits > 0:
            own, centre = np.float32(0), np.float32(0)
            if _square(rotated) > _LEAST_SQUARE and np.isfinite(_square(rotated)):
                find_levels(rotated, num_extra_bits, levels, room)
                own, centre = _write_extra(rotated, own_centre, levels, num_extra_bits, extra[i])
            else:
                extra[i] = 0
            _write_factors(square, shift, own, centre, is_dot, factors[3:, i])


@kernel
def _square(vector: NDArray[np.float32]) -> np.float32:
    total = np.float32(0)
    for j in range(len(vector)):
        total += vector[j] * vector[j]
    return total


@kernel
def _product(one: NDArray[np.float32], other: NDArray[np.float32]) -> np.float32:
    total = np.float32(0)
    for j in range(len(one)):
        total += one[j] * other[j]
    return total


@kernel
def _write_signs(rotated: NDArray[np.float32], signs: NDArray[np.uint8]) -> None:
    """Set a bit for every coordinate whose sign bit is clear, so that of a zero too."""
    for b in range(len(signs)):
        byte = 0
        for bit in range(_BYTE_BITS):
            byte |= int(not np.signbit(rotated[b * _BYTE_BITS + bit])) << bit
        signs[b] = byte


@kernel
def _sign_products(
    rotated: NDArray[np.float32], centre: NDArray[np.float32]
) -> tuple[np.float32, np.float32]:
    """Return the products of the residual and of the centroid with the code of signs."""
    own, other = np.float32(0), np.float32(0)
    for j in range(len(rotated)):
        half = np.copysign(np.float32(0.5), rotated[j])
        own += rotated[j] * half
        other += centre[j] * half
    return own, other


@kernel
def _write_factors(
    square: np.float32,
    shift: np.float32,
    own: np.float32,
    centre: np.float32,
    is_dot: bool,
    factors: NDArray[np.float32],
) -> None:
    """Write the factor to add and the one to scale by."""
    product = np.float32(0) if own == 0 else square * centre / own
    scale = np.float32(0) if own == 0 else square / own
    if is_dot:
        factors[0] = shift + product
        factors[1] = -scale
    else:
        factors[0] = square + np.float32(2) * product
        factors[1] = np.float32(-2) * scale


@kernel
def _error(square: np.float32, own: np.float32, dimension: int, is_dot: bool) -> np.float32:
    """Return how far off the estimate by the signs may be."""
    if dimension <= 1 or square <= 0 or own == 0:
        return np.float32(0)
    ratio = square * np.float32(dimension * 0.25) / (own * own)
    spread = np.sqrt(max(ratio - np.float32(1), np.float32(0)) / np.float32(dimension - 1))
    error = np.sqrt(square) * np.float32(_CONFIDENCE) * spread
    return np.float32(error if is_dot else np.float32(2) * error)


@kernel
def _write_extra(
    rotated: NDArray[np.float32],
    centre: NDArray[np.float32],
    levels: NDArray[np.int32],
    num_extra_bits: int,
    extra: NDArray[np.uint8],
) -> tuple[np.float32, np.float32]:
    """Write the extra codes; return the products of residual and centroid with the whole code."""
    most = (1 << num_extra_bits) - 1
    own, other = np.float32(0), np.float32(0)
    for j in range(len(rotated)):
        level = levels[j]
        extra[j] = most - level if np.signbit(rotated[j]) else level
        value = np.copysign(np.float32(level) + np.float32(0.5), rotated[j])
        own += rotated[j] * value
        other += centre[j] * value
    return own, other
