"""One column of a file: its pages, and reading rows of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.encodings.page import RawRows
from lance_core.encodings.steps import together
from lance_core.file.direct_column import DirectColumn
from lance_core.file.fixed_width import FixedWidthPage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance_core.encodings.levels import PageData
    from lance_core.encodings.page import Page, Pieces
    from lance_core.encodings.place import Place
    from lance_core.encodings.steps import ReadSteps


class Column:
    """The pages of a column; ``direct`` is set where rows are found by arithmetic."""

    def __init__(self, pages: Sequence[Page], place: Place) -> None:
        filled = [page for page in pages if page.num_rows > 0]
        self.place = place
        self._pages = filled
        self._starts = np.array([page.first_row for page in filled], np.int64)
        self.num_rows = filled[-1].first_row + filled[-1].num_rows if len(filled) > 0 else 0
        self.direct = DirectColumn.of(filled, place) if len(filled) > 0 else None

    @property
    def nbytes(self) -> int:
        """Memory of pages and their state, as an upper estimate."""
        state = sum(page.layout.state_bytes(page) for page in self._pages)
        own = 400 * len(self._pages)  # a page is a handful of small Python objects
        return own + (state if self.direct is None else self.direct.nbytes)

    def read(self, ranges: Pieces) -> ReadSteps[list[PageData]]:
        """Read ascending, disjoint row ranges; the parts come out in row order."""
        if len(ranges) > 0 and ranges[-1][1] > self.num_rows:
            raise self.place.corrupt(f"the column has only {self.num_rows} rows")
        reads = [
            page.layout.read(page, pieces, self.place) for page, pieces in self._by_page(ranges)
        ]
        parts = yield from together(reads)
        return [part for parts_of_page in parts for part in parts_of_page]

    def fixed_width_pages(self) -> list[FixedWidthPage] | None:
        """Return where the rows lie if all pages are raw, else None."""
        found: list[FixedWidthPage] = []
        for page in self._pages:
            direct = page.layout.direct(page)
            if not isinstance(direct, RawRows):
                return None
            found.append(
                FixedWidthPage(page.first_row, page.num_rows, direct.offset, direct.row_bytes * 8)
            )
        return found

    def _by_page(self, ranges: Pieces) -> list[tuple[Page, Pieces]]:
        """Cut ranges at page boundaries and count them from the first row of their page."""
        by_page: dict[int, Pieces] = {}
        for start, stop in ranges:
            number = int(np.searchsorted(self._starts, start, side="right")) - 1
            row = start
            while row < stop:
                page = self._pages[number]
                end = min(stop, page.first_row + page.num_rows)
                pieces = by_page.setdefault(number, [])
                pieces.append((row - page.first_row, end - page.first_row))
                row = end
                number += 1
        return [(self._pages[number], pieces) for number, pieces in by_page.items()]
