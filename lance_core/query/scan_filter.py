"""Which rows a plain query returns: what is known of its filter, and a test for the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.query.row_filter import checking
from lance_core.scan.masked_rows import MaskedRows
from lance_core.scan.projection import resolve_projection

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from lance_core.cache.byte_cache import ByteCache
    from lance_core.query.deadline import Deadline
    from lance_core.query.row_filter import RowFilter
    from lance_core.schema.tree import LanceSchema
    from lance_core.table.fragment import Fragment


class ScanTest:
    """Judges the rows of a scan by a filter; a `lance_core.scan.filtered_rows.RowTest`.

    Parameters
    ----------
    row_filter
        The filter, and what indices tell of it.
    schema
        Of the table.
    cache
        Holds what earlier queries found out.
    deadline
        Asked for while rows are judged.

    Attributes
    ----------
    projection
        The columns that the filter looks at.
    """

    def __init__(
        self,
        row_filter: RowFilter,
        schema: LanceSchema,
        cache: ByteCache,
        deadline: Callable[[], Deadline],
    ) -> None:
        self.projection = resolve_projection(schema, row_filter.filter.columns)
        self._filter = row_filter
        self._cache = cache
        self._deadline = deadline
        self._indexed = row_filter.indexed_fragments(deadline())

    def holds(self, batch: pa.RecordBatch) -> pa.BooleanArray:
        """Tell for each row whether the filter is true."""
        return self._filter.filter.holds(batch, checking(self._deadline()))

    def known(self, fragment: Fragment) -> MaskedRows | None:
        """Return the rows of a fragment that pass, unless finding them reads whole columns."""
        is_told = fragment.id in self._indexed or self._filter.key(fragment.id) in self._cache
        if not is_told:
            return None
        passing = self._filter.passing([fragment.id], self._deadline())[fragment.id]
        return MaskedRows(passing.words, passing.num_rows)
