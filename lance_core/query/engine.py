"""Answering requests at one version: resolve, plan, run, take, and say what was done."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.errors import InvalidRequestError
from lance_core.io.file_maps import seldom_checked
from lance_core.io.metering import QueryMeter, metered
from lance_core.query.answer_shape import shape_of_answer
from lance_core.query.column_search import ColumnSearch
from lance_core.query.deadline import NO_DEADLINE, Deadline
from lance_core.query.fitted_vectors import fit_vectors, metric_for
from lance_core.query.hybrid_request import HybridQuery
from lance_core.query.hybrid_search import HybridEngine
from lance_core.query.indexed_filter import IndexUse
from lance_core.query.measure import Measures
from lance_core.query.plain_scan import PlainScan
from lance_core.query.planner import PassingCounts, plan_vector, segments_of_index
from lance_core.query.postfilter import Postfilter
from lance_core.query.prepared import PreparedQueries, is_long
from lance_core.query.prewarm import IndexWarmer, require_index
from lance_core.query.query_result import (
    AnswerRows,
    QueryResult,
    joined,
    vector_answer,
)
from lance_core.query.request import ScanQuery, VectorQuery, require_nonzero
from lance_core.query.residency import NotResidentError
from lance_core.query.row_filter import RowFilter
from lance_core.query.split_search import SplitSearch
from lance_core.query.stats import PlanKind, QueryStats, StopReason
from lance_core.query.steps import POSTFILTER, TAKE
from lance_core.query.text_engine import TextEngine
from lance_core.query.text_request import TextQuery
from lance_core.query.vector_field import find_vector_field
from lance_core.query.vector_search import SearchTally, VectorSearch
from lance_core.query.why_not import WhyNotFinder
from lance_core.query.why_not_text import TextWhyNotFinder
from lance_core.scan.rows import count_rows
from lance_core.scan.take import RowTaker

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from lance_core.ids import FieldId
    from lance_core.index.candidates import Candidates
    from lance_core.query.answer_shape import AnswerShape
    from lance_core.query.plan import Plan, VectorPlan
    from lance_core.query.prewarm import Prewarmed
    from lance_core.query.session import Session
    from lance_core.query.why_not import WhyNot
    from lance_core.schema.field import LanceField
    from lance_core.table.snapshot import Snapshot

    Params = Mapping[str, object] | None
    """Values of the names in a filter."""

_RUN_BATCH_ROWS = 1 << 16
"""Batches of an answer that is needed as a whole."""

Request = VectorQuery | ScanQuery | TextQuery | HybridQuery


@dataclass(frozen=True, slots=True, eq=False)
class _ReadQuery:
    """What the texts of a vector query say of the columns, before any row is looked at."""

    column: ColumnSearch
    shape: AnswerShape
    prefilter: RowFilter | None
    postfilter: Postfilter | None


@dataclass(frozen=True, slots=True, eq=False)
class _PreparedQuery:
    """Everything about a vector query that its vectors do not decide."""

    column: ColumnSearch
    shape: AnswerShape
    taker: RowTaker
    plan: VectorPlan
    prefilter: RowFilter | None
    postfilter: Postfilter | None


class QueryEngine:
    """Answers requests on one snapshot; safe to share between threads.

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
        self._columns: dict[FieldId, ColumnSearch] = {}
        self._asked: dict[tuple[str | None, int | None], ColumnSearch] = {}
        self._read: PreparedQueries[_ReadQuery] = PreparedQueries()
        self._prepared: PreparedQueries[_PreparedQuery] = PreparedQueries()
        self._texts = TextEngine(session, snapshot)
        self._hybrids = HybridEngine(session, snapshot)
        self._num_rows: int | None = None
        self._is_mapped = _is_local(snapshot)
        self._lock = Lock()

    def count_rows(self) -> int:
        """Return the number of live rows."""
        if self._num_rows is None:
            self._num_rows = count_rows(self._session.files, self._snapshot)
        return self._num_rows

    def run(
        self,
        request: Request,
        deadline: Deadline = NO_DEADLINE,
        *,
        resident_only: bool = False,
        measured: bool = False,
    ) -> QueryResult:
        """Answer a request.

        Parameters
        ----------
        request
            What to answer.
        deadline
            Looked at between pieces of work.
        resident_only
            Raise ``NotResidentError`` when something has to be read that a later query would find
            in memory, before much work is done. Rows to return are read from local files all the
            same.
        measured
            Note what each step does, which costs a warm query a part of its time.

        Raises
        ------
        InvalidRequestError
            The request does not fit the schema.
        NotResidentError
            Only with ``resident_only``.
        """
        started = time.perf_counter()
        with metered() as meter:
            if isinstance(request, ScanQuery):
                return self._run_scan(
                    request, deadline, meter, started, resident_only=resident_only
                )
            if isinstance(request, HybridQuery):
                run = partial(
                    self.run, deadline=deadline, resident_only=resident_only, measured=measured
                )
                return self._hybrids.run(request, run, deadline, measured=measured)
            measures = Measures(meter if measured else None)
            with seldom_checked():
                if isinstance(request, TextQuery):
                    self._require_mapped(resident_only=resident_only)
                    return self._texts.run(
                        request, deadline, meter, measures, resident_only=resident_only
                    )
                return self._run_vector(
                    request, deadline, meter, started, measures, resident_only=resident_only
                )

    def plan(self, request: Request, deadline: Deadline) -> Plan:
        """Return what `run` would do; reads segment headers that are not in memory.

        A prefilter is evaluated: what is done depends on the number of rows that pass.
        """
        if isinstance(request, ScanQuery):
            return self.scan(request, lambda: deadline).plan()
        if isinstance(request, TextQuery):
            return self._texts.plan(request, deadline)
        if isinstance(request, HybridQuery):
            vector = self.plan(request.nearest, deadline)
            text = self.plan(request.matching, deadline)
            return self._hybrids.plan(request, vector, text, deadline)
        return self._prepared_query(request, deadline, resident_only=False).plan

    def split(self, request: VectorQuery, deadline: Deadline) -> SplitSearch:
        """Return the parts of a search, to be run in any number of processes.

        Raises
        ------
        InvalidRequestError
            The request does not fit the schema, or cannot be answered in parts.
        """
        prepared = self._prepared_query(request, deadline, resident_only=False)
        return SplitSearch(
            prepared.column,
            prepared.plan,
            prepared.prefilter,
            requested_k=_requested_k(request, prepared.plan),
            deadline=deadline,
            measures=Measures(None),
            queries=_query_vectors(request, prepared),
            shape=prepared.shape,
            taker=prepared.taker,
        )

    def why_not(self, request: VectorQuery | TextQuery, row_id: int, deadline: Deadline) -> WhyNot:
        """Tell what keeps a row out of an answer; see `DatasetReads.why_not`."""
        if isinstance(request, TextQuery):
            run = partial(self.run, deadline=deadline)
            return TextWhyNotFinder(self._snapshot, run, request).find(row_id)
        with metered() as meter:
            prepared = self._prepared_query(request, deadline, resident_only=False)
            queries = _query_vectors(request, prepared)
            if len(queries) != 1:
                raise InvalidRequestError(
                    f"{len(queries)} query vectors are given; ask about one answer at a time"
                )
            finder = WhyNotFinder(
                self._session,
                self._snapshot,
                prepared.column,
                prepared.plan,
                prepared.prefilter,
                prepared.postfilter,
                queries[0],
                None if request.row_ids is None else request.row_ids[0],
                requested_k=_requested_k(request, prepared.plan),
                meter=meter,
                deadline=deadline,
            )
            return finder.find(row_id)

    def prewarm(
        self,
        index: str,
        partitions: Sequence[int] | None,
        progress: Callable[[Prewarmed], object],
        deadline: Deadline,
    ) -> Prewarmed:
        """Load an index into memory; see `DatasetReads.prewarm`."""
        (field_id,) = {each.field_ids[0] for each in require_index(self._snapshot, index)}
        column = self._open_column(self._snapshot.schema.by_id(field_id))
        usable, skipped = segments_of_index(column.descriptions, index)
        warmer = IndexWarmer(self._session.cache, deadline, progress)
        return warmer.run(index, usable, skipped, column.bound, partitions)

    def scan(
        self,
        request: ScanQuery,
        deadline: Callable[[], Deadline] = lambda: NO_DEADLINE,
        *,
        batch_rows: int = 8192,
    ) -> PlainScan:
        """Return a plain query, resolved, whose rows are read as its batches are asked for."""
        return PlainScan(self._session, self._snapshot, request, deadline, batch_rows=batch_rows)

    def count(
        self, filter_text: str, params: Params, deadline: Deadline, *, use_index: bool
    ) -> int:
        """Return the number of live rows that pass a filter."""
        row_filter = RowFilter(
            self._session,
            self._snapshot,
            filter_text,
            deadline,
            params=params,
            index_use=IndexUse.ALWAYS if use_index else IndexUse.NEVER,
        )
        return row_filter.count(list(self._snapshot.fragments_by_id), deadline)

    def _run_scan(
        self,
        request: ScanQuery,
        deadline: Deadline,
        meter: QueryMeter,
        started: float,
        *,
        resident_only: bool,
    ) -> QueryResult:
        if resident_only:
            raise NotResidentError("a plain query reads what it returns")
        measures = Measures(meter)
        scan = self.scan(request, lambda: deadline, batch_rows=_RUN_BATCH_ROWS)
        table = pa.Table.from_batches(scan.batches(measures), scan.schema)
        is_short = request.limit is None or table.num_rows < request.limit
        stats = self._stats(
            meter,
            started,
            SearchTally(),
            plan="scan",
            exact=True,
            stop_reason="no_more_rows" if is_short else "complete",
        )
        return QueryResult(table, stats, scan.plan(), measures)

    def _require_mapped(self, *, resident_only: bool) -> None:
        if resident_only and not self._is_mapped:
            raise NotResidentError("a store that is not mapped may make the query wait")

    def _run_vector(
        self,
        request: VectorQuery,
        deadline: Deadline,
        meter: QueryMeter,
        started: float,
        measures: Measures,
        *,
        resident_only: bool,
    ) -> QueryResult:
        self._require_mapped(resident_only=resident_only)
        prepared = self._prepared_query(request, deadline, resident_only=resident_only)
        plan = prepared.plan
        vectors = _query_vectors(request, prepared)
        search = VectorSearch(
            prepared.column,
            plan,
            prepared.prefilter,
            requested_k=_requested_k(request, plan),
            deadline=deadline,
            measures=measures,
            resident_only=resident_only,
        )
        found = search.run(vectors, request.row_ids)
        found = self._without_skipped(found, prepared, measures, deadline)
        deadline.check("reading the rows found")
        with measures.measure(TAKE) as facts:
            batched = _is_batched(request, prepared.column)
            rows = _take(found, prepared, deadline, batched=batched)
            facts.rows = num_rows = rows.num_rows
        stats = self._stats(
            meter,
            started,
            search.tally,
            plan="ann" if plan.searches else "exact",
            exact=plan.is_exact,
            stop_reason=_stop_reason(request, len(vectors), num_rows, search.tally),
        )
        return QueryResult(rows, stats, plan, measures)

    def _stats(
        self,
        meter: QueryMeter,
        started: float,
        tally: SearchTally,
        *,
        plan: PlanKind,
        exact: bool,
        stop_reason: StopReason,
    ) -> QueryStats:
        return QueryStats(
            version=self._snapshot.version,
            plan=plan,
            exact=exact,
            partitions_probed=tally.partitions_probed,
            partitions_total=tally.partitions_total,
            rows_scanned_flat=tally.rows_scanned_flat,
            rows_refined=tally.rows_refined,
            rows_left_out=tally.rows_left_out,
            bytes_read=meter.bytes_read,
            store_requests=meter.store_requests,
            cache_hits=meter.cache_hits,
            cache_misses=meter.cache_misses,
            stop_reason=stop_reason,
            elapsed_ms=round((time.perf_counter() - started) * 1000, 3),
        )

    def _without_skipped(
        self,
        found: list[Candidates],
        prepared: _PreparedQuery,
        measures: Measures,
        deadline: Deadline,
    ) -> list[Candidates]:
        """Leave out rows that do not pass the postfilter, then those before the offset."""
        plan = prepared.plan
        if prepared.postfilter is not None:
            with measures.measure(POSTFILTER) as facts:
                addresses = [prepared.column.addresses(each.row_ids) for each in found]
                found = prepared.postfilter.keep(found, addresses, deadline)
                facts.rows = sum(len(each) for each in found)
        if plan.offset == 0:
            return found
        return [each.slice(plan.offset, plan.offset + plan.k) for each in found]

    def _prepared_query(
        self, request: VectorQuery, deadline: Deadline, *, resident_only: bool
    ) -> _PreparedQuery:
        """Return what queries with the same parameters share, made for the first of them."""
        key = request.parameters
        found = self._prepared.get(key)
        if found is None:
            found = self._prepare(request, deadline, resident_only=resident_only)
            self._prepared.keep(key, found, request.texts, request.params)
        if found.plan.metric == "cosine" and request.vectors is not None:
            require_nonzero(request.vectors)
        return found

    def _prepare(
        self, request: VectorQuery, deadline: Deadline, *, resident_only: bool
    ) -> _PreparedQuery:
        read = self._read_query(request, deadline, resident_only=resident_only)
        passing = None
        if read.prefilter is not None:
            passing = self._passing_counts(read.prefilter, deadline, resident_only=resident_only)
        return _PreparedQuery(
            read.column,
            read.shape,
            RowTaker(self._session.files, self._snapshot, read.shape.stored),
            self._plan_vector(request, read.column, read.shape, passing),
            read.prefilter,
            read.postfilter,
        )

    def _read_query(
        self, request: VectorQuery, deadline: Deadline, *, resident_only: bool
    ) -> _ReadQuery:
        """Read the texts of a query: once, though it is run again where it may wait."""
        if resident_only and is_long(request.filter):
            raise NotResidentError("a long filter takes long to read")
        key = request.parameters
        found = self._read.get(key)
        if found is None:
            column = self._column_search(request, resident_only=resident_only)
            found = self._read_texts(request, column, deadline)
            self._read.keep(key, found, request.texts, request.params)
        return found

    def _read_texts(
        self, request: VectorQuery, column: ColumnSearch, deadline: Deadline
    ) -> _ReadQuery:
        session, snapshot = self._session, self._snapshot
        shape = shape_of_answer(
            snapshot.schema,
            request,
            batched=_is_batched(request, column),
            check=partial(deadline.check, "reading expressions"),
        )
        prefilter, postfilter = None, None
        if request.filter is not None and request.prefilter:
            prefilter = RowFilter(
                session,
                snapshot,
                request.filter,
                deadline,
                params=request.params,
                covered_only=request.fast_search,
                index_use=IndexUse.ALWAYS if request.use_index else IndexUse.IF_SOUND,
            )
        elif request.filter is not None:
            postfilter = Postfilter(
                session, snapshot, request.filter, deadline, params=request.params
            )
        return _ReadQuery(column, shape, prefilter, postfilter)

    def _passing_counts(
        self, prefilter: RowFilter, deadline: Deadline, *, resident_only: bool
    ) -> PassingCounts:
        fragment_ids = list(self._snapshot.fragments_by_id)
        if resident_only:
            prefilter.require_resident(fragment_ids)
        passing = prefilter.passing(fragment_ids, deadline)
        num_rows = {each: passing[each].num_rows for each in passing}
        steps = prefilter.steps(deadline, resident_only=resident_only)
        return PassingCounts(prefilter.text, num_rows, steps)

    def _plan_vector(
        self,
        request: VectorQuery,
        column: ColumnSearch,
        shape: AnswerShape,
        passing: PassingCounts | None,
    ) -> VectorPlan:
        metric = metric_for(column.vectors, request.metric)
        return plan_vector(
            request,
            column.choice(metric, use_index=request.use_index),
            column=column.vectors.field.name,
            columns=shape.columns,
            num_rows=self.count_rows(),
            passing=passing,
            few_rows=self._session.few_rows,
            is_multi=column.vectors.type.is_multi,
        )

    def _column_search(self, request: VectorQuery, *, resident_only: bool) -> ColumnSearch:
        key = (request.column, request.dimension)
        found = self._asked.get(key)
        if found is None:
            if resident_only:
                raise NotResidentError("index headers have to be read")
            field = find_vector_field(self._snapshot.schema, request.column, request.dimension)
            found = self._open_column(field, skips_damage=not request.use_index)
            if not found.is_damaged:
                self._asked[key] = found
        return found

    def _open_column(self, field: LanceField, *, skips_damage: bool = False) -> ColumnSearch:
        """Return what searches a column; what was damaged is looked at anew each time."""
        found = self._columns.get(field.id)
        if found is None:
            fresh = ColumnSearch(self._session, self._snapshot, field, skips_damage=skips_damage)
            if fresh.is_damaged:
                return fresh
            with self._lock:
                found = self._columns.setdefault(field.id, fresh)
        return found


