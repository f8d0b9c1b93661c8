"""Arithmetic on row ranges."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


def expand_ranges(starts: NDArray[np.int64], stops: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the rows of all ranges ``[start, stop)`` one after another.

    Examples
    --------
    >>> expand_ranges(np.array([3, 10]), np.array([5, 11])).tolist()
    [3, 4, 10]
    """
    lengths = stops - starts
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) > 0 else 0
    shifts: NDArray[np.int64] = np.repeat(starts - ends + lengths, lengths)
    return np.arange(total, dtype=np.int64) + shifts


def slice_ranges(ranges: Sequence[tuple[int, int]], start: int, stop: int) -> list[tuple[int, int]]:
    """Return the rows at positions ``[start, stop)`` among the rows of all ranges.

    Examples
    --------
    >>> slice_ranges([(5, 8), (100, 200)], 2, 5)
    [(7, 8), (100, 102)]
    """
    found = []
    for first, last in ranges:
        if start < last - first and start < stop:
            found.append((first + max(start, 0), first + min(stop, last - first)))
        start -= last - first
        stop -= last - first
        if stop <= 0:
            break
    return found


def descends(offsets: NDArray[np.int64]) -> bool:
    """Return whether any offset is below the one before it; differences could overflow.

    Examples
    --------
    >>> descends(np.array([2**62, -(2**63)]))
    True
    """
    return bool((offsets[1:] < offsets[:-1]).any())


def runs_of(rows: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return ascending, distinct rows as ranges of neighbours.

    Examples
    --------
    >>> runs_of(np.array([1, 2, 3, 7]))
    [(1, 4), (7, 8)]
    """
    if len(rows) == 0:
        return []
    breaks = np.flatnonzero(np.diff(rows) != 1) + 1
    firsts = rows[np.concatenate(([0], breaks))]
    lasts = rows[np.concatenate((breaks - 1, [len(rows) - 1]))]
    return list(zip(firsts.tolist(), (lasts + 1).tolist(), strict=True))


def disjoint(
    ranges: Sequence[tuple[int, int]],
) -> tuple[list[tuple[int, int]], list[int] | None]:
    """Return ascending, disjoint ranges that hold the same rows, and where each request begins.

    Returns
    -------
    list[tuple[int, int]]
        Ranges without common rows.
    list[int] | None
        For each request the position of its first row among the rows of the first result; None if
        the requests were ascending and disjoint already.
    """
    filled = [span for span in ranges if span[0] < span[1]]
    if all(left[1] <= right[0] for left, right in pairwise(filled)):
        return filled, None
    merged: list[tuple[int, int]] = []
    for start, stop in sorted(filled):
        if len(merged) > 0 and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        else:
            merged.append((start, stop))
    firsts = np.array([start for start, _ in merged], np.int64)
    before = np.concatenate(([0], np.cumsum([stop - start for start, stop in merged])))
    starts = np.array([start for start, _ in ranges], np.int64)
    home = np.maximum(np.searchsorted(firsts, starts, side="right") - 1, 0)
    positions = before[home] + starts - firsts[home]
    return merged, np.clip(positions, 0, before[-1]).tolist()  # an empty one may lie anywhere
