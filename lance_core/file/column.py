"""One column of a file: its pages, and reading rows of them."""

from __future__ import annotations

from functools import partial
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Protocol

import numpy as np

from lance_core.encodings.mini_block import MiniBlock
from lance_core.encodings.mini_block_list_run import MiniBlockListRun
from lance_core.encodings.mini_block_run import MiniBlockRun
from lance_core.encodings.page import RawRows
from lance_core.encodings.passing import PassedPages
from lance_core.encodings.rows import expand_ranges
from lance_core.encodings.steps import together
from lance_core.file.direct_column import DirectColumn
from lance_core.file.fixed_width import FixedWidthPage

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lance_core.encodings.levels import PageData
    from lance_core.encodings.page import Page, Pieces
    from lance_core.encodings.place import Place
    from lance_core.encodings.steps import ReadSteps
    from lance_core.file.page_list import PageList

_PAGE_OBJECTS_BYTES = 400
"""A page is a handful of small Python objects."""


class Segment(Protocol):
    """Neighbouring rows that are read together: one page or a run of them."""

    @property
    def first_row(self) -> int:
        """First row, counted in the column."""

    @property
    def num_rows(self) -> int:
        """Number of rows."""

    @property
    def nbytes(self) -> int:
        """Memory of its state."""

    def read(self, pieces: Pieces, wanted: Pieces) -> ReadSteps[list[PageData]]:
        """Read ascending, disjoint row ranges, counted from the first row.

        ``wanted`` is all that is read of the column at once.
        """


class Column:
    """The pages of a column.

    Parameters
    ----------
    pages
        In row order.
    place
        The column, for errors.
    is_dictionary
        Whether the column's type is a dictionary, whose items must be distinct.
    """

    def __init__(self, pages: PageList, place: Place, *, is_dictionary: bool) -> None:
        self.place = place
        self.num_rows = pages.num_rows
        self.pages = pages
        self._passed = PassedPages(int(pages.num_bytes.sum()) / max(pages.num_rows, 1))
        self._direct = DirectColumn.of(pages, place, self._passed) if len(pages) > 0 else None
        self._is_dictionary = is_dictionary
        self._by_pages: _Segments | None = None

    @property
    def direct(self) -> DirectColumn | None:
        """The column as one whose rows are found by arithmetic; None if it is known not to be."""
        direct = self._direct
        return direct if direct is not None and direct.is_direct else None

    @property
    def nbytes(self) -> int:
        """Memory of pages and their states, as an upper estimate."""
        return _PAGE_OBJECTS_BYTES * self.pages.num_described + self.state_bytes

    @property
    def state_bytes(self) -> int:
        """Memory of the states of pages; what scans load of it does not grow with the column."""
        parts = (self._direct, self._by_pages)
        return sum(part.nbytes for part in parts if part is not None)

    def read(self, ranges: Pieces) -> ReadSteps[list[PageData]]:
        """Read ascending, disjoint row ranges; the parts come out in row order."""
        if len(ranges) > 0 and ranges[-1][1] > self.num_rows:
            raise self.place.corrupt(f"the column has only {self.num_rows} rows")
        if self._by_pages is None:
            self._by_pages = _Segments(self.pages, self.place, self._passed, self._is_dictionary)
        reads = [segment.read(pieces, ranges) for segment, pieces in self._by_pages.cut(ranges)]
        parts = yield from together(reads)
        return [part for parts_of_segment in parts for part in parts_of_segment]

    def fixed_width_pages(self) -> list[FixedWidthPage] | None:
        """Return where the rows lie if all pages are raw, else None."""
        found: list[FixedWidthPage] = []
        for page in self.pages:
            direct = page.layout.direct(page)
            if not isinstance(direct, RawRows):
                return None
            found.append(
                FixedWidthPage(page.first_row, page.num_rows, direct.offset, direct.row_bytes * 8)
            )
        return found


class _OnePage:
    """A page that is read by itself."""

    def __init__(self, page: Page, place: Place, passed: PassedPages) -> None:
        self._page = page
        self._place = place
        self._passed = passed
        self.first_row = page.first_row
        self.num_rows = page.num_rows

    @property
    def nbytes(self) -> int:
        return self._page.loaded.nbytes

    def forget(self, numbers: Sequence[int]) -> None:
        self._page.loaded.state = None

    def read(self, pieces: Pieces, wanted: Pieces) -> ReadSteps[list[PageData]]:
        loaded = self._page.loaded
        was_loaded = loaded.state is not None
        parts = yield from self._page.layout.read(self._page, pieces, self._place)
        if not was_loaded and loaded.nbytes > 0:
            self._passed.note(self, {0: loaded.nbytes}, wanted)
        return parts


def _family(page: Page, *, is_dictionary: bool) -> object:
    """Return what neighbouring pages must share to be read as one; pages by themselves differ."""
    layout = page.layout
    if isinstance(layout, MiniBlock) and not (layout.has_lists and is_dictionary):
        return layout.family
    return page


class _Segments:
    """All segments of a column, in row order."""

    def __init__(
        self, pages: Iterable[Page], place: Place, passed: PassedPages, is_dictionary: bool
    ) -> None:
        self._segments: list[Segment] = []
        for family, group in groupby(pages, partial(_family, is_dictionary=is_dictionary)):
            members = list(group)
            layout = members[0].layout
            if family is members[0]:
                self._segments.append(_OnePage(members[0], place, passed))
            elif isinstance(layout, MiniBlock) and layout.has_lists:
                self._segments.append(MiniBlockListRun(members, place, passed))
            else:
                run = MiniBlockRun(members, place, passed, may_join_dictionaries=not is_dictionary)
                self._segments.append(run)
        self._starts = np.array([segment.first_row for segment in self._segments], np.int64)
        num_rows = np.array([segment.num_rows for segment in self._segments], np.int64)
        self._ends = self._starts + num_rows

    @property
    def nbytes(self) -> int:
        """Memory of their states."""
        return sum(segment.nbytes for segment in self._segments)

    def cut(self, ranges: Pieces) -> list[tuple[Segment, Pieces]]:
        """Cut ranges at the ends of segments and count them from the first row of their own."""
        if len(self._segments) == 1:
            filled = [span for span in ranges if span[0] < span[1]]
            return [(self._segments[0], filled)] if len(filled) > 0 else []
        bounds = np.array([span for span in ranges if span[0] < span[1]], np.int64).reshape(-1, 2)
        first = np.searchsorted(self._starts, bounds[:, 0], side="right") - 1
        last = np.searchsorted(self._starts, bounds[:, 1] - 1, side="right") - 1
        numbers = expand_ranges(first, last + 1)
        owners = np.repeat(np.arange(len(bounds)), last - first + 1)
        starts, ends = self._starts[numbers], self._ends[numbers]
        begins = np.maximum(bounds[owners, 0], starts) - starts
        stops = np.minimum(bounds[owners, 1], ends) - starts
        breaks = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
        return [
            (
                self._segments[int(numbers[begin])],
                list(zip(begins[begin:end].tolist(), stops[begin:end].tolist(), strict=True)),
            )
            for begin, end in pairwise(breaks)
            if begin < end
        ]
