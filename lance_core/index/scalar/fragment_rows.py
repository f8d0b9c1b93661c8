"""Sets of rows by fragment: what scalar indices answer with."""

from __future__ import annotations

import array
from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from pyroaring import BitMap

if TYPE_CHECKING:
    from numpy.typing import NDArray

FragmentRows: TypeAlias = Mapping[int, BitMap]
"""Row offsets by fragment id: the lower and the upper 32 bits of row addresses.

Where rows are named by stable row ids these are the lower and the upper half of the ids. No bitmap
is empty. Bitmaps are shared with caches and other answers: never change one in place.
"""

NO_ROWS: FragmentRows = {}
"""The empty set."""

_OFFSET_BITS = 32
_NUM_OFFSETS = 1 << _OFFSET_BITS


@cache
def every_offset() -> BitMap:
    """Return the set of all offsets, of which there is one: it takes about 2 MB.

    It stands for all rows of a fragment, however many these are.
    """
    bitmap = BitMap()
    bitmap.add_range(0, _NUM_OFFSETS)
    return bitmap


def bitmap_of(offsets: NDArray[np.uint32]) -> BitMap:
    """Return the set of some offsets, shape ``(n,)``, in any order, repeats allowed."""
    members = array.array("I")  # the one form that pyroaring takes without a Python int per member
    members.frombytes(np.sort(offsets).astype(np.uint32, copy=False).tobytes())
    return BitMap(members)


def rows_of(names: NDArray[np.uint64]) -> FragmentRows:
    """Return the set of some row addresses or row ids, in any order, repeats allowed.

    Parameters
    ----------
    names
        Shape ``(n,)``.
    """
    if len(names) == 0:
        return NO_ROWS
    first, last = int(names.min()) >> _OFFSET_BITS, int(names.max()) >> _OFFSET_BITS
    if first == last:
        return {first: bitmap_of(names.astype(np.uint32))}
    ordered = np.sort(names)
    fragment_ids = ordered >> np.uint64(_OFFSET_BITS)
    starts = np.flatnonzero(np.diff(fragment_ids, prepend=fragment_ids[0] + 1))
    parts = np.split(ordered.astype(np.uint32), starts[1:])
    keys = fragment_ids[starts].tolist()
    return {key: bitmap_of(part) for key, part in zip(keys, parts, strict=True)}


def num_rows(rows: FragmentRows) -> int:
    """Return how many rows a set has; whole fragments count as if they had all offsets."""
    return sum(map(len, rows.values()))


def unite(sets: Iterable[FragmentRows]) -> FragmentRows:
    """Return the rows that are in any of some sets."""
    found: dict[int, list[BitMap]] = {}
    for rows in sets:
        for key, bitmap in rows.items():
            found.setdefault(key, []).append(bitmap)
    return {key: _union(bitmaps) for key, bitmaps in found.items()}


def intersect(left: FragmentRows, right: FragmentRows) -> FragmentRows:
    """Return the rows that are in both sets."""
    if len(right) < len(left):
        left, right = right, left
    both = {key: _common(bitmap, right[key]) for key, bitmap in left.items() if key in right}
    return {key: bitmap for key, bitmap in both.items() if bitmap}


def subtract(rows: FragmentRows, others: FragmentRows) -> FragmentRows:
    """Return the rows of the first set that are not in the second."""
    left = {key: bitmap - others[key] if key in others else bitmap for key, bitmap in rows.items()}
    return {key: bitmap for key, bitmap in left.items() if bitmap}


def _union(bitmaps: list[BitMap]) -> BitMap:
    if len(bitmaps) == 1:
        return bitmaps[0]
    if any(bitmap is every_offset() for bitmap in bitmaps):
        return every_offset()
    return BitMap.union(*bitmaps)


def _common(left: BitMap, right: BitMap) -> BitMap:
    if left is every_offset():
        return right
    return left if right is every_offset() else left & right
