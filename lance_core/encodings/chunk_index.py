"""The chunks of all pages of a column, found when a row of their page is first wanted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from lance_core.encodings.rows import expand_ranges, runs_of
from lance_core.encodings.steps import ReadSteps

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lance_core.encodings.passing import PassedPages
    from lance_core.encodings.values import Values

Number = TypeVar("Number", np.int64, np.uint8)
NOT_LOADED = 255
"""Kind of the one chunk that stands for a page whose chunk table has not been read."""

CHUNK_BYTES = 33
"""Memory of a chunk in all tables."""

DescribePages = Callable[["NDArray[np.int64]"], ReadSteps["PageChunks"]]
"""Finds the chunks of pages, by their ascending numbers in the column."""


@dataclass(frozen=True, slots=True, eq=False)
class PageChunks:
    """The chunks of some pages: shape ``(c,)``; those of one page in row order.

    ``first_rows`` count from the start of the column, ``offsets`` from the start of the file.
    ``dictionaries`` has the items of the pages that have a dictionary, by their numbers.
    """

    first_rows: NDArray[np.int64]
    offsets: NDArray[np.int64]
    sizes: NDArray[np.int64]
    kinds: NDArray[np.uint8]
    pages: NDArray[np.int64]
    dictionaries: Mapping[int, Values] = field(default_factory=dict)

    @classmethod
    def not_loaded(cls, first_rows: NDArray[np.int64], pages: NDArray[np.int64]) -> PageChunks:
        """Return what stands for pages of which nothing but the first rows is known."""
        nothing = np.zeros(len(pages), np.int64)
        return cls(first_rows, nothing, nothing, np.full(len(pages), NOT_LOADED, np.uint8), pages)

    def bytes_of_pages(self, numbers: NDArray[np.int64]) -> dict[int, int]:
        """Return the memory that loading took, of each page that it took some of."""
        bounds = np.searchsorted(self.pages, np.append(numbers, numbers[-1] + 1))
        sizes = (np.diff(bounds) - 1) * CHUNK_BYTES  # a page that is not loaded has a chunk too
        by_page = dict(zip(numbers.tolist(), sizes.tolist(), strict=True))
        for number, items in self.dictionaries.items():
            by_page[number] += items.nbytes
        return {number: size for number, size in by_page.items() if size > 0}


@dataclass(frozen=True, slots=True, eq=False)
class ChunkTables:
    """The chunks of all pages in row order, the page of each, and the pages' dictionaries.

    ``first_rows`` has shape ``(c + 1,)``, the others ``(c,)``. ``nbytes`` is the memory of all; it
    is asked for at each look into a cache.
    """

    first_rows: NDArray[np.int64]
    offsets: NDArray[np.int64]
    sizes: NDArray[np.int64]
    kinds: NDArray[np.uint8]
    pages: NDArray[np.int64]
    dictionaries: Mapping[int, Values]
    is_complete: bool
    nbytes: int

    @classmethod
    def not_loaded(cls, first_rows: NDArray[np.int64]) -> ChunkTables:
        """Return what stands for pages of which nothing but the first rows is known."""
        return cls._of(
            PageChunks.not_loaded(first_rows[:-1], np.arange(len(first_rows) - 1)), first_rows[-1:]
        )

    @classmethod
    def _of(cls, chunks: PageChunks, num_rows: NDArray[np.int64]) -> ChunkTables:
        """Return the tables of all pages; ``num_rows`` has shape ``(1,)``."""
        return cls(
            np.concatenate((chunks.first_rows, num_rows)),
            chunks.offsets,
            chunks.sizes,
            chunks.kinds,
            chunks.pages,
            chunks.dictionaries,
            is_complete=not bool((chunks.kinds == NOT_LOADED).any()),
            nbytes=CHUNK_BYTES * len(chunks.pages)
            + sum(items.nbytes for items in chunks.dictionaries.values()),
        )

    def with_pages(self, numbers: NDArray[np.int64], found: PageChunks) -> ChunkTables:
        """Return the tables with all chunks of the pages ``numbers`` replaced by those found.

        Both are in the order of pages.
        """
        if len(self.pages) == len(numbers) == 1:  # most columns have one page
            return self._of(found, self.first_rows[-1:])
        runs = np.array(runs_of(numbers), np.int64)
        own_bounds = np.searchsorted(self.pages, runs).tolist()
        new_bounds = np.searchsorted(found.pages, runs).tolist()

        def spliced(own: NDArray[Number], new: NDArray[Number]) -> NDArray[Number]:
            parts: list[NDArray[Number]] = []
            kept_from = 0
            for (begin, end), (first, stop) in zip(own_bounds, new_bounds, strict=True):
                parts += [own[kept_from:begin], new[first:stop]]
                kept_from = end
            return np.concatenate([*parts, own[kept_from:]])

        replaced = set(numbers.tolist())
        kept = {page: own for page, own in self.dictionaries.items() if page not in replaced}
        together = PageChunks(
            spliced(self.first_rows[:-1], found.first_rows),
            spliced(self.offsets, found.offsets),
            spliced(self.sizes, found.sizes),
            spliced(self.kinds, found.kinds),
            spliced(self.pages, found.pages),
            {**kept, **found.dictionaries},
        )
        return self._of(together, self.first_rows[-1:])

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
    passed
        Decides which pages of the column are forgotten.
    """

    def __init__(
        self, first_rows: NDArray[np.int64], describe: DescribePages, passed: PassedPages
    ) -> None:
        self._first_rows = first_rows
        self._describe = describe
        self._passed = passed
        self._lock = threading.Lock()
        self.tables = ChunkTables.not_loaded(first_rows)

    @property
    def nbytes(self) -> int:
        """Memory of the tables."""
        return self.tables.nbytes

    def loaded(
        self, starts: NDArray[np.int64], stops: NDArray[np.int64], wanted: Sequence[tuple[int, int]]
    ) -> ReadSteps[ChunkTables]:
        """Return tables that hold the chunks of all rows of ranges ``[start, stop)``, none empty.

        ``wanted`` is all that is read of the column at once, these and others; see `PassedPages`.
        Threads that miss the same page both find it, and either result serves both. Others may
        make the index forget pages; the tables that were returned keep them.
        """
        tables = self.tables
        missing = tables.missing(starts, stops)
        if len(missing) == 0:
            return tables
        found = yield from self._describe(missing)
        with self._lock:
            # others may have changed the pages since `tables` was looked at: theirs are kept
            current = self.tables = self.tables.with_pages(missing, found)
        self._passed.note(self, found.bytes_of_pages(missing), wanted)
        if len(current.missing(starts, stops)) == 0:
            return current
        return tables.with_pages(missing, found)

    def forget(self, numbers: Sequence[int]) -> None:
        """Drop the chunks of pages."""
        pages = np.sort(np.array(numbers, np.int64))
        nothing = PageChunks.not_loaded(self._first_rows[pages], pages)
        with self._lock:
            self.tables = self.tables.with_pages(pages, nothing)