def _is_local(snapshot: Snapshot) -> bool:
    """Tell whether all files of a version are mapped, so that reading them never waits."""
    bases = snapshot.manifest.base_paths.values()
    return snapshot.scheduler.store.map(snapshot.manifest.path) is not None and all(
        "://" not in base.path or base.path.startswith("file://") for base in bases
    )


def _requested_k(request: VectorQuery, plan: VectorPlan) -> int:
    """Return how many rows are wanted, before the plan cut them to those that there are."""
    return plan.k if request.k is None else request.k + request.offset


def _query_vectors(request: VectorQuery, prepared: _PreparedQuery) -> Sequence[NDArray[np.float32]]:
    """Return what to search by for each query: a vector, or several where rows hold lists."""
    column = prepared.column
    if request.vectors is not None:
        vectors = fit_vectors(column.vectors, request.vectors)
        return [vectors] if column.vectors.type.is_multi else list(vectors)
    queries = column.vectors_of(() if request.row_ids is None else request.row_ids)
    if prepared.plan.metric == "cosine":
        require_nonzero(np.concatenate([np.atleast_2d(query) for query in queries]))
    return queries


def _is_batched(request: VectorQuery, column: ColumnSearch) -> bool:
    """Tell whether the answer says which query a row answers.

    Where rows hold lists, several vectors are one query, as to pylance 14.0.2.
    """
    is_one_query = column.vectors.type.is_multi and request.vectors is not None
    return request.batched and not is_one_query


def _take(
    found: list[Candidates], prepared: _PreparedQuery, deadline: Deadline, *, batched: bool
) -> AnswerRows:
    row_ids = joined([each.row_ids for each in found])
    stored = prepared.taker.take_values(prepared.column.addresses(row_ids))
    check = partial(deadline.check, "computing columns")
    return vector_answer(stored, found, prepared.shape, batched=batched, check=check)


def _stop_reason(
    request: VectorQuery, num_queries: int, num_rows: int, tally: SearchTally
) -> StopReason:
    if request.k is not None and num_rows >= request.k * num_queries:
        return "complete"
    is_limited = tally.partitions_probed < tally.partitions_total
    return "probe_limit" if is_limited else "no_more_rows"
