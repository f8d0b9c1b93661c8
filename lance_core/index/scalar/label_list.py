"""LABEL_LIST: for each distinct element of lists the set of rows whose list has it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_core.errors import InvalidRequestError
from lance_core.expr.index_query import HasLabels
from lance_core.index.registry import IndexKind, UnusableSegmentError
from lance_core.index.scalar.answer import RowAnswer
from lance_core.index.scalar.bitmap_file import BitmapFile
from lance_core.index.scalar.fragment_rows import intersect, unite
from lance_core.index.scalar.keys import keys_of
from lance_core.index.scalar.null_rows import NullRows

if TYPE_CHECKING:
    from collections.abc import Callable

    from lance_core.expr.index_query import LeafQuery
    from lance_core.index.scalar.segment import Check, RowNames, ScalarSource

_NULLS = "lance:label_list_nulls"


@dataclass(frozen=True, slots=True, eq=False)
class LabelListSegment:
    """An opened LABEL_LIST; see `ScalarSegment`.

    Parameters
    ----------
    file
        Its labels.
    nulls
        Rows without a list; None where the writer, one before pylance 4.0, did not record them.
    """

    file: BitmapFile
    nulls: NullRows | None

    @property
    def kind(self) -> IndexKind:
        """Which index it is."""
        return IndexKind.LABEL_LIST

    @property
    def names_rows_by(self) -> RowNames:
        """How answers name rows (scalar index page, section 1.3)."""
        return "row_id"

    @property
    def knows_nulls(self) -> bool:
        """Whether answers tell the null rows if asked."""
        return self.nulls is not None

    @property
    def nbytes(self) -> int:
        """Memory held, without sets."""
        return self.file.nbytes

    def watch_growth(self, told: Callable[[], object]) -> None:
        """Call ``told`` from now on after each read that may have made `nbytes` larger."""
        self.file.reader.watch_growth(told)

    @property
    def num_parts(self) -> int:
        """Sets of the labels, and behind them the rows without a list if they are recorded."""
        return self.file.reader.num_rows + (self.nulls is not None)

    def load_parts(self, start: int, stop: int) -> int:
        """Bring sets into the cache; return the memory they take."""
        num_sets = self.file.reader.num_rows
        num_bytes = self.file.load_sets(range(start, min(stop, num_sets)))
        return num_bytes + (self.nulls.load() if self.nulls is not None and stop > num_sets else 0)

    def supports(self, query: LeafQuery) -> bool:
        """Tell whether the index can answer a query; reads nothing.

        No set says which rows have all or any of no labels.
        """
        return (
            isinstance(query, HasLabels)
            and len(query.labels) > 0
            and bool(query.labels.type == self.file.key_type)
        )

    def search(self, query: LeafQuery, *, with_nulls: bool, check: Check) -> RowAnswer:
        """Find rows; reads the sets of the labels, and the rows without a list if asked."""
        if not isinstance(query, HasLabels):
            raise InvalidRequestError(f"{type(query).__name__} asks for no labels")
        check()
        distinct = query.labels.unique()
        labels = keys_of(distinct.drop_null())
        sets = self.file.sets_of(labels, with_null=distinct.null_count > 0)
        rows = reduce(intersect, sets) if query.needs_all else unite(sets)
        nulls = self.nulls.rows() if with_nulls and self.nulls is not None else None
        return RowAnswer.exact(rows, nulls)


def open_label_list(source: ScalarSource) -> LabelListSegment:
    """Open a LABEL_LIST: reads the end of its file and the keys.

    Errors as `open_scalar_segment`.
    """
    kind = source.column_type
    if not pa.types.is_list(kind) and not pa.types.is_large_list(kind):
        raise UnusableSegmentError(f"column type {kind} has no labels")
    file = BitmapFile.open(source, kind.value_type)
    return LabelListSegment(file, NullRows.find(source, file.reader, _NULLS))
