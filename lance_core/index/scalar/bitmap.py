"""BITMAP: for each distinct value the set of rows that have it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lance_core.expr.index_query import IsNull, StartsWith
from lance_core.index.registry import IndexKind
from lance_core.index.scalar.answer import RowAnswer
from lance_core.index.scalar.bitmap_file import BitmapFile
from lance_core.index.scalar.fragment_rows import NO_ROWS
from lance_core.index.scalar.key_ranges import can_be_ranges, key_ranges

if TYPE_CHECKING:
    from collections.abc import Callable

    from lance_core.expr.index_query import LeafQuery
    from lance_core.index.scalar.segment import Check, RowNames, SegmentSource


@dataclass(frozen=True, slots=True, eq=False)
class BitmapSegment:
    """An opened BITMAP; see `ScalarSegment`."""

    file: BitmapFile

    @property
    def kind(self) -> IndexKind:
        """Which index it is."""
        return IndexKind.BITMAP

    @property
    def names_rows_by(self) -> RowNames:
        """How answers name rows (scalar index page, section 1.3)."""
        return "row_id"

    @property
    def knows_nulls(self) -> bool:
        """Whether answers tell the null rows if asked."""
        return True

    @property
    def nbytes(self) -> int:
        """Memory held, without sets."""
        return self.file.nbytes

    def watch_growth(self, told: Callable[[], object]) -> None:
        """Call ``told`` from now on after each read that may have made `nbytes` larger."""
        self.file.reader.watch_growth(told)

    def supports(self, query: LeafQuery) -> bool:
        """Tell whether the index can answer a query; reads nothing."""
        return can_be_ranges(query, self.file.key_type)

    def search(self, query: LeafQuery, *, with_nulls: bool, check: Check) -> RowAnswer:
        """Find rows; reads the sets of the keys asked for, that of null if asked."""
        if isinstance(query, IsNull):
            return RowAnswer.exact(self.file.null_set(), NO_ROWS)
        rows, nulls = self.file.union(key_ranges(query), check, with_nulls=with_nulls)
        if isinstance(query, StartsWith) and not query.is_exact:
            return RowAnswer.at_most(rows, nulls)
        return RowAnswer.exact(rows, nulls)


def open_bitmap(source: SegmentSource) -> BitmapSegment:
    """Open a BITMAP: reads the end of its file and the keys; errors as `open_scalar_segment`."""
    return BitmapSegment(BitmapFile.open(source, source.column_type))
