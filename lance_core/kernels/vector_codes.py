"""Bytes in place of floats: codes that tell most rows of an exact scan apart from the nearest ones.

A vector becomes one byte for each dimension, on one grid for all: ``start + step * code`` lies
near the number. With the largest Euclidean distance that any vector has from its codes, distances
of codes bound those of vectors from below. For cosine vectors are brought to unit length first:
the squared distance of such is twice the cosine distance. For dot the codes are those for l2:
``|x - q|^2 = |x|^2 + |q|^2 - 2 q.x``, so what no vector exceeds in length bounds inner products.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.distance import COSINE, L2
from lance_core.kernels.memory import address_of, bytes_at, float32_at, uint32_at

if TYPE_CHECKING:
    from numpy.typing import NDArray

LARGEST_CODE = 255
FIRST_PART = 64
"""Dimensions whose codes lie apart from the rest: of most vectors these are enough."""
MOST_DIMENSIONS = 1 << 15
"""Sums of squared gaps of bytes have to fit 31 bits."""

_FLOAT_BYTES = 4
_SIXTEEN_DIGITS = 1e-14  # what float64 numbers of size 1 may be wrong by after some steps
_NINE_DIGITS = 1e-9  # far more than what sums of squares are wrong by
_SIGNLESS = np.int32(0x7FFF_FFFF)
_MAGNITUDE = np.uint32(0x7FFF_FFFF)
_INFINITY = np.uint32(0x7F80_0000)
# Squared lengths between which float32 sums of squares neither vanish nor overflow.
_SHORTEST, _LONGEST = 1e-30, 1e30


class Grid(NamedTuple):
    """What codes stand for: numbers from ``start`` on, ``step`` apart.

    ``error`` is an upper bound of the distance of any vector from its codes, ``longest`` the
    largest squared length, infinite if a vector is not finite.
    """

    start: float
    step: float
    error: float
    longest: float


def encode_vectors(
    address: int, metric: int, first: NDArray[np.uint8], rest: NDArray[np.uint8]
) -> Grid | None:
    """Write the codes of vectors that lie one after the other; None if they cannot be coded.

    Parameters
    ----------
    address
        Where the first vector, of float32, lies.
    metric
        L2 or COSINE.
    first, rest
        Shape ``(n, part of d)`` each, C-contiguous: receive the codes of the first dimensions and
        of the others.
    """
    count, width = len(first), first.shape[1] + rest.shape[1]
    bounds, largest = np.array([np.inf, -np.inf]), np.zeros(2, np.float64)
    find_range(address, count, width, metric, bounds)
    if not np.isfinite(bounds).all():
        return None
    start, step = grid_over(bounds)
    places = (address_of(first), address_of(rest))
    encode_run(address, count, width, metric, start, step, *places, largest)
    return finished_grid(start, step, width, largest)


def grid_over(bounds: NDArray[np.float64]) -> tuple[float, float]:
    """Return start and step of a grid from the smallest to the largest number."""
    start, span = float(bounds[0]), float(bounds[1] - bounds[0])
    return start, span / LARGEST_CODE if span > 0 else 1.0


def finished_grid(start: float, step: float, width: int, largest: NDArray[np.float64]) -> Grid:
    """Return a grid with what `encode_run` found of all vectors on it."""
    error = largest_miss(float(np.sqrt(largest[0])), width, start, step)
    return Grid(start, step, error, float(largest[1]))


@kernel
def is_finite(vector: NDArray[np.uint32]) -> bool:
    """Tell whether all floats, given by their bits, are finite."""
    largest = np.uint32(0)
    for j in range(len(vector)):
        largest = max(largest, np.uint32(vector[j] & _MAGNITUDE))
    return bool(largest < _INFINITY)


@kernel
def code_scale(vector: NDArray[np.float32], metric: int) -> float:
    """Return by what to multiply a vector of finite numbers before it is coded.

    For cosine 0 stands for a zero vector, NaN for one whose float32 length says nothing.
    """
    if metric != COSINE:
        return 1.0
    square, is_zero = 0.0, True
    for j in range(len(vector)):
        square += np.float64(vector[j]) * np.float64(vector[j])
        is_zero &= vector[j] == 0
    if is_zero:
        return 0.0
    return 1 / np.sqrt(square) if _SHORTEST <= square <= _LONGEST else np.nan


@kernel
def float_of(order: np.int32) -> np.float32:
    """Return the float of a number that `extremes` compares."""
    bits = np.int32(order ^ (np.int32(order >> np.int32(31)) & _SIGNLESS))
    found: np.float32 = bits.view(np.float32)
    return found


@kernel
def extremes(vector: NDArray[np.uint32]) -> tuple[np.float32, np.float32]:
    """Return the smallest and the largest of some finite floats, given by their bits."""
    smallest, largest = np.int32(0x7FFF_FFFF), np.int32(-0x8000_0000)
    for j in range(len(vector)):
        # Whole numbers in the order of the floats: comparing floats takes four times as long.
        bits = np.int32(vector[j])
        order = np.int32(bits ^ (np.int32(bits >> np.int32(31)) & _SIGNLESS))
        smallest, largest = min(smallest, order), max(largest, order)
    return float_of(smallest), float_of(largest)


@kernel
def find_range(
    address: int, count: int, width: int, metric: int, bounds: NDArray[np.float64]
) -> None:
    """Widen ``bounds``, the smallest and the largest number, by those of ``count`` vectors.

    Vectors that hold NaN or infinity do not count. Both bounds become NaN by a vector that cannot
    be coded, and stay so.
    """
    if np.isnan(bounds[0]):
        return
    for i in range(count):
        row = address + i * width * _FLOAT_BYTES
        bits = uint32_at(row, width)
        smallest, largest = extremes(bits)
        if not (np.isfinite(smallest) and np.isfinite(largest)):
            continue
        scale = code_scale(float32_at(row, width), metric)
        if np.isnan(scale):
            bounds[:] = np.nan
            return
        bounds[0] = min(bounds[0], smallest * scale)
        bounds[1] = max(bounds[1], largest * scale)


@kernel
def encode_numbers(
    vector: NDArray[np.float32], scale: float, start: float, step: float, codes: NDArray[np.uint8]
) -> float:
    """Write the codes of some dimensions; return the square of their distance from these."""
    square = 0.0
    factor = scale / step
    for j in range(len(vector)):
        number = np.float64(vector[j])
        # Halves are added before the cut, which rounds; inside the range nothing leaves a byte.
        code = np.int32(number * factor - start / step + 0.5)
        code = min(max(code, np.int32(0)), np.int32(LARGEST_CODE))
        codes[j] = np.uint8(code)
        miss = number * scale - (start + step * np.float64(code))
        square += miss * miss
    return square


@kernel
def encode_run(
    address: int,
    count: int,
    width: int,
    metric: int,
    start: float,
    step: float,
    first_place: int,
    rest_place: int,
    largest: NDArray[np.float64],
) -> None:
    """Write the codes of ``count`` vectors, of the first dimensions to one place, then the rest.

    ``largest`` is raised to the largest squared distance of any from its codes and to the largest
    squared length. Vectors that hold NaN or infinity get any codes, and count by length only.
    """
    part = min(width, FIRST_PART)
    rest = width - part
    for i in range(count):
        row = address + i * width * _FLOAT_BYTES
        first_codes = bytes_at(first_place + i * part, part)
        rest_codes = bytes_at(rest_place + i * rest, rest)
        if is_finite(uint32_at(row, width)):
            vector = float32_at(row, width)
            scale = code_scale(vector, metric)
            square = encode_numbers(vector[:part], scale, start, step, first_codes)
            square += encode_numbers(vector[part:], scale, start, step, rest_codes)
            largest[0] = max(largest[0], square)
            largest[1] = max(largest[1], squared_length(vector))
        else:
            largest[1] = np.inf
            first_codes[:] = 0
            rest_codes[:] = 0


@kernel
def squared_length(vector: NDArray[np.float32]) -> float:
    """Return the inner product of a vector with itself."""
    total = 0.0
    for j in range(len(vector)):
        total += np.float64(vector[j]) * np.float64(vector[j])
    return total


@kernel
def largest_miss(missed: float, width: int, start: float, step: float) -> float:
    """Return a distance from codes that is not below the true one, given as it was computed."""
    size = abs(start) + LARGEST_CODE * step
    return float(missed * (1 + _NINE_DIGITS) + np.sqrt(width) * size * _SIXTEEN_DIGITS)


@warmup
def _warm() -> None:
    vectors, codes = np.ones((2, 4), np.float32), np.empty((2, 4), np.uint8)
    place, largest = address_of(codes), np.zeros(2, np.float64)
    for metric in (L2, COSINE):
        find_range(address_of(vectors), 2, 4, metric, np.zeros(2, np.float64))
        encode_run(address_of(vectors), 2, 4, metric, 0.0, 1.0, place, place, largest)
        largest_miss(1.0, 4, 0.0, 1.0)
