"""Cutting rows into zones, and the columns that say where they lie."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.index.scalar.writers.indexed_rows import joined
from lance_core.index.scalar.zones import ZONE_COLUMNS
from lance_core.row_address import fragment_of, offset_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from lance_core.index.scalar.writers.indexed_rows import IndexedRows

PLACE_FIELDS = tuple(pa.field(name, kind, nullable=False) for name, kind in ZONE_COLUMNS.items())
"""Fields of the columns that `Places` makes."""


def cut_zones(rows: Iterable[IndexedRows], zone_rows: int) -> Iterator[IndexedRows]:
    """Yield the rows of each zone.

    Parameters
    ----------
    rows
        Live rows in the order of their addresses, by which they are named; fragment by fragment.
    zone_rows
        Rows of a zone; the last one of a fragment may have fewer.
    """
    waiting: list[IndexedRows] = []
    num_waiting = 0
    for piece in _within_fragments(rows):
        if num_waiting > 0 and fragment_of(waiting[0].names[:1]) != fragment_of(piece.names[:1]):
            yield joined(waiting)
            waiting, num_waiting = [], 0
        start = 0
        while num_waiting + len(piece) - start >= zone_rows:
            stop = start + zone_rows - num_waiting
            yield joined([*waiting, piece.part(start, stop)])
            waiting, num_waiting, start = [], 0, stop
        if start < len(piece):
            waiting.append(piece.part(start, len(piece)))
            num_waiting += len(piece) - start
    if num_waiting > 0:
        yield joined(waiting)


class Places:
    """Where zones lie, gathered as they pass."""

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []

    def __len__(self) -> int:
        return len(self._firsts)

    def add(self, zone: IndexedRows) -> None:
        """Note the place of a zone."""
        self._firsts.append(int(zone.names[0]))
        self._lasts.append(int(zone.names[-1]))

    def columns(self) -> list[pa.Array]:
        """Return the columns of `PLACE_FIELDS`.

        A zone reaches from its first row to its last, rows deleted in between included.
        """
        firsts, lasts = np.array(self._firsts, np.uint64), np.array(self._lasts, np.uint64)
        numbers = (fragment_of(firsts), offset_of(firsts), lasts - firsts + np.uint64(1))
        return [pa.array(each.astype(np.uint64)) for each in numbers]


def _within_fragments(rows: Iterable[IndexedRows]) -> Iterator[IndexedRows]:
    for piece in rows:
        edges = np.flatnonzero(np.diff(fragment_of(piece.names))) + 1
        bounds = [0, *edges.tolist(), len(piece)]
        for start, stop in pairwise(bounds):
            if start < stop:
                yield piece.part(start, stop)
