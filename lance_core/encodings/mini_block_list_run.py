"""Neighbouring mini-block pages with lists, read as if they were one page."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np

from lance_core.encodings.fsst import Fsst, expanded_by
from lance_core.encodings.mini_block_rows import RepetitionIndex
from lance_core.encodings.mini_block_run import fetch_chunks
from lance_core.encodings.page_dictionaries import JoinedDictionaries
from lance_core.encodings.page_runs import PageRuns
from lance_core.encodings.rows import expand_ranges
from lance_core.encodings.steps import together

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.encodings.fsst import SymbolTable
    from lance_core.encodings.levels import PageData
    from lance_core.encodings.mini_block import MiniBlock, MiniBlockState
    from lance_core.encodings.page import Page, Pieces
    from lance_core.encodings.passing import PassedPages
    from lance_core.encodings.place import Place
    from lance_core.encodings.steps import ReadSteps


_CHUNKS = 1


@dataclass(frozen=True, slots=True, eq=False)
class _JoinedPages:
    """The chunks of some pages, one page after another, and which rows start in them.

    ``offsets``, ``sizes`` and ``counts`` have shape ``(chunks,)``: where a chunk lies in the file,
    its bytes and its values; ``pages`` says of which of the pages it is. ``shifts`` has shape
    ``(pages,)``: what is added to a row of the run to count it among the rows of these pages.
    ``symbols`` are the tables of all pages or empty.
    """

    index: RepetitionIndex
    offsets: NDArray[np.int64]
    sizes: NDArray[np.int64]
    counts: NDArray[np.int64]
    pages: NDArray[np.int64]
    shifts: NDArray[np.int64]
    symbols: Sequence[SymbolTable]
    dictionaries: JoinedDictionaries | None

    @property
    def nbytes(self) -> int:
        """Memory of the tables."""
        return 6 * self.offsets.nbytes


class MiniBlockListRun:
    """Pages of one ``family`` of lists: chunks of all are decoded together.

    Parameters
    ----------
    pages
        In row order, each beginning where the one before ends.
    place
        The column, for errors.
    passed
        Decides which pages of the column are forgotten.
    """

    def __init__(self, pages: Sequence[Page], place: Place, passed: PassedPages) -> None:
        self._pages = pages
        self._passed = passed
        self._place = place
        self._layout = cast("MiniBlock", pages[0].layout)
        self.first_row = pages[0].first_row
        self.num_rows = sum(page.num_rows for page in pages)
        self._first_rows = np.array([page.first_row - self.first_row for page in pages], np.int64)
        self._joined: tuple[bytes, _JoinedPages] | None = None

    @property
    def nbytes(self) -> int:
        """Memory of the page states, and of the pages that were last joined."""
        known = self._joined  # others may drop it
        joined = 0 if known is None else known[1].nbytes
        return joined + sum(page.loaded.nbytes for page in self._pages)

    def read(self, pieces: Pieces, wanted: Pieces) -> ReadSteps[list[PageData]]:
        """Read ascending, disjoint row ranges, counted from the first row of the run.

        ``wanted`` is all that is read of the column at once.
        """
        starts, stops = np.array(pieces, np.int64).reshape(-1, 2).T
        first_pages = np.searchsorted(self._first_rows, starts, side="right") - 1
        last_pages = np.searchsorted(self._first_rows, stops - 1, side="right") - 1
        numbers = np.unique(expand_ranges(first_pages, last_pages + 1))
        joined = yield from self._loaded(numbers, wanted)
        shifts = joined.shifts[np.searchsorted(numbers, first_pages)]
        starts, stops = starts + shifts, stops + shifts
        chunks = np.unique(expand_ranges(*joined.index.chunks_of(starts, stops)))
        blocks = yield from fetch_chunks(joined.offsets[chunks], joined.sizes[chunks])
        data, levels = self._layout.decode_lists(
            blocks, joined.counts[chunks], self._layout.shared_values, self._place
        )
        data = self._by_page(data, joined, chunks)
        first_levels = np.concatenate(([0], np.cumsum(levels)))
        moved = list(zip(starts.tolist(), stops.tolist(), strict=True))
        return [joined.index.cut(data, chunks, first_levels, moved, self._place)]

    def _by_page(self, data: PageData, joined: _JoinedPages, chunks: NDArray[np.int64]) -> PageData:
        """Apply the symbol tables or dictionaries of the pages that the chunks are of."""
        runs = PageRuns.of_chunks(joined.pages[chunks], joined.counts[chunks])
        if isinstance(self._layout.values, Fsst):
            symbols = [joined.symbols[number] for number in runs.numbers.tolist()]
            table_of = runs.run_of_rows()
            data = replace(data, values=expanded_by(data.values, symbols, table_of, self._place))
        if joined.dictionaries is None:
            return data
        definition = data.definition
        visible = None if definition is None else definition[definition <= data.layers.max_visible]
        values_only = replace(data, definition=visible)
        values = joined.dictionaries.apply(values_only, runs, self._place).values
        return replace(data, values=values)

    def forget(self, numbers: Sequence[int]) -> None:
        """Drop the states of pages."""
        self._joined = None
        for number in numbers:
            self._pages[number].loaded.state = None

    def _loaded(self, numbers: NDArray[np.int64], wanted: Pieces) -> ReadSteps[_JoinedPages]:
        """Return the tables of pages, given by their ascending numbers; reads what is missing."""
        key = numbers.tobytes()
        known = self._joined  # scans and takes of all rows want the same pages again
        if known is not None and known[0] == key:
            return known[1]
        pages = [self._pages[number] for number in numbers.tolist()]
        missing = [
            number for number in numbers.tolist() if self._pages[number].loaded.state is None
        ]
        states = yield from together([self._load(page) for page in pages])
        if len(missing) > 0:
            sizes = {number: self._pages[number].loaded.nbytes for number in missing}
            self._passed.note(self, sizes, wanted)
        joined = _join(pages, states, self._first_rows[numbers], self._place)
        self._joined = (key, joined)
        return joined

    def _load(self, page: Page) -> ReadSteps[MiniBlockState]:
        return cast("MiniBlock", page.layout).load(page, self._place)


def _join(
    pages: Sequence[Page],
    states: Sequence[MiniBlockState],
    first_rows: NDArray[np.int64],
    place: Place,
) -> _JoinedPages:
    tables = [state.table for state in states]
    indices = [state.index_of_lists(place) for state in states]
    layouts = [cast("MiniBlock", page.layout) for page in pages]
    has_items = layouts[0].dictionary is not None
    num_rows = np.array([page.num_rows for page in pages], np.int64)
    before = np.cumsum(num_rows) - num_rows
    starting = [index.first_rows[:-1] + rows for index, rows in zip(indices, before, strict=True)]
    return _JoinedPages(
        RepetitionIndex(
            np.concatenate([*starting, num_rows.sum(keepdims=True)]),
            np.concatenate([index.trailers for index in indices]),
        ),
        np.concatenate(
            [
                table.first_bytes[:-1] + page.buffers[_CHUNKS][0]
                for page, table in zip(pages, tables, strict=True)
            ]
        ),
        np.concatenate([np.diff(table.first_bytes) for table in tables]),
        np.concatenate([np.diff(table.first_values) for table in tables]),
        np.repeat(np.arange(len(pages)), [table.num_chunks for table in tables]),
        before - first_rows,
        [layout.values.table for layout in layouts if isinstance(layout.values, Fsst)],
        JoinedDictionaries([state.dictionary for state in states], place) if has_items else None,
    )
