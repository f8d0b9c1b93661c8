"""How finely RaBitQ measures the coordinates of a vector: the scale that loses least.

A *rise* is a scale at which the level of one coordinate grows by one. It is kept as one uint64:
the bits of the scale, which order as scales do, then the coordinate, then the new level.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FIRST_PARTS = np.array([1, 0.15, 0.20, 0.52, 0.59, 0.71, 0.75, 0.77, 0.81], np.float32)
"""By the number of bits: where in the range of scales the search begins."""

_MARGIN = 10
_ROUNDING = np.float32(1e-5)
_BUCKETS_OF_COORDINATE = 4
"""A bucket then holds a rise or two."""

_SCALE_SHIFT, _COORDINATE_SHIFT, _LEVEL_MASK = 32, 8, 255


@kernel
def find_levels(
    rotated: NDArray[np.float32],
    num_bits: int,
    levels: NDArray[np.int32],
    room: tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.int32], NDArray[np.float32]],
) -> None:
    """Write the level of each coordinate's size, 0 to ``2 ** num_bits - 1``.

    Parameters
    ----------
    rotated
        Shape ``(d,)``; finite, and longer than nothing.
    num_bits
        1 to 8.
    levels
        Shape ``(d,)``: receives the levels.
    room
        As `room_for_rises` makes it.

    Notes
    -----
    Vector index page, section 4.4, "Choice of t": levels ``floor(t * a)`` of the sizes ``a`` are
    tried for each ``t`` at which one of them rises, and that one is taken whose vector has the
    least angle to ``a``. Sums are float32, added in the order of the rises, as pylance 14.0.2 adds
    them: with many levels, rounding decides which of many equally good scales wins.
    """
    most = (1 << num_bits) - 1
    unsorted, rises, buckets, sizes = room
    largest = _measure(rotated, sizes)
    end = np.float32(most + _MARGIN) / largest
    start = end * _FIRST_PARTS[num_bits]
    _first_levels(sizes, most, start, levels)
    number = _find_rises(sizes, most, end, levels, unsorted)
    _sort(unsorted[:number], rises, buckets, start, end)
    scale = _best_scale(sizes, start, levels, rises[:number], unsorted)
    _first_levels(sizes, most, scale, levels)


@kernel
def room_for_rises(
    dimension: int, num_bits: int
) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.int32], NDArray[np.float32]]:
    """Return memory that `find_levels` works in."""
    most = dimension << num_bits
    return (
        np.empty(most, np.uint64),
        np.empty(most, np.uint64),
        np.empty(_BUCKETS_OF_COORDINATE * dimension + 1, np.int32),
        np.empty(dimension, np.float32),
    )


@kernel(ordered=True)
def _measure(rotated: NDArray[np.float32], sizes: NDArray[np.float32]) -> np.float32:
    """Write sizes of coordinates, in parts of the vector's length; return the largest."""
    total = np.float32(0)
    for j in range(len(rotated)):
        total += rotated[j] * rotated[j]
    norm = np.sqrt(total)
    largest = np.float32(0)
    for j in range(len(rotated)):
        sizes[j] = abs(rotated[j]) / norm
        largest = max(largest, sizes[j])
    return largest


@kernel(ordered=True)
def _first_levels(
    sizes: NDArray[np.float32], most: int, scale: np.float32, levels: NDArray[np.int32]
) -> None:
    for j in range(len(sizes)):
        levels[j] = min(np.int32(scale * sizes[j] + _ROUNDING), np.int32(most))


@kernel(ordered=True)
def _find_rises(
    sizes: NDArray[np.float32],
    most: int,
    end: np.float32,
    levels: NDArray[np.int32],
    rises: NDArray[np.uint64],
) -> int:
    """Write the rises above the first levels and below the last scale; return how many."""
    number = 0
    scale = np.empty(1, np.float32)
    bits = scale.view(np.uint32)
    for j in range(len(sizes)):
        for level in range(levels[j] + 1, most + 1):
            scale[0] = np.float32(level) / sizes[j]
            if scale[0] >= end:
                break
            place = (j << _COORDINATE_SHIFT) | level
            rises[number] = (np.uint64(bits[0]) << np.uint64(_SCALE_SHIFT)) | np.uint64(place)
            number += 1
    return number


@kernel(ordered=True)
def _sort(
    unsorted: NDArray[np.uint64],
    rises: NDArray[np.uint64],
    buckets: NDArray[np.int32],
    start: np.float32,
    end: np.float32,
) -> None:
    """Sort rises: into equal parts of the range first, so that nearly all are in order then."""
    last = len(buckets) - 2
    per_scale = np.float32(last) / (end - start)
    word = np.empty(1, np.uint32)
    scale = word.view(np.float32)
    buckets[:] = 0
    for e in range(len(unsorted)):
        word[0] = np.uint32(unsorted[e] >> np.uint64(_SCALE_SHIFT))
        b = min(max(int((scale[0] - start) * per_scale), 0), last)
        buckets[b + 1] += 1
    for b in range(1, len(buckets)):
        buckets[b] += buckets[b - 1]
    for e in range(len(unsorted)):
        word[0] = np.uint32(unsorted[e] >> np.uint64(_SCALE_SHIFT))
        b = min(max(int((scale[0] - start) * per_scale), 0), last)
        rises[buckets[b]] = unsorted[e]
        buckets[b] += 1
    for e in range(1, len(unsorted)):
        rise = rises[e]
        at = e
        while at > 0 and rises[at - 1] > rise:
            rises[at] = rises[at - 1]
            at -= 1
        rises[at] = rise


@kernel(ordered=True)
def _best_scale(
    sizes: NDArray[np.float32],
    start: np.float32,
    levels: NDArray[np.int32],
    rises: NDArray[np.uint64],
    room: NDArray[np.uint64],
) -> np.float32:
    """Return the scale whose levels are nearest in angle; levels are those at the first one."""
    product, square = np.float32(0), np.float32(0.25 * len(sizes))
    for j in range(len(sizes)):
        level = levels[j]
        if sizes[j] > 0:
            product += (np.float32(level) + np.float32(0.5)) * sizes[j]
            square += np.float32(level * level + level)
    first = product / np.sqrt(square)
    qualities = room.view(np.float32)
    half = len(room)
    for e in range(len(rises)):
        place = np.int64(rises[e]) & ((1 << _SCALE_SHIFT) - 1)
        square += np.float32(2 * (place & _LEVEL_MASK))
        product += sizes[place >> _COORDINATE_SHIFT]
        qualities[e] = product
        qualities[half + e] = square
    for e in range(len(rises)):
        qualities[e] = qualities[e] / np.sqrt(qualities[half + e])
    best, found = first, -1
    for e in range(len(rises)):
        if qualities[e] > best:
            best, found = qualities[e], e
    if found < 0:
        return start
    word = np.empty(1, np.uint32)
    word[0] = np.uint32(rises[found] >> np.uint64(_SCALE_SHIFT))
    return np.float32(word.view(np.float32)[0])
