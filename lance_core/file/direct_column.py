"""Columns whose rows are found by arithmetic: one kernel call per read, whatever the pages."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, cast

import numpy as np

from lance_core.encodings.blocks import address_of_bytes
from lance_core.encodings.page import ConstantRow
from lance_core.file.direct_table import NOT_LOADED, DirectTable, with_table, without_table
from lance_core.kernels.bitpacking import DONE, UNSIGNED
from lance_core.kernels.direct_rows import copy_ranges, copy_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.encodings.mini_block import MiniBlock
    from lance_core.encodings.page import DirectChunks, DirectPage, Page
    from lance_core.encodings.place import Place
    from lance_core.encodings.steps import ReadSteps

_METADATA_BUFFER = 0
_WIDTHS = (8, 4, 2, 1)


class DirectColumn:
    """Rows of a fixed width in pages that are raw, inline-packed or constant; no nulls.

    Chunk tables of mini-block pages are read when a row of the page is first wanted.
    """

    def __init__(
        self, pages: Sequence[Page], direct: Sequence[DirectPage], row_bytes: int, place: Place
    ) -> None:
        self._pages = pages
        self._direct = direct
        self._place = place
        self.row_bytes = row_bytes
        self.num_rows = pages[-1].first_row + pages[-1].num_rows
        width = next(width for width in _WIDTHS if row_bytes % width == 0)
        self._element = UNSIGNED[width * 8]
        self._stride = row_bytes // width
        constants = [each.value for each in direct if isinstance(each, ConstantRow)]
        self._constants = np.frombuffer(b"".join(constants), self._element).copy()
        self._lock = threading.Lock()
        numbers = np.cumsum([isinstance(each, ConstantRow) for each in direct]) - 1
        self._chunks = [
            without_table(page, each, number)
            for page, each, number in zip(pages, direct, numbers.tolist(), strict=True)
        ]
        self._table = DirectTable.of(self._chunks, self.num_rows)
        self._mapping: tuple[memoryview, int] | None = None

    @classmethod
    def of(cls, pages: Sequence[Page], place: Place) -> DirectColumn | None:
        """Return the column, or None if a page is not direct or pages differ in width."""
        direct: list[DirectPage] = []
        widths: set[int] = set()
        for page in pages:
            each = page.layout.direct(page)
            if each is None:
                return None
            direct.append(each)
            widths.add(len(each.value) if isinstance(each, ConstantRow) else each.row_bytes)
        if len(widths) != 1:
            return None
        return cls(pages, direct, widths.pop(), place)

    @property
    def nbytes(self) -> int:
        """Memory of the chunk tables."""
        return 2 * self._table.nbytes

    def read(self, ranges: Sequence[tuple[int, int]]) -> ReadSteps[NDArray[np.uint8]]:
        """Read row ranges in any order; they may overlap.

        Returns
        -------
        NDArray[np.uint8]
            Shape ``(rows * row_bytes,)``.
        """
        starts = np.array([start for start, stop in ranges if start < stop], np.int64)
        stops = np.array([stop for start, stop in ranges if start < stop], np.int64)
        table = yield from self._loaded(starts, stops)
        starts, stops = self._split_by_page(table, starts, stops)
        first_bytes = table.byte_of(starts, table.chunks_of(starts), self.row_bytes)
        end_bytes = table.end_byte_of(stops - 1, table.chunks_of(stops - 1), self.row_bytes)
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
            self._constants,
            self._stride,
            out,
        )
        self._check(bad, table)
        return out.view(np.uint8)

    def take(self, rows: NDArray[np.int64]) -> ReadSteps[NDArray[np.uint8]]:
        """Read single rows in any order; of raw chunks only the rows' own bytes."""
        table = yield from self._loaded(rows, rows + 1)
        chunks = table.chunks_of(rows)
        first_bytes = table.byte_of(rows, chunks, self.row_bytes)
        end_bytes = table.end_byte_of(rows, chunks, self.row_bytes)
        views = yield list(zip(first_bytes.tolist(), end_bytes.tolist(), strict=True))
        bases = np.array([address_of_bytes(view) for view in views], np.int64) - first_bytes
        return self._copy(bases, rows, table)

    def take_mapped(self, whole: memoryview, rows: NDArray[np.int64]) -> NDArray[np.uint8] | None:
        """Copy single rows out of the mapped file, or return None until all tables are loaded.

        ``whole`` is the file as the store maps it now, at least as long as when it was opened.
        """
        table = self._table
        if not table.is_complete:
            return None
        mapping = self._mapping
        if mapping is None or mapping[0] is not whole:
            mapping = (whole, address_of_bytes(whole))
            self._mapping = mapping
        return self._copy(np.full(len(rows), mapping[1]), rows, table)

    def _copy(
        self, bases: NDArray[np.int64], rows: NDArray[np.int64], table: DirectTable
    ) -> NDArray[np.uint8]:
        out = np.empty(len(rows) * self._stride, self._element)
        bad = copy_rows(
            bases,
            rows,
            table.first_rows,
            table.offsets,
            table.sizes,
            table.kinds,
            self._constants,
            self._stride,
            out,
        )
        self._check(bad, table)
        return out.view(np.uint8)

    def _check(self, bad: int, table: DirectTable) -> None:
        if bad != DONE:
            raise self._place.corrupt(
                "a bit-packed chunk is cut off or of impossible width",
                offset=int(table.offsets[bad]),
            )

    def _split_by_page(
        self, table: DirectTable, starts: NDArray[np.int64], stops: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Cut ranges at page boundaries: what lies between two pages belongs to neither."""
        first_pages = table.pages[table.chunks_of(starts)]
        last_pages = table.pages[table.chunks_of(stops - 1)]
        if bool((first_pages == last_pages).all()):
            return starts, stops
        pages = np.concatenate(
            [
                np.arange(first, last + 1)
                for first, last in zip(first_pages, last_pages, strict=True)
            ]
        )
        home = np.repeat(np.arange(len(starts)), last_pages - first_pages + 1)
        page_starts = np.array([page.first_row for page in self._pages] + [self.num_rows])
        return (
            np.maximum(starts[home], page_starts[pages]),
            np.minimum(stops[home], page_starts[pages + 1]),
        )

    def _loaded(
        self, starts: NDArray[np.int64], stops: NDArray[np.int64]
    ) -> ReadSteps[DirectTable]:
        """Return a table that holds the chunks of all pages with rows of the ranges."""
        table = self._table
        if table.is_complete or len(starts) == 0:
            return table
        first_pages = table.pages[table.chunks_of(starts)].tolist()
        last_pages = table.pages[table.chunks_of(stops - 1)].tolist()
        wanted = {
            page
            for first, last in zip(first_pages, last_pages, strict=True)
            for page in range(first, last + 1)
            if self._chunks[page].kind == NOT_LOADED
        }
        if len(wanted) == 0:
            return table
        missing = sorted(wanted)
        views = yield [self._pages[page].whole(_METADATA_BUFFER) for page in missing]
        return self._add_tables(missing, views)

    def _add_tables(self, pages: Sequence[int], views: Sequence[memoryview]) -> DirectTable:
        found = {}
        for number, view in zip(pages, views, strict=True):
            page = self._pages[number]
            layout = cast("MiniBlock", page.layout)
            table = layout.load_table(page, view, self._place)
            direct = cast("DirectChunks", self._direct[number])
            found[number] = with_table(page, direct, table, self._place)
        with self._lock:
            for number, chunks in found.items():
                self._chunks[number] = chunks
            self._table = DirectTable.of(self._chunks, self.num_rows)
            return self._table
