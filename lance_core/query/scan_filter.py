"""Which rows a plain query returns: what is known of its filter, and a test for the rest."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from pyroaring import BitMap

from lance_core.query.judged_rows import RowJudge
from lance_core.query.named_rows import named_rows
from lance_core.query.row_filter import checking
from lance_core.scan.chosen_rows import BitmapRows, MaskedRows
from lance_core.scan.projection import resolve_projection

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from lance_core.query.deadline import Deadline
    from lance_core.query.row_filter import RowFilter
    from lance_core.query.session import Session
    from lance_core.scan.filtered_rows import ChosenRows
    from lance_core.scan.projection import Projection
    from lance_core.table.fragment import Fragment
    from lance_core.table.snapshot import Snapshot

_NO_ROWS = BitMap()


class ScanTest:
    """Judges the rows of a scan by a filter; a `lance_core.scan.filtered_rows.RowTest`.

    Parameters
    ----------
    row_filter
        The filter, and what indices tell of it.
    session, snapshot
        Opened files, what earlier queries found out, and the version.
    deadline
        Asked for while rows are judged.

    """

    def __init__(
        self,
        row_filter: RowFilter,
        session: Session,
        snapshot: Snapshot,
        deadline: Callable[[], Deadline],
    ) -> None:
        test = row_filter.filter
        self._schema = snapshot.schema
        self._filter = row_filter
        self._cache = session.cache
        self._deadline = deadline
        self._named = named_rows(session.files, snapshot, test.expression)
        if self._named is not None:
            self._judge = RowJudge(session.files, snapshot, test.expression)
        self._rows = row_filter.rows(deadline())

    @cached_property
    def projection(self) -> Projection:
        """The columns that the filter looks at."""
        return resolve_projection(self._schema, self._filter.filter.columns)

    @property
    def num_named(self) -> int | None:
        """How many fragments have rows that the filter names; None = it names none."""
        return None if self._named is None else len(self._named)

    def holds(self, batch: pa.RecordBatch) -> pa.BooleanArray:
        """Tell for each row whether the filter is true."""
        return self._filter.filter.holds(batch, checking(self._deadline()))

    def known(self, fragment: Fragment) -> ChosenRows | None:
        """Return the rows of a fragment that pass, unless finding them reads whole columns."""
        if self._named is not None:
            return self._of_named(self._named.get(fragment.id, _NO_ROWS), fragment)
        named = self._rows.named(fragment.id)
        if named is not None:
            return BitmapRows(named)
        is_judged = self._filter.key(fragment.id) in self._cache
        if not is_judged and not self._rows.is_told(fragment.id):
            return None
        passing = self._filter.passing([fragment.id], self._deadline())[fragment.id]
        return MaskedRows(passing.words, passing.num_rows)

    def _of_named(self, named: BitMap, fragment: Fragment) -> ChosenRows:
        """Return those that pass of the rows which the filter names."""
        if len(named) == 0:
            return BitmapRows(named)
        passes = self._judge.of_rows({fragment.id: named}, self._deadline())[fragment.id]
        return MaskedRows(
            np.packbits(passes, bitorder="little").view(np.uint64), int(np.count_nonzero(passes))
        )
