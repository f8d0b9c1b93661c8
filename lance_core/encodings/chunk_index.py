"""The chunks of all pages of a column, found when a row of their page is first wanted."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lance_core.encodings.rows import expand_ranges
from lance_core.encodings.steps import ReadSteps

if TYPE_CHECKING:
    from numpy.typing import NDArray

NOT_LOADED = 255
"""Kind of the one chunk that stands for a page whose chunk table has not been read."""

DescribePages = Callable[["NDArray[np.int64]"], ReadSteps["PageChunks"]]
"""Finds the chunks of pages, by their ascending numbers in the column."""


@dataclass(frozen=True, slots=True, eq=False)
class PageChunks:
    """The chunks of some pages: shape ``(c,)``; those of one page in row order.

    ``first_rows`` count from the start of the column, ``offsets`` from the start of the file.
    """

    first_rows: NDArray[np.int64]
    offsets: NDArray[np.int64]
    sizes: NDArray[np.int64]
    kinds: NDArray[np.uint8]
    pages: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class ChunkTables:
    """The chunks of all pages in row order, and the page of each.

    ``first_rows`` has shape ``(c + 1,)``, the others ``(c,)``.
    """

    first_rows: NDArray[np.int64]
    offsets: NDArray[np.int64]
    sizes: NDArray[np.int64]
    kinds: NDArray[np.uint8]
    pages: NDArray[np.int64]
    is_complete: bool

    @classmethod
    def not_loaded(cls, first_rows: NDArray[np.int64]) -> ChunkTables:
        """Return what stands for pages of which nothing but the first rows is known."""
        num_pages = len(first_rows) - 1
        nothing = np.zeros(num_pages, np.int64)
        kinds = np.full(num_pages, NOT_LOADED, np.uint8)
        return cls(
            first_rows, nothing, nothing, kinds, np.arange(num_pages), is_complete=num_pages == 0
        )

    def with_pages(self, numbers: NDArray[np.int64], found: PageChunks) -> ChunkTables:
        """Return the tables with all chunks of the pages ``numbers`` replaced by those found."""
        if len(self.pages) == len(numbers) == 1:  # most columns have one page
            last = self.first_rows[-1:]
            return ChunkTables(
                np.concatenate((found.first_rows, last)),
                found.offsets,
                found.sizes,
                found.kinds,
                found.pages,
                is_complete=True,
            )
        is_kept = ~np.isin(self.pages, numbers)
        pages = np.concatenate([self.pages[is_kept], found.pages])
        # by page, not by row: a page may end with a chunk of no rows
        order = np.argsort(pages, kind="stable")
        first_rows = np.concatenate([self.first_rows[:-1][is_kept], found.first_rows])
        kinds = np.concatenate([self.kinds[is_kept], found.kinds])
        return ChunkTables(
            np.append(first_rows[order], self.first_rows[-1]),
            np.concatenate([self.offsets[is_kept], found.offsets])[order],
            np.concatenate([self.sizes[is_kept], found.sizes])[order],
            kinds[order],
            pages[order],
            is_complete=not bool((kinds == NOT_LOADED).any()),
        )

    @property
    def nbytes(self) -> int:
        """Memory of the table."""
        arrays = (self.first_rows, self.offsets, self.sizes, self.kinds, self.pages)
        return sum(array.nbytes for array in arrays)

    def chunks_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the chunk of each row; the rows are inside the column."""
        return np.searchsorted(self.first_rows, rows, side="right") - 1

    def missing(self, starts: NDArray[np.int64], stops: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the pages, ascending, that are not loaded and hold rows of ``[start, stop)``.

        No range is empty.
        """
        if self.is_complete:
            return np.empty(0, np.int64)
        if len(self.pages) == 1 and len(starts) > 0:
            return self.pages
        touched = expand_ranges(self.chunks_of(starts), self.chunks_of(stops - 1) + 1)
        return np.unique(self.pages[touched[self.kinds[touched] == NOT_LOADED]])


class ChunkIndex:
    """Keeps the chunk tables of a column; safe to share between threads.

    Parameters
    ----------
    first_rows
        Shape ``(pages + 1,)``: the first row of each page, and the number of rows.
    describe
        Finds the chunks of pages that are not loaded.
    """

    def __init__(self, first_rows: NDArray[np.int64], describe: DescribePages) -> None:
        self._describe = describe
        self._lock = threading.Lock()
        self.tables = ChunkTables.not_loaded(first_rows)

    @property
    def nbytes(self) -> int:
        """Memory of the tables."""
        return self.tables.nbytes

    def loaded(self, starts: NDArray[np.int64], stops: NDArray[np.int64]) -> ReadSteps[ChunkTables]:
        """Return tables that hold the chunks of all rows of ranges ``[start, stop)``, none empty.

        Threads that miss the same page both find it, and either result serves both.
        """
        tables = self.tables
        missing = tables.missing(starts, stops)
        if len(missing) == 0:
            return tables
        found = yield from self._describe(missing)
        with self._lock:
            # others may have added pages since `tables` was looked at: theirs are kept
            self.tables = self.tables.with_pages(missing, found)
            return self.tables
