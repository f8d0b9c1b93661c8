"""Neighbouring mini-block pages without lists, read as if they were one page."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np

from lance_core.encodings.blocks import Blocks, address_of_bytes
from lance_core.encodings.chunk_index import ChunkIndex, PageChunks
from lance_core.encodings.compression import Selection
from lance_core.encodings.fsst import Fsst, expanded_by
from lance_core.encodings.levels import slice_rows, take_rows
from lance_core.encodings.page_dictionaries import JoinedDictionaries, apply_one_by_one
from lance_core.encodings.page_runs import PageRuns
from lance_core.encodings.passing import LONG_PIECES
from lance_core.encodings.rows import expand_ranges
from lance_core.encodings.steps import together

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.encodings.chunk_index import ChunkTables
    from lance_core.encodings.fsst import SymbolTable
    from lance_core.encodings.levels import PageData
    from lance_core.encodings.mini_block import MiniBlock, MiniBlockState
    from lance_core.encodings.page import Page, Pieces
    from lance_core.encodings.passing import PassedPages
    from lance_core.encodings.place import Place
    from lance_core.encodings.steps import ReadSteps
    from lance_core.encodings.values import Values

_CHUNKS, _DICTIONARY = 1, 2
_LOADED = 0
_SMALL_DICTIONARIES_BYTES = 1 << 20
"""Dictionaries that are together not larger are joined, so that one gather serves all pages."""


class MiniBlockRun:
    """Pages of one ``family``: chunks of all are decoded together.

    What differs from page to page, symbol tables and dictionaries, is told apart by row.

    Parameters
    ----------
    pages
        In row order, each beginning where the one before ends.
    place
        The column, for errors.
    passed
        Decides which pages of the column are forgotten.
    may_join_dictionaries
        Whether an item may occur twice among the items that the rows refer to.
    """

    def __init__(
        self,
        pages: Sequence[Page],
        place: Place,
        passed: PassedPages,
        *,
        may_join_dictionaries: bool,
    ) -> None:
        self._pages = pages
        self._place = place
        self._layout = cast("MiniBlock", pages[0].layout)
        self.first_row = pages[0].first_row
        self.num_rows = sum(page.num_rows for page in pages)
        first_rows = [page.first_row - self.first_row for page in pages]
        bounds = np.array([*first_rows, self.num_rows], np.int64)
        self._index = ChunkIndex(bounds, self._describe, passed)
        self._joins_dictionaries = may_join_dictionaries and self._have_small_dictionaries()
        self._joined: tuple[ChunkTables, JoinedDictionaries] | None = None

    @property
    def nbytes(self) -> int:
        """Memory of the chunk tables and dictionaries."""
        return self._index.nbytes

    def read(self, pieces: Pieces, wanted: Pieces) -> ReadSteps[list[PageData]]:
        """Read ascending, disjoint row ranges, counted from the first row of the run.

        ``wanted`` is all that is read of the column at once.
        """
        starts = np.array([start for start, _ in pieces], np.int64)
        stops = np.array([stop for _, stop in pieces], np.int64)
        tables = yield from self._index.loaded(starts, stops, wanted)
        if int((stops - starts).sum()) > LONG_PIECES * len(pieces):
            return (yield from self._read_ranges(tables, starts, stops))
        return (yield from self._read_rows(tables, expand_ranges(starts, stops)))

    def _read_rows(self, tables: ChunkTables, rows: NDArray[np.int64]) -> ReadSteps[list[PageData]]:
        """Read scattered rows: of most chunks only few values are wanted."""
        home = tables.chunks_of(rows)
        is_first = np.append(True, home[1:] != home[:-1])[: len(home)]
        chunks = home[is_first]
        counts = tables.first_rows[chunks + 1] - tables.first_rows[chunks]
        selection = None
        if len(rows) != int(counts.sum()):
            selection = Selection(np.cumsum(is_first) - 1, rows - tables.first_rows[home])
        blocks = yield from fetch_chunks(tables.offsets[chunks], tables.sizes[chunks])
        values = self._layout.shared_values
        data = self._layout.decode(blocks, counts, selection, values, self._place)
        return self._by_page(data, tables, PageRuns.of_rows(tables.pages[home]))

    def _read_ranges(
        self, tables: ChunkTables, starts: NDArray[np.int64], stops: NDArray[np.int64]
    ) -> ReadSteps[list[PageData]]:
        """Read long ranges: chunks are decoded whole, then the ends are cut off."""
        firsts, lasts = tables.chunks_of(starts), tables.chunks_of(stops - 1)
        if len(starts) == 1:
            chunks = np.arange(firsts[0], lasts[0] + 1)
        else:
            chunks = np.unique(expand_ranges(firsts, lasts + 1))
        counts = tables.first_rows[chunks + 1] - tables.first_rows[chunks]
        blocks = yield from fetch_chunks(tables.offsets[chunks], tables.sizes[chunks])
        data = self._layout.decode(blocks, counts, None, self._layout.shared_values, self._place)
        before = np.cumsum(counts) - counts
        at = before[np.searchsorted(chunks, firsts)] + starts - tables.first_rows[firsts]
        runs = PageRuns.of_chunks(tables.pages[chunks], counts)
        if len(at) == 1:
            start, stop = int(at[0]), int(at[0] + stops[0] - starts[0])
            return self._by_page(slice_rows(data, start, stop), tables, runs.slice(start, stop))
        rows = expand_ranges(at, at + stops - starts)
        pages = runs.numbers[runs.run_of_rows()[rows]]
        return self._by_page(take_rows(data, rows), tables, PageRuns.of_rows(pages))

    def _have_small_dictionaries(self) -> bool:
        if self._layout.dictionary is None:
            return False
        sizes = [page.buffers[_DICTIONARY][1] for page in self._pages]
        return sum(sizes) <= _SMALL_DICTIONARIES_BYTES

    def _describe(self, numbers: NDArray[np.int64]) -> ReadSteps[PageChunks]:
        """Load pages: their chunk tables, and their dictionaries if they have some."""
        pages = [self._pages[number] for number in numbers.tolist()]
        states = yield from together([self._load(page) for page in pages])
        tables = [state.table for state in states]
        dictionaries = {
            number: state.dictionary
            for number, state in zip(numbers.tolist(), states, strict=True)
            if state.dictionary is not None
        }
        counts = [table.num_chunks for table in tables]
        first_rows = np.array([page.first_row for page in pages], np.int64) - self.first_row
        first_bytes = np.array([page.buffers[_CHUNKS][0] for page in pages], np.int64)
        return PageChunks(
            _joined([t.first_values[:-1] for t in tables]) + np.repeat(first_rows, counts),
            _joined([t.first_bytes[:-1] for t in tables]) + np.repeat(first_bytes, counts),
            _joined([np.diff(t.first_bytes) for t in tables]),
            np.full(sum(counts), _LOADED, np.uint8),
            np.repeat(numbers, counts),
            dictionaries,
        )

    def _load(self, page: Page) -> ReadSteps[MiniBlockState]:
        return cast("MiniBlock", page.layout).read_state(page, self._place)

    def _by_page(self, data: PageData, tables: ChunkTables, runs: PageRuns) -> list[PageData]:
        """Apply the symbol tables or dictionaries of the rows' pages."""
        if isinstance(self._layout.values, Fsst):
            symbols = [self._symbols(number) for number in runs.numbers.tolist()]
            table_of = runs.run_of_rows()
            data = replace(data, values=expanded_by(data.values, symbols, table_of, self._place))
        if self._layout.dictionary is None:
            return [data]
        if not self._joins_dictionaries:
            return apply_one_by_one(data, runs, self._dictionaries(tables), self._place)
        joined = self._joined
        if joined is None or joined[0] is not tables:
            joined = (tables, JoinedDictionaries(self._dictionaries(tables), self._place))
            self._joined = joined
        return [joined[1].apply(data, runs, self._place)]

    def _symbols(self, number: int) -> SymbolTable:
        layout = cast("MiniBlock", self._pages[number].layout)
        return cast("Fsst", layout.values).table

    def _dictionaries(self, tables: ChunkTables) -> list[Values | None]:
        """Return the items of each page, None for pages that are not loaded."""
        return [tables.dictionaries.get(number) for number in range(len(self._pages))]


def _joined(parts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate([*parts, np.empty(0, np.int64)])


def fetch_chunks(starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> ReadSteps[Blocks]:
    """Read whole chunks by their places in the file; those that are neighbours together."""
    ends = starts + sizes
    is_first = np.append(True, starts[1:] != ends[:-1])[: len(starts)]
    is_last = np.append(is_first[1:], True)[: len(starts)]
    first_bytes = starts[is_first]
    views = yield list(zip(first_bytes.tolist(), ends[is_last].tolist(), strict=True))
    bases = np.array([address_of_bytes(view) for view in views], np.int64) - first_bytes
    run_of = np.cumsum(is_first) - 1
    return Blocks(bases[run_of] + starts, sizes, views)
