"""The live rows of one fragment: from ranks, as users count rows, to offsets, as files do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from pyroaring import BitMap

from lance_core.row_set import bitmap_offsets

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MAX_GAP_ROWS = 128
"""Deleted rows between two live ones that cost less to read than a range of their own."""


@dataclass(frozen=True, slots=True)
class RowSelection:
    """Which physical rows to read, and which of those to keep.

    ``row_offsets``, shape ``(n,)``, int64, ascending: the rows wanted. ``ranges`` covers them;
    ``kept`` are their positions among the rows of all ranges, None when every row is kept.
    """

    row_offsets: NDArray[np.int64]
    ranges: tuple[tuple[int, int], ...]
    kept: NDArray[np.int64] | None


class LiveRows:
    """Live rows of a fragment in ascending order.

    Parameters
    ----------
    physical_rows
        Rows of the fragment, deleted ones included.
    deleted
        Offsets of the deleted rows, all below ``physical_rows``.
    """

    def __init__(self, physical_rows: int, deleted: BitMap) -> None:
        self._physical_rows = physical_rows
        self._deleted = deleted
        # a range is a few run containers, so this costs by deleted rows and not by live ones
        self._live = BitMap(range(physical_rows)) - deleted if len(deleted) > 0 else None

    def __len__(self) -> int:
        return self._physical_rows - len(self._deleted)

    def select(self, start: int, end: int) -> RowSelection:
        """Select the live rows of ranks ``[start, end)``, cut at the number of live rows."""
        end = min(end, len(self))
        if start >= end:
            return RowSelection(np.empty(0, np.int64), (), None)
        if self._live is None:
            return RowSelection(np.arange(start, end, dtype=np.int64), ((start, end),), None)
        return _select(bitmap_offsets(self._live[start:end]).astype(np.int64))

    def row_offsets(self, ranks: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the offset of each of ``ranks``, shape ``(n,)``, all below ``len(self)``."""
        if self._live is None:
            return ranks
        return np.array([self._live[rank] for rank in ranks.tolist()], np.int64)

    def offsets(self, ranks: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the offset of the live row of each rank, shape ``(n,)``, below ``len(self)``."""
        if self._live is None:
            return ranks
        return bitmap_offsets(self._live)[ranks].astype(np.int64)

    def ranks(self, row_offsets: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the rank among live rows of each of ``row_offsets``, shape ``(n,)``, any order."""
        if self._live is None:
            return row_offsets
        before = np.searchsorted(bitmap_offsets(self._deleted), row_offsets)
        ranks: NDArray[np.int64] = row_offsets - before
        return ranks


def _select(row_offsets: NDArray[np.int64]) -> RowSelection:
    """Cover ascending offsets by ranges that leave out long gaps."""
    breaks = np.flatnonzero(np.diff(row_offsets) > _MAX_GAP_ROWS + 1) + 1
    starts = row_offsets[np.concatenate(([0], breaks))]
    ends = row_offsets[np.concatenate((breaks - 1, [-1]))] + 1
    ranges = tuple(zip(starts.tolist(), ends.tolist(), strict=True))
    lengths = ends - starts
    if int(lengths.sum()) == len(row_offsets):
        return RowSelection(row_offsets, ranges, None)
    # rows of earlier ranges come first in what is read, so each range has a place to start at
    places = np.cumsum(lengths) - lengths
    owner = np.searchsorted(starts, row_offsets, side="right") - 1
    return RowSelection(row_offsets, ranges, row_offsets - starts[owner] + places[owner])
