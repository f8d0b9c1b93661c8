"""Running hybrid queries: both parts for themselves, then their rows as one answer."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.errors import InvalidRequestError
from lance_core.io.metering import metered
from lance_core.query.answer_shape import DISTANCE_FIELD, SCORE_FIELD
from lance_core.query.fusion import RankedRows, fuse
from lance_core.query.hybrid_plan import HybridPlan
from lance_core.query.measure import Measures
from lance_core.query.plan import TextPlan, VectorPlan
from lance_core.query.prepared import PreparedQueries
from lance_core.query.query_result import QueryResult
from lance_core.query.ranked_shape import RankedShape
from lance_core.query.stats import QueryStats
from lance_core.query.steps import FUSE, OF_TEXT, OF_VECTOR, TAKE
from lance_core.query.vector_field import find_vector_field
from lance_core.scan.projection import PseudoColumn
from lance_core.scan.take import RowTaker
from lance_core.scan.vector_type import vector_type

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from lance_core.io.metering import QueryMeter
    from lance_core.query.deadline import Deadline
    from lance_core.query.fusion import FusedRows
    from lance_core.query.hybrid_request import HybridQuery
    from lance_core.query.plan import Plan
    from lance_core.query.query_result import AnswerRows
    from lance_core.query.request import VectorQuery
    from lance_core.query.session import Session
    from lance_core.query.stats import StopReason
    from lance_core.query.text_request import TextQuery
    from lance_core.table.snapshot import Snapshot

    Run = Callable[[VectorQuery | TextQuery], QueryResult]
    """Answers one of the queries."""

RELEVANCE_FIELD = pa.field("_relevance_score", pa.float32())


@dataclass(frozen=True, slots=True, eq=False)
class _Columns:
    """The columns of an answer, and what reads those of the table."""

    shape: RankedShape
    taker: RowTaker


@dataclass(frozen=True, slots=True, eq=False)
class _Branches:
    """Both answers, and the rows of both as one."""

    vector: QueryResult
    text: QueryResult
    nearest: RankedRows
    matching: RankedRows
    fused: FusedRows


class HybridEngine:
    """Answers hybrid queries on one snapshot; safe to share between threads.

    Parameters
    ----------
    session
        Cache and opened files.
    snapshot
        The version to read.
    """

    def __init__(self, session: Session, snapshot: Snapshot) -> None:
        self._session = session
        self._snapshot = snapshot
        self._columns: PreparedQueries[_Columns] = PreparedQueries()

    def plan(
        self, request: HybridQuery, vector: Plan, text: Plan, deadline: Deadline
    ) -> HybridPlan:
        """Return what is going to be done, from the plans of both queries."""
        return _plan(request, vector, text, self._columns_of(request, deadline))

    def run(
        self, request: HybridQuery, run: Run, deadline: Deadline, *, measured: bool
    ) -> QueryResult:
        """Answer a request.

        Parameters
        ----------
        request
            What to answer.
        run
            Answers each of both queries under the deadline. The one for texts comes first: what it
            reads depends on its words, so that it is in memory less often.
        deadline
            Looked at between pieces of work.
        measured
            Note what each step does.

        Raises
        ------
        InvalidRequestError
            The request does not fit the schema.
        """
        started = time.perf_counter()
        columns = self._columns_of(request, deadline)
        with metered() as meter:
            text, vector = run(request.matching), run(request.nearest)
            measures = Measures(meter if measured else None)
            measures.adopt(OF_VECTOR, vector.measures)
            measures.adopt(OF_TEXT, text.measures)
            with measures.measure(FUSE) as facts:
                found = _fuse(request, vector, text)
                facts.rows = len(found.fused.addresses)
            deadline.check("reading the rows found")
            with measures.measure(TAKE) as facts:
                rows = _take(found, columns, deadline)
                facts.rows = rows.num_rows
            stats = _stats(request, found, rows.num_rows, meter, started)
        return QueryResult(rows, stats, _plan(request, vector.plan, text.plan, columns), measures)

    def _columns_of(self, request: HybridQuery, deadline: Deadline) -> _Columns:
        """Return the columns of an answer, made for the first query that asks for them."""
        _require_one_query(request, self._snapshot)
        found = self._columns.get(request.shown)
        if found is None:
            _require_own_address(self._snapshot)
            shape = RankedShape.of(
                self._snapshot.schema,
                request.columns,
                (DISTANCE_FIELD, SCORE_FIELD, RELEVANCE_FIELD),
                deadline,
                with_row_id=request.with_row_id,
                params=request.vector.params,
            )
            found = _Columns(shape, RowTaker(self._session.files, self._snapshot, shape.stored))
            self._columns.keep(request.shown, found, request.texts, request.vector.params)
        return found


def _plan(request: HybridQuery, vector: Plan, text: Plan, columns: _Columns) -> HybridPlan:
    if not isinstance(vector, VectorPlan) or not isinstance(text, TextPlan):
        raise TypeError("a hybrid query is made of a vector query and a text query")
    return HybridPlan(
        vector,
        text,
        request.fusion,
        offset=request.offset,
        k=request.k,
        columns=columns.shape.names,
    )


def _fuse(request: HybridQuery, vector: QueryResult, text: QueryResult) -> _Branches:
    nearest = _ranked(vector, DISTANCE_FIELD.name)
    matching = _ranked(text, SCORE_FIELD.name)
    last = None if request.k is None else request.offset + request.k
    fused = fuse(nearest, matching, request.fusion).slice(request.offset, last)
    return _Branches(vector, text, nearest, matching, fused)


def _take(found: _Branches, columns: _Columns, deadline: Deadline) -> AnswerRows:
    """Read the columns of the rows, and put beside them what is known of these."""
    fused = found.fused
    told = [
        _values_at(found.nearest.values, fused.vector_places),
        _values_at(found.matching.values, fused.text_places),
        pa.array(fused.relevance),
    ]
    return columns.shape.answer(columns.taker.take(fused.addresses), told, deadline)


def _stats(
    request: HybridQuery, found: _Branches, num_rows: int, meter: QueryMeter, started: float
) -> QueryStats:
    """Return the facts of both queries together, and of reading their rows."""
    vector, text = found.vector.stats, found.text.stats
    return QueryStats(
        version=vector.version,
        plan="hybrid",
        exact=vector.exact and text.exact,
        partitions_probed=vector.partitions_probed + text.partitions_probed,
        partitions_total=vector.partitions_total + text.partitions_total,
        rows_scanned_flat=vector.rows_scanned_flat + text.rows_scanned_flat,
        rows_refined=vector.rows_refined + text.rows_refined,
        rows_left_out=vector.rows_left_out + text.rows_left_out,
        bytes_read=vector.bytes_read + text.bytes_read + meter.bytes_read,
        store_requests=vector.store_requests + text.store_requests + meter.store_requests,
        cache_hits=vector.cache_hits + text.cache_hits + meter.cache_hits,
        cache_misses=vector.cache_misses + text.cache_misses + meter.cache_misses,
        stop_reason=_stop_reason(request, vector, num_rows),
        elapsed_ms=round((time.perf_counter() - started) * 1000, 3),
    )


def _stop_reason(request: HybridQuery, vector: QueryStats, num_rows: int) -> StopReason:
    if request.k is not None and num_rows >= request.k:
        return "complete"
    return "probe_limit" if vector.stop_reason == "probe_limit" else "no_more_rows"


def _require_one_query(request: HybridQuery, snapshot: Snapshot) -> None:
    """Refuse several query vectors, unless rows hold lists, where they are one query."""
    vector = request.vector
    if vector.num_queries == 1:
        return
    kind = vector_type(find_vector_field(snapshot.schema, vector.column, vector.dimension))
    if kind is None or not kind.is_multi:
        raise InvalidRequestError(
            f"{vector.num_queries} query vectors are given; a hybrid query has one"
        )


def _require_own_address(snapshot: Snapshot) -> None:
    name = PseudoColumn.ROW_ADDRESS.value
    if name in snapshot.schema.names:
        raise InvalidRequestError(
            f'the table has a column "{name}" of its own, which hides where rows lie from a hybrid'
            " query: rename it"
        )


def _ranked(result: QueryResult, name: str) -> RankedRows:
    """Return the rows of an answer; of several elements of one row's list the best counts."""
    table = result.table
    addresses: NDArray[np.uint64] = table[PseudoColumn.ROW_ADDRESS.value].to_numpy()
    values: NDArray[np.float32] = table[name].to_numpy()
    firsts = np.sort(np.unique(addresses, return_index=True)[1])
    return RankedRows(addresses[firsts], values[firsts])


def _values_at(values: NDArray[np.float32], places: NDArray[np.int64]) -> pa.Array:
    """Return the value at each place, null where it is -1."""
    return pa.array(np.append(values, np.float32(0))[places], mask=places < 0)
