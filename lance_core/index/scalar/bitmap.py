"""BITMAP: for each distinct value the set of rows that have it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.expr.index_query import IsNull, StartsWith
from lance_core.index.registry import IndexKind
from lance_core.index.scalar.answer import RowAnswer
from lance_core.index.scalar.bitmap_file import BitmapFile
from lance_core.index.scalar.fragment_rows import NO_ROWS
from lance_core.index.scalar.key_ranges import can_be_ranges, key_ranges
from lance_core.index.scalar.keys import keys_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from lance_core.expr.index_query import LeafQuery
    from lance_core.index.scalar.segment import Check, RowNames, ScalarSource


@dataclass(frozen=True, slots=True, eq=False)
class BitmapSegment:
    """An opened BITMAP; see `ScalarSegment`.

    Parameters
    ----------
    file
        Its keys.
    num_trusted
        Keys whose sets are known to be right, the lowest ones.
    """

    file: BitmapFile
    num_trusted: int

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

    @property
    def num_parts(self) -> int:
        """Sets, that of null included."""
        return self.file.reader.num_rows

    def load_parts(self, start: int, stop: int) -> int:
        """Bring sets into the cache; return the memory they take."""
        return self.file.load_sets(range(start, stop))

    def supports(self, query: LeafQuery) -> bool:
        """Tell whether the index can answer a query; reads nothing."""
        if not can_be_ranges(query, self.file.key_type):
            return False
        if isinstance(query, IsNull) or self.num_trusted == len(self.file.keys):
            return True
        ranges = key_ranges(query)
        starts, stops = ranges.starts(self.file.keys), ranges.stops(self.file.keys)
        return not ((starts < stops) & (stops > self.num_trusted)).any()

    def search(self, query: LeafQuery, *, with_nulls: bool, check: Check) -> RowAnswer:
        """Find rows; reads the sets of the keys asked for, that of null if asked."""
        if isinstance(query, IsNull):
            return RowAnswer.exact(self.file.null_set(), NO_ROWS)
        rows, nulls = self.file.union(key_ranges(query), check, with_nulls=with_nulls)
        if isinstance(query, StartsWith) and not query.is_exact:
            return RowAnswer.at_most(rows, nulls)
        return RowAnswer.exact(rows, nulls)


def open_bitmap(source: ScalarSource) -> BitmapSegment:
    """Open a BITMAP: reads the end of its file and the keys; errors as `open_scalar_segment`."""
    file = BitmapFile.open(source, source.column_type)
    return BitmapSegment(file, _num_trusted(file))


def _num_trusted(file: BitmapFile) -> int:
    """Leave out positive NaNs, the highest keys, where there are negative ones too.

    Merging an index that had both, pylance 1.0 to 7.1 gave the positive one the rows of the
    negative one in place of its own.
    """
    if not pa.types.is_floating(file.key_type):
        return len(file.keys)
    infinite = np.array([-np.inf, np.inf], file.key_type.to_pandas_dtype())
    ends = keys_of(pa.array(infinite, file.key_type))
    has_negative = file.keys.search(ends, is_behind_equals=False)[0] > 0
    up_to_infinity = int(file.keys.search(ends, is_behind_equals=True)[1])
    return up_to_infinity if has_negative else len(file.keys)
