"""Columns whose rows are found by arithmetic: one kernel call per read, whatever the pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from lance_core.encodings.blocks import address_of_bytes
from lance_core.encodings.chunk_index import NOT_LOADED, ChunkIndex, PageChunks, one_chunk
from lance_core.encodings.chunk_table import CHUNK_HEADER_BYTES
from lance_core.encodings.page import ConstantRow, RawRows
from lance_core.kernels.bitpacking import BLOCK_ROWS, DONE, UNSIGNED
from lance_core.kernels.direct_rows import CONSTANT, PACKED, RAW, copy_ranges, copy_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.encodings.chunk_index import ChunkTables
    from lance_core.encodings.mini_block import MiniBlock
    from lance_core.encodings.page import DirectChunks, DirectPage, Page
    from lance_core.encodings.place import Place
    from lance_core.encodings.steps import ReadSteps

_METADATA_BUFFER, _CHUNK_BUFFER = 0, 1
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
        numbers = np.cumsum([isinstance(each, ConstantRow) for each in direct]) - 1
        chunks = [
            _without_table(page, each, number)
            for page, each, number in zip(pages, direct, numbers.tolist(), strict=True)
        ]
        self._index = ChunkIndex(chunks, self.num_rows, self._describe)
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
        return self._index.nbytes

    def read(self, ranges: Sequence[tuple[int, int]]) -> ReadSteps[NDArray[np.uint8]]:
        """Read row ranges in any order; they may overlap.

        Returns
        -------
        NDArray[np.uint8]
            Shape ``(rows * row_bytes,)``.
        """
        starts = np.array([start for start, stop in ranges if start < stop], np.int64)
        stops = np.array([stop for start, stop in ranges if start < stop], np.int64)
        table = yield from self._index.loaded(starts, stops)
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
            self._constants,
            self._stride,
            out,
        )
        self._check(bad, table)
        return out.view(np.uint8)

    def take(self, rows: NDArray[np.int64]) -> ReadSteps[NDArray[np.uint8]]:
        """Read single rows in any order; of raw chunks only the rows' own bytes."""
        table = yield from self._index.loaded(rows, rows + 1)
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
            mapping = (whole, address_of_bytes(whole))
            self._mapping = mapping
        return self._copy(np.full(len(rows), mapping[1]), rows, table)

    def _is_missing(self, table: ChunkTables, rows: NDArray[np.int64]) -> bool:
        return bool((table.kinds[table.chunks_of(rows)] == NOT_LOADED).any())

    def _copy(
        self, bases: NDArray[np.int64], rows: NDArray[np.int64], table: ChunkTables
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

    def _describe(self, number: int) -> ReadSteps[PageChunks]:
        """Read the chunk table of a mini-block page."""
        page = self._pages[number]
        (words,) = yield [page.whole(_METADATA_BUFFER)]
        layout = cast("MiniBlock", page.layout)
        direct = cast("DirectChunks", self._direct[number])
        table = layout.load_table(page, words, self._place)
        counts = np.diff(table.first_values)
        sizes = np.diff(table.first_bytes) - CHUNK_HEADER_BYTES
        room = np.full(len(sizes), BLOCK_ROWS) if direct.is_packed else sizes // direct.row_bytes
        if bool((counts > room).any()):
            raise self._place.corrupt("a chunk is too short for its rows")
        return PageChunks(
            table.first_values[:-1] + page.first_row,
            table.first_bytes[:-1] + page.buffers[_CHUNK_BUFFER][0] + CHUNK_HEADER_BYTES,
            sizes,
            PACKED if direct.is_packed else RAW,
        )


def _without_table(page: Page, direct: DirectPage, constant: int) -> PageChunks:
    """Describe a page as one chunk; ``constant`` is the number of its constant, if it is one."""
    if isinstance(direct, ConstantRow):
        return one_chunk(page.first_row, constant, 0, CONSTANT)
    if isinstance(direct, RawRows):
        return one_chunk(page.first_row, direct.offset, direct.row_bytes * page.num_rows, RAW)
    return one_chunk(page.first_row, 0, 0, NOT_LOADED)
