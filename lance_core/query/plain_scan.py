"""Plain queries: rows that pass a filter, in the order asked for, batch by batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.query.indexed_filter import IndexUse
from lance_core.query.measure import UNMEASURED, Measures
from lance_core.query.output_columns import output_columns
from lance_core.query.plan import ScanPlan
from lance_core.query.row_filter import RowFilter
from lance_core.query.scan_filter import ScanTest
from lance_core.query.steps import FILTER, ORDER, SCAN, TAKE
from lance_core.scan.filtered_rows import ScanTally, scan_passing
from lance_core.scan.ordered_rows import read_in_order
from lance_core.scan.ordering import require_ordered
from lance_core.scan.projection import (
    OWN_ADDRESS,
    Projection,
    resolve_projection,
    with_address,
)
from lance_core.scan.rows import scan_rows
from lance_core.scan.top_rows import TopRows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from lance_core.query.deadline import Deadline
    from lance_core.query.request import ScanQuery
    from lance_core.query.session import Session
    from lance_core.table.snapshot import Snapshot

_KEY_ROWS = 1 << 16


class PlainScan:
    """One plain query at one version, to be read once.

    Parameters
    ----------
    session, snapshot
        Cache and opened files, and the version.
    query
        The query.
    deadline
        Asked for whenever work may have to stop.
    batch_rows
        Largest batch.

    Raises
    ------
    UnknownColumnError
        The table lacks a column that the query names.
    TypeMismatchError
        The filter or an expression combines what does not go together, or a column to order by
        holds values without an order.
    InvalidRequestError
        The filter is no test, or a column of the answer is named twice.
    """

    def __init__(
        self,
        session: Session,
        snapshot: Snapshot,
        query: ScanQuery,
        deadline: Callable[[], Deadline],
        *,
        batch_rows: int = 8192,
    ) -> None:
        self._tally = ScanTally()
        self._files = session.files
        self._snapshot = snapshot
        self._query = query
        self._deadline = deadline
        self._batch_rows = batch_rows
        self._output = output_columns(
            snapshot.schema,
            query.columns,
            with_row_id=query.with_row_id,
            params=query.params,
            check=self._check("reading expressions"),
        )
        self._keys = _key_columns(snapshot, query)
        self._filter: RowFilter | None = None
        self._test: ScanTest | None = None
        if query.filter is not None:
            self._filter = RowFilter(
                session,
                snapshot,
                query.filter,
                deadline(),
                params=query.params,
                covered_only=query.fast_search,
                index_use=IndexUse.ALWAYS if query.use_index else IndexUse.NEVER,
            )
            self._test = ScanTest(self._filter, session, snapshot, deadline)

    @property
    def schema(self) -> pa.Schema:
        """Of the answer."""
        return self._output.schema

    def plan(self) -> ScanPlan:
        """Return what is going to be done."""
        row_filter, query = self._filter, self._query
        num_named = None if self._test is None else self._test.num_named
        num_fragments = self._num_fragments if num_named is None else num_named
        return ScanPlan(
            columns=tuple(self._output.schema.names),
            num_fragments=num_fragments,
            offset=query.offset,
            limit=query.limit,
            filter=None if row_filter is None else row_filter.text,
            order_by=tuple(str(each) for each in query.order_by),
            scanned=self._scanned(),
            late=self._late(),
            is_computed=self._output.computed is not None,
            steps=None
            if row_filter is None or num_named is not None
            else row_filter.steps(self._deadline()),
        )

    @property
    def _num_fragments(self) -> int:
        """How many fragments may be read."""
        wanted = self._query.fragment_ids
        ids = [each.id for each in self._snapshot.fragments]
        return len(ids if wanted is None else wanted.intersection(ids))

    def batches(self, measures: Measures = UNMEASURED) -> Iterator[pa.RecordBatch]:
        """Yield the rows in batches of bounded size; told what each step does."""
        check = self._check("reading rows")
        for batch in self._rows(measures):
            check()
            yield self._output.of(batch, check)
        if self._test is not None:
            with measures.measure(SCAN) as facts:
                facts.rows = self._tally.judged
            with measures.measure(FILTER) as facts:
                facts.rows = self._tally.passed

    def _scanned(self) -> tuple[str, ...]:
        """Return the columns that are read of all rows."""
        if self._filter is None and not self._query.order_by:
            return tuple(column.name for column in self._output.stored.columns)
        names = () if self._test is None else self._test.projection.schema.names
        return tuple(dict.fromkeys([*names, *(each.column for each in self._query.order_by)]))

    def _late(self) -> tuple[str, ...]:
        """Return the columns that are read only of rows that are returned."""
        names = tuple(column.name for column in self._output.stored.columns)
        if self._query.order_by:
            return names
        scanned = self._scanned()
        return tuple(name for name in names if name not in scanned)

    def _rows(self, measures: Measures) -> Iterator[pa.RecordBatch]:
        query, stored = self._query, self._output.stored
        if query.limit == 0:
            return iter(())
        if not query.order_by:
            rows = self._scan(stored, query.limit, query.offset, self._batch_rows)
            return _measured(rows, measures, SCAN)
        rows = read_in_order(
            self._files,
            self._snapshot,
            stored,
            self._ordered_addresses(measures),
            batch_rows=self._batch_rows,
        )
        return _measured(rows, measures, TAKE)

    def _ordered_addresses(self, measures: Measures) -> NDArray[np.uint64]:
        """Return where the rows of the answer lie, in order: only keys are read so far."""
        query, check = self._query, self._check("ordering rows")
        last = None if query.limit is None else query.offset + query.limit
        top = TopRows(query.order_by, last)
        keys = self._scan(with_address(self._keys), None, 0, _KEY_ROWS)
        for batch in _measured(keys, measures, SCAN):
            check()
            with measures.measure(ORDER):
                values = [batch.column(each.column) for each in query.order_by]
                top.offer(values, batch.column(OWN_ADDRESS).to_numpy())
        with measures.measure(ORDER) as facts:
            addresses = top.addresses()[query.offset :]
            facts.rows = len(addresses)
        return addresses

    def _scan(
        self, projection: Projection, limit: int | None, offset: int, batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        if self._test is None:
            return scan_rows(
                self._files,
                self._snapshot,
                projection,
                limit=limit,
                offset=offset,
                fragment_ids=self._query.fragment_ids,
                batch_rows=batch_rows,
            )
        return scan_passing(
            self._files,
            self._snapshot,
            projection,
            self._test,
            self._tally,
            limit=limit,
            offset=offset,
            fragment_ids=self._query.fragment_ids,
            batch_rows=batch_rows,
        )

    def _check(self, doing: str) -> Callable[[], None]:
        return lambda: self._deadline().check(doing)


def _key_columns(snapshot: Snapshot, query: ScanQuery) -> Projection:
    """Resolve the columns to order by, each once."""
    names = dict.fromkeys(each.column for each in query.order_by)
    projection = resolve_projection(snapshot.schema, list(names))
    for order in query.order_by:
        require_ordered(order, projection.schema.field(order.column).type)
    return projection


def _measured(
    batches: Iterator[pa.RecordBatch], measures: Measures, step: str
) -> Iterator[pa.RecordBatch]:
    while True:
        with measures.measure(step) as facts:
            batch = next(batches, None)
            facts.rows += 0 if batch is None else batch.num_rows
        if batch is None:
            return
        yield batch
