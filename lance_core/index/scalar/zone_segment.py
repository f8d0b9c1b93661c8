"""Segments of indices that know something of zones: which may hold a value, and where nulls are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from lance_core.errors import InvalidRequestError
from lance_core.expr.index_query import IsNull
from lance_core.index.scalar.answer import RowAnswer
from lance_core.index.scalar.fragment_rows import NO_ROWS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy as np
    from numpy.typing import NDArray
    from pyroaring import BitMap

    from lance_core.expr.index_query import LeafQuery
    from lance_core.file.reader import LanceFileReader
    from lance_core.index.registry import IndexKind
    from lance_core.index.scalar.null_rows import NullRows
    from lance_core.index.scalar.segment import Check, RowNames
    from lance_core.index.scalar.zones import Zones


class ZoneContents(Protocol):
    """What an index knows of the values in each zone."""

    @property
    def nbytes(self) -> int:
        """Memory held, without what is kept in the cache."""

    @property
    def num_parts(self) -> int:
        """Parts that are read and kept in the cache as queries need them."""

    def load_parts(self, start: int, stop: int) -> int:
        """Bring the parts ``start`` to ``stop - 1`` into the cache; return the memory they take."""

    def supports(self, query: LeafQuery) -> bool:
        """Tell whether `may_hold` can answer a query."""

    def may_hold(self, query: LeafQuery, check: Check) -> NDArray[np.bool_]:
        """Say of each zone whether it may hold what is asked for, shape ``(z,)``."""


@dataclass(frozen=True, slots=True, eq=False)
class ZoneSegment:
    """A segment that excludes zones which hold nothing of what is asked for.

    Which rows of the other zones pass has to be looked at. Null rows are known exactly where the
    file has a set of them.

    Parameters
    ----------
    kind
        Which index it is.
    reader
        Its file.
    built_from
        Fragments that it was built from.
    zones
        Where the zones lie.
    has_nulls
        Shape ``(z,)``: whether a zone has rows without a value.
    nulls
        The rows without a value, None in a file that has no set of them.
    contents
        What values the zones hold; None where only nulls can be asked for.
    """

    kind: IndexKind
    reader: LanceFileReader
    built_from: BitMap
    zones: Zones
    has_nulls: NDArray[np.bool_]
    nulls: NullRows | None
    contents: ZoneContents | None

    @property
    def names_rows_by(self) -> RowNames:
        """How answers name rows."""
        return "address"

    @property
    def knows_nulls(self) -> bool:
        """Whether answers tell the null rows if asked."""
        return self.nulls is not None

    @property
    def nbytes(self) -> int:
        """Memory held, without what is kept in the cache."""
        contents = 0 if self.contents is None else self.contents.nbytes
        return self.reader.nbytes + self.zones.nbytes + int(self.has_nulls.nbytes) + contents

    def watch_growth(self, told: Callable[[], object]) -> None:
        """Call ``told`` from now on after each read that may have made `nbytes` larger."""
        self.reader.watch_growth(told)

    @property
    def num_parts(self) -> int:
        """Parts of the contents, and behind them the set of null rows if there is one."""
        return self._num_content_parts + (self.nulls is not None)

    def load_parts(self, start: int, stop: int) -> int:
        """Bring parts into the cache; return the memory they take."""
        num_bytes, last = 0, self._num_content_parts
        if self.contents is not None:
            num_bytes += self.contents.load_parts(start, min(stop, last))
        if self.nulls is not None and stop > last:
            num_bytes += self.nulls.load()
        return num_bytes

    @property
    def _num_content_parts(self) -> int:
        return 0 if self.contents is None else self.contents.num_parts

    def may_lack_rows(self, num_rows: Mapping[int, int]) -> bool:
        """Tell whether rows may be in no zone or in a wrong one, so that it must not be used.

        Where rows had been deleted pylance 0.39 put all zones of the fragment too far in front, and
        1.0 some that begin in one fragment and end in the next. Either way the zones of a fragment
        end before its last row; of later releases they do only if that row was a deleted one. Who
        wrote a set of nulls knew better.

        Parameters
        ----------
        num_rows
            Rows of fragments, deleted ones included: of those alive, and of those from before
            deferred compactions.
        """
        if self.nulls is not None:
            return False
        ends = self.zones.last_ends()
        return any(ends.get(each, 0) < num_rows.get(each, 0) for each in self.built_from)

    def supports(self, query: LeafQuery) -> bool:
        """Tell whether the index can answer a query; reads nothing."""
        if isinstance(query, IsNull):
            return True
        return self.contents is not None and self.contents.supports(query)

    def search(self, query: LeafQuery, *, with_nulls: bool, check: Check) -> RowAnswer:
        """Find rows; parameters and errors as ``ScalarSegment.search``."""
        check()
        if isinstance(query, IsNull):
            return self._null_rows()
        if self.contents is None:
            raise InvalidRequestError(f"a {self.kind} of this column knows only nulls")
        rows = self.zones.rows(self.contents.may_hold(query, check))
        nulls = self.nulls.rows() if with_nulls and self.nulls is not None else None
        return RowAnswer.at_most(rows, nulls)

    def _null_rows(self) -> RowAnswer:
        """Answer whether values are null, which is itself never null."""
        if self.nulls is None:
            return RowAnswer.at_most(self.zones.rows(self.has_nulls), NO_ROWS)
        return RowAnswer.exact(self.nulls.rows(), NO_ROWS)
