"""Columns whose rows are found by arithmetic: one kernel call per read, whatever the pages."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np

from lance_core.encodings.blocks import address_of_bytes
from lance_core.encodings.chunk_index import NOT_LOADED, ChunkIndex
from lance_core.encodings.rows import expand_ranges
from lance_core.file.direct_pages import describe_direct_pages
from lance_core.kernels.bitpacking import DONE, UNSIGNED
from lance_core.kernels.direct_rows import CONSTANT, RAW, copy_few_rows, copy_ranges, copy_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.encodings.chunk_index import ChunkTables, PageChunks
    from lance_core.encodings.passing import PassedPages
    from lance_core.encodings.place import Place
    from lance_core.encodings.steps import ReadSteps
    from lance_core.file.page_list import PageList

_WIDTHS = (8, 4, 2, 1)
_FEW_ROWS = 256


class DirectColumn:
    """Rows of a fixed width in pages that are raw, inline-packed or constant; no nulls.

    The first page says how wide the rows are. Every other page is looked at when a row of it is
    first wanted; if it turns out to be of another kind or width, ``is_direct`` becomes False, and
    nothing is found here from then on.
    """

    def __init__(self, pages: PageList, row_bytes: int, place: Place, passed: PassedPages) -> None:
        self.is_direct = True
        self.row_bytes = row_bytes
        self._pages = pages
        self._place = place
        width = next(width for width in _WIDTHS if row_bytes % width == 0)
        self._element = UNSIGNED[width * 8]
        self._stride = row_bytes // width
        self._constants = _Constants()
        self._index = ChunkIndex(pages.first_rows, self._describe, passed)
        self._mapping: tuple[memoryview, NDArray[np.int64]] | None = None

    @classmethod
    def of(cls, pages: PageList, place: Place, passed: PassedPages) -> DirectColumn | None:
        """Return the column, or None if its first page is not direct."""
        first = pages[0].layout.direct(pages[0])
        return None if first is None else cls(pages, first.row_bytes, place, passed)

    @property
    def nbytes(self) -> int:
        """Memory of the chunk tables."""
        return self._index.nbytes

    def read(self, ranges: Sequence[tuple[int, int]]) -> ReadSteps[NDArray[np.uint8] | None]:
        """Read row ranges in any order; they may overlap.

        Returns
        -------
        NDArray[np.uint8] | None
            Shape ``(rows * row_bytes,)``; None if a page is not direct.
        """
        starts = np.array([start for start, stop in ranges if start < stop], np.int64)
        stops = np.array([stop for start, stop in ranges if start < stop], np.int64)
        table = yield from self._loaded(starts, stops, ranges)
        if table is None:
            return None
        starts, stops = self._split_by_page(table, starts, stops)
        first_bytes = self._first_byte(table, starts, table.chunks_of(starts))
        end_bytes = self._end_byte(table, stops - 1, table.chunks_of(stops - 1))
        views = yield list(zip(first_bytes.tolist(), end_bytes.tolist(), strict=True))
        bases = np.array([address_of_bytes(view) for view in views], np.int64) - first_bytes
        out = np.empty(int((stops - starts).sum()) * self._stride, self._element)
        bad = copy_ranges(
            bases,
            starts,
            stops,
            table.first_rows,
            table.offsets,
            table.sizes,
            table.kinds,
            self._constants.values.view(self._element),
            self._stride,
            out,
        )
        self._check(bad, table)
        return out.view(np.uint8)

    def take(self, rows: NDArray[np.int64]) -> ReadSteps[NDArray[np.uint8] | None]:
        """Read single rows in any order; of raw chunks only the rows' own bytes.

        The result is None if a page is not direct.
        """
        table = yield from self._loaded(rows, rows + 1, [])
        if table is None:
            return None
        chunks = table.chunks_of(rows)
        first_bytes = self._first_byte(table, rows, chunks)
        end_bytes = self._end_byte(table, rows, chunks)
        views = yield list(zip(first_bytes.tolist(), end_bytes.tolist(), strict=True))
        bases = np.array([address_of_bytes(view) for view in views], np.int64) - first_bytes
        return self._copy(bases, rows, table)

    def take_mapped(self, whole: memoryview, rows: NDArray[np.int64]) -> NDArray[np.uint8] | None:
        """Copy single rows out of the mapped file, or return None if a chunk table is missing.

        ``whole`` is the file as the store maps it now, at least as long as when it was opened.
        """
        table = self._index.tables
        if not table.is_complete and self._is_missing(table, rows):
            return None
        mapping = self._mapping
        if mapping is None or mapping[0] is not whole:
            mapping = (whole, np.array([address_of_bytes(whole)], np.int64))
            self._mapping = mapping
        return self._copy(mapping[1], rows, table)

    def _is_missing(self, table: ChunkTables, rows: NDArray[np.int64]) -> bool:
        return bool((table.kinds[table.chunks_of(rows)] == NOT_LOADED).any())

    def _copy(
        self, bases: NDArray[np.int64], rows: NDArray[np.int64], table: ChunkTables
    ) -> NDArray[np.uint8]:
        out = np.empty(len(rows) * self._stride, self._element)
        copy = copy_few_rows if len(rows) <= _FEW_ROWS else copy_rows
        bad = copy(
            bases,
            rows,
            table.first_rows,
            table.offsets,
            table.sizes,
            table.kinds,
            self._constants.values.view(self._element),
            self._stride,
            out,
        )
        self._check(bad, table)
        return out.view(np.uint8)

    def _check(self, bad: int, table: ChunkTables) -> None:
        if bad != DONE:
            raise self._place.corrupt(
                "a bit-packed chunk is cut off or of impossible width",
                offset=int(table.offsets[bad]),
            )

    def _split_by_page(
        self, table: ChunkTables, starts: NDArray[np.int64], stops: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Cut ranges at page boundaries: what lies between two pages belongs to neither."""
        if len(self._pages) == 1:
            return starts, stops
        first_pages = table.pages[table.chunks_of(starts)]
        last_pages = table.pages[table.chunks_of(stops - 1)]
        if bool((first_pages == last_pages).all()):
            return starts, stops
        pages = expand_ranges(first_pages, last_pages + 1)
        home = np.repeat(np.arange(len(starts)), last_pages - first_pages + 1)
        page_starts = self._pages.first_rows
        return (
            np.maximum(starts[home], page_starts[pages]),
            np.minimum(stops[home], page_starts[pages + 1]),
        )

    def _first_byte(
        self, tables: ChunkTables, rows: NDArray[np.int64], chunks: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return where the bytes needed for rows begin; constants need none and begin at 0."""
        kinds = tables.kinds[chunks]
        skipped = np.where(kinds == RAW, (rows - tables.first_rows[chunks]) * self.row_bytes, 0)
        return np.where(kinds == CONSTANT, 0, tables.offsets[chunks] + skipped)

    def _end_byte(
        self, tables: ChunkTables, last_rows: NDArray[np.int64], chunks: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return where the bytes needed for rows end; constants need none and end at 0."""
        kinds = tables.kinds[chunks]
        used = (last_rows - tables.first_rows[chunks] + 1) * self.row_bytes
        size = np.where(kinds == RAW, used, tables.sizes[chunks])
        return np.where(kinds == CONSTANT, 0, tables.offsets[chunks] + size)

    def _loaded(
        self, starts: NDArray[np.int64], stops: NDArray[np.int64], wanted: Sequence[tuple[int, int]]
    ) -> ReadSteps[ChunkTables | None]:
        """Return tables with the chunks of all rows of the ranges; None if a page is not direct."""
        for number in self._index.tables.missing(starts, stops).tolist():
            page = self._pages[number]
            direct = page.layout.direct(page)
            if direct is None or direct.row_bytes != self.row_bytes:
                self.is_direct = False
                return None
        return (yield from self._index.loaded(starts, stops, wanted))

    def _describe(self, numbers: NDArray[np.int64]) -> ReadSteps[PageChunks]:
        """Find the chunks of pages, all of them direct."""
        pages = [self._pages[number] for number in numbers.tolist()]
        return describe_direct_pages(pages, numbers, self._constants.number_of, self._place)


class _Constants:
    """The distinct rows of constant pages, numbered as they are met; safe to share.

    A number is given out after ``values`` holds its row, and ``values`` only grows: whoever has
    a number and then looks at ``values`` finds the row.
    """

    def __init__(self) -> None:
        self.values = np.empty(0, np.uint8)
        self._numbers: dict[bytes, int] = {}
        self._lock = threading.Lock()

    def number_of(self, row: bytes) -> int:
        """Return the number of a row."""
        with self._lock:
            number = self._numbers.get(row)
            if number is None:
                number = len(self._numbers)
                self.values = np.frombuffer(self.values.tobytes() + row, np.uint8).copy()
                self._numbers[row] = number
            return number
