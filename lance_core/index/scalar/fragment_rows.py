"""Sets of rows by fragment: what scalar indices answer with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from pyroaring import BitMap

FragmentRows: TypeAlias = Mapping[int, BitMap]
"""Row offsets by fragment id: the lower and the upper 32 bits of row addresses.

Where rows are named by stable row ids these are the lower and the upper half of the ids. No bitmap
is empty. Bitmaps are shared with caches and other answers: never change one in place.
`lance_core.row_set.bitmaps_by_fragment` makes a set from an array of addresses or ids.
"""

NO_ROWS: FragmentRows = {}
"""The empty set."""

_NUM_OFFSETS = 1 << 32
_CONTAINER = 1 << 16
_CONTAINER_BYTES = _CONTAINER // 8
_MEMBER_BYTES = 2
_ENTRY_BYTES = 128
"""About what a bitmap, its number and their place in a dict take beside the members."""


_every: list[BitMap] = []
"""The set of all offsets once it was needed: it takes some megabytes and milliseconds."""


def every_offset() -> BitMap:
    """Return the set of all offsets, of which there is one.

    It stands for all rows of a fragment, however many these are.
    """
    if len(_every) == 0:
        bitmap = BitMap()
        bitmap.add_range(0, _NUM_OFFSETS)
        _every.append(bitmap)
    return _every[0]


def is_every_offset(bitmap: BitMap) -> bool:
    """Tell whether a set is the one of all offsets."""
    return len(_every) > 0 and bitmap is _every[0]


@dataclass(frozen=True, slots=True, eq=False)
class KeptRows:
    """A set of rows in the cache, and about the memory that it takes."""

    rows: FragmentRows
    nbytes: int

    @classmethod
    def of(cls, rows: FragmentRows) -> KeptRows:
        """Measure a set, for which some bytes too many are counted."""
        sizes = (
            min(len(bitmap) * _MEMBER_BYTES, (bitmap.max() // _CONTAINER + 1) * _CONTAINER_BYTES)
            for bitmap in rows.values()
            if not is_every_offset(bitmap)
        )
        return cls(rows, sum(sizes) + _ENTRY_BYTES * (len(rows) + 1))


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
    if any(map(is_every_offset, bitmaps)):
        return every_offset()
    return BitMap.union(*bitmaps)


def _common(left: BitMap, right: BitMap) -> BitMap:
    if is_every_offset(left):
        return right
    return left if is_every_offset(right) else left & right
