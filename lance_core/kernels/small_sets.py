"""Members of many small serialized sets of rows, without a bitmap for each.

A set is what scalar index page, section 1.2, describes: a number of fragments, then for each its
id, a length, and a portable roaring bitmap. Small are those whose bitmaps have arrays only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.memory import address_of, bytes_at

if TYPE_CHECKING:
    from numpy.typing import NDArray

NOT_SMALL = -1
"""What is counted for a set that has to be decoded otherwise, which may be a damaged one."""

_WITHOUT_RUNS = 12346
_LONGEST_ARRAY = 4096
_ARRAYS = 8
"""Where the keys and sizes of arrays begin in a bitmap: behind a mark and their number."""

_ARRAY_HEAD = 8
"""Bytes that come before all arrays for each: its key, its size and its place."""

_COUNT = 4
_ENTRY_HEAD = 8


@kernel
def half_at(view: NDArray[np.uint8], at: int) -> int:
    """Return the 16-bit number at a position."""
    return int(view[at]) | int(view[at + 1]) << 8


@kernel
def word_of(view: NDArray[np.uint8], at: int) -> int:
    """Return the 32-bit number at a position."""
    return half_at(view, at) | half_at(view, at + 2) << 16


@kernel
def count_array_members(view: NDArray[np.uint8], at: int, length: int) -> int:
    """Count the members of a bitmap of ``length`` bytes; ``NOT_SMALL`` unless it has but arrays."""
    if length < _ARRAYS or word_of(view, at) != _WITHOUT_RUNS:
        return NOT_SMALL
    num_arrays = word_of(view, at + 4)
    if _ARRAYS + num_arrays * _ARRAY_HEAD > length:
        return NOT_SMALL
    total = 0
    for index in range(num_arrays):
        size = half_at(view, at + _ARRAYS + 4 * index + 2) + 1
        if size > _LONGEST_ARRAY:
            return NOT_SMALL
        total += size
    is_whole = _ARRAYS + num_arrays * _ARRAY_HEAD + 2 * total == length
    return total if is_whole else NOT_SMALL


@kernel
def count_set_members(view: NDArray[np.uint8]) -> int:
    """Count the members of a set, or return ``NOT_SMALL``."""
    length = view.shape[0]
    if length < _COUNT:
        return NOT_SMALL
    at, total = _COUNT, 0
    for _ in range(word_of(view, 0)):
        if at + _ENTRY_HEAD > length:
            return NOT_SMALL
        size = word_of(view, at + 4)
        at += _ENTRY_HEAD
        if at + size > length:
            return NOT_SMALL
        count = count_array_members(view, at, size)
        if count == NOT_SMALL:
            return NOT_SMALL
        total += count
        at += size
    return total if at == length else NOT_SMALL


@kernel
def copy_set_members(view: NDArray[np.uint8], out: NDArray[np.uint64], filled: int) -> int:
    """Write the members of a small set behind ``filled`` others; returns the new number."""
    at = _COUNT
    for _ in range(word_of(view, 0)):
        fragment_id = np.uint64(word_of(view, at))
        size = word_of(view, at + 4)
        at += _ENTRY_HEAD
        num_arrays = word_of(view, at + 4)
        members = at + _ARRAYS + num_arrays * _ARRAY_HEAD
        for index in range(num_arrays):
            head = at + _ARRAYS + 4 * index
            upper = fragment_id << np.uint64(32) | np.uint64(half_at(view, head)) << np.uint64(16)
            for _ in range(half_at(view, head + 2) + 1):
                out[filled] = upper | np.uint64(half_at(view, members))
                filled += 1
                members += 2
        at += size
    return filled


@kernel
def count_small_sets(
    base: int,
    offsets: NDArray[np.int64],
    positions: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> None:
    """Count the members of sets.

    Parameters
    ----------
    base, offsets
        Set ``i`` is the bytes ``[offsets[i], offsets[i + 1])`` from the address ``base``.
    positions
        The sets asked for, shape ``(n,)``.
    counts
        Receives the numbers, shape ``(n,)``; ``NOT_SMALL`` for sets of another form.
    """
    for index in range(positions.shape[0]):
        start, stop = offsets[positions[index]], offsets[positions[index] + 1]
        counts[index] = count_set_members(bytes_at(base + start, stop - start))


@kernel
def copy_small_sets(
    base: int,
    offsets: NDArray[np.int64],
    positions: NDArray[np.int64],
    counts: NDArray[np.int64],
    out: NDArray[np.uint64],
) -> None:
    """Write the members of the small sets among those counted, one after another, to ``out``."""
    filled = 0
    for index in range(positions.shape[0]):
        if counts[index] != NOT_SMALL:
            start, stop = offsets[positions[index]], offsets[positions[index] + 1]
            filled = copy_set_members(bytes_at(base + start, stop - start), out, filled)


@warmup
def warm() -> None:
    """Compile or load the kernels of this module."""
    empty_set = np.zeros(4, np.uint8)
    offsets, positions = np.array([0, 4], np.int64), np.zeros(1, np.int64)
    counts = np.zeros(1, np.int64)
    count_small_sets(address_of(empty_set), offsets, positions, counts)
    copy_small_sets(address_of(empty_set), offsets, positions, counts, np.zeros(1, np.uint64))
