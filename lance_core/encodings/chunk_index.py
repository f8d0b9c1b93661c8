"""The chunks of all pages of a column, found when a row of their page is first wanted."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lance_core.encodings.steps import ReadSteps, together

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

NOT_LOADED = 255
"""Kind of the one chunk that stands for a page whose chunk table has not been read."""

DescribePage = Callable[[int], ReadSteps["PageChunks"]]
"""Finds the chunks of a page, by its number in the column."""


@dataclass(frozen=True, slots=True, eq=False)
class PageChunks:
    """The chunks of one page: shape ``(c,)``, and of one kind.

    ``first_rows`` count from the start of the column, ``offsets`` from the start of the file.
    """

    first_rows: NDArray[np.int64]
    offsets: NDArray[np.int64]
    sizes: NDArray[np.int64]
    kind: int


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
    def of(cls, pages: Sequence[PageChunks], num_rows: int) -> ChunkTables:
        """Join the chunks of all pages."""
        counts = [len(page.offsets) for page in pages]
        kinds = np.array([page.kind for page in pages], np.uint8)
        return cls(
            np.concatenate([*(page.first_rows for page in pages), _array(num_rows)]),
            np.concatenate([*(page.offsets for page in pages), _NONE]),
            np.concatenate([*(page.sizes for page in pages), _NONE]),
            np.repeat(kinds, counts),
            np.repeat(np.arange(len(pages)), counts),
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


class ChunkIndex:
    """Keeps the chunk tables of a column; safe to share between threads.

    Parameters
    ----------
    chunks
        For each page its chunks, or one of kind ``NOT_LOADED`` in place of them.
    num_rows
        Rows of the column.
    describe
        Finds the chunks of a page that is not loaded.
    """

    def __init__(self, chunks: Sequence[PageChunks], num_rows: int, describe: DescribePage) -> None:
        self._chunks = list(chunks)
        self._num_rows = num_rows
        self._describe = describe
        self._lock = threading.Lock()
        self.tables = ChunkTables.of(self._chunks, num_rows)

    @property
    def nbytes(self) -> int:
        """Memory of the tables: joined, and page by page."""
        return 2 * self.tables.nbytes

    def loaded(self, starts: NDArray[np.int64], stops: NDArray[np.int64]) -> ReadSteps[ChunkTables]:
        """Return tables that hold the chunks of all rows of the ranges ``[start, stop)``."""
        tables = self.tables
        if tables.is_complete or len(starts) == 0:
            return tables
        first_pages = tables.pages[tables.chunks_of(starts)].tolist()
        last_pages = tables.pages[tables.chunks_of(stops - 1)].tolist()
        wanted = {
            page
            for first, last in zip(first_pages, last_pages, strict=True)
            for page in range(first, last + 1)
            if self._chunks[page].kind == NOT_LOADED
        }
        if len(wanted) == 0:
            # Another thread may have found them since `tables` was looked at.
            with self._lock:
                return self.tables
        missing = sorted(wanted)
        found = yield from together([self._describe(page) for page in missing])
        with self._lock:
            for page, chunks in zip(missing, found, strict=True):
                self._chunks[page] = chunks
            self.tables = ChunkTables.of(self._chunks, self._num_rows)
            return self.tables


def one_chunk(first_row: int, offset: int, size: int, kind: int) -> PageChunks:
    """Return the chunks of a page that is one chunk, or stands for ones not loaded."""
    numbers = np.array((first_row, offset, size), np.int64)
    return PageChunks(numbers[:1], numbers[1:2], numbers[2:], kind)


_NONE = np.empty(0, np.int64)


def _array(number: int) -> NDArray[np.int64]:
    return np.array([number], np.int64)
