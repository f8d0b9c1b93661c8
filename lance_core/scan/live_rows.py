"""The live rows of one fragment: from ranks, as users count rows, to offsets, as files do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pyroaring import BitMap

from lance_core.row_set import bitmap_offsets

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_GAP_ROWS = 128
"""Deleted rows between two live ones that cost less to read than a range of their own."""


class RowSelection:
    """Which physical rows to read, and which of those to keep.

    Parameters
    ----------
    ranges
        Cover the rows wanted, ascending.
    kept
        Positions of those among the rows of all ranges, ascending; None = all are wanted.
    row_offsets
        Shape ``(n,)``, int64, ascending: the rows wanted. None = those of the only range, which
        are not listed until somebody asks.
    """

    def __init__(
        self,
        ranges: tuple[tuple[int, int], ...],
        kept: NDArray[np.int64] | None = None,
        row_offsets: NDArray[np.int64] | None = None,
    ) -> None:
        self.ranges = ranges
        self.kept = kept
        self._row_offsets = row_offsets

    def __len__(self) -> int:
        if self._row_offsets is not None:
            return len(self._row_offsets)
        return sum(end - start for start, end in self.ranges)

    @property
    def row_offsets(self) -> NDArray[np.int64]:
        """The rows wanted, shape ``(n,)``, ascending."""
        if self._row_offsets is None:
            start, end = self.ranges[0] if self.ranges else (0, 0)
            self._row_offsets = np.arange(start, end, dtype=np.int64)
        return self._row_offsets

    def chosen(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the rows at some positions, shape ``(m,)``."""
        if self._row_offsets is None and len(positions) > 0:
            return positions + self.ranges[0][0]
        return self.row_offsets[positions]


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
            return RowSelection(())
        if self._live is None:
            return RowSelection(((start, end),))
        return cover(bitmap_offsets(self._live[start:end]).astype(np.int64))

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


def cover(row_offsets: NDArray[np.int64], gap_rows: int = MAX_GAP_ROWS) -> RowSelection:
    """Cover offsets, ascending and at least one, by ranges that leave out longer gaps."""
    first, end = int(row_offsets[0]), int(row_offsets[-1]) + 1
    if len(row_offsets) == end - first:
        return RowSelection(((first, end),), None, row_offsets)
    if len(row_offsets) * 2 > end - first:  # so dense that looking for gaps costs more than them
        return RowSelection(((first, end),), row_offsets - first, row_offsets)
    breaks = np.flatnonzero(np.diff(row_offsets) > gap_rows + 1) + 1
    if len(breaks) == 0:
        return RowSelection(((first, end),), row_offsets - first, row_offsets)
    return _cover_apart(row_offsets, breaks)


def _cover_apart(row_offsets: NDArray[np.int64], breaks: NDArray[np.int64]) -> RowSelection:
    """Cover offsets by one range up to each break."""
    starts = row_offsets[np.concatenate(([0], breaks))]
    ends = row_offsets[np.concatenate((breaks - 1, [-1]))] + 1
    ranges = tuple(zip(starts.tolist(), ends.tolist(), strict=True))
    lengths = ends - starts
    if int(lengths.sum()) == len(row_offsets):
        return RowSelection(ranges, None, row_offsets)
    # rows of earlier ranges come first in what is read, so each range has a place to start at
    places = np.cumsum(lengths) - lengths
    owner = np.searchsorted(starts, row_offsets, side="right") - 1
    return RowSelection(ranges, row_offsets - starts[owner] + places[owner], row_offsets)
