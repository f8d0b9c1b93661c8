"""Answering queries by vector at one version: plan, search, take, and say what was done."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from lance_core.errors import InvalidRequestError
from lance_core.io.metering import QueryMeter, metered
from lance_core.query.fitted_vectors import fit_vectors
from lance_core.query.measure import Measures
from lance_core.query.query_result import AnswerRows, QueryResult, joined, vector_answer
from lance_core.query.request import require_nonzero
from lance_core.query.split_search import SplitSearch
from lance_core.query.steps import POSTFILTER, TAKE
from lance_core.query.vector_prepare import VectorPreparer, is_batched
from lance_core.query.vector_search import VectorSearch
from lance_core.query.why_not import WhyNotFinder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.index.candidates import Candidates
    from lance_core.query.deadline import Deadline
    from lance_core.query.plan import VectorPlan
    from lance_core.query.request import VectorQuery
    from lance_core.query.session import Session
    from lance_core.query.stats import SearchTally, StopReason
    from lance_core.query.vector_prepare import PreparedVectors
    from lance_core.query.why_not import WhyNot
    from lance_core.table.snapshot import Snapshot


class VectorEngine:
    """Answers queries by vector on one snapshot; safe to share between threads.

    Parameters
    ----------
    session
        Cache and opened files.
    snapshot
        The version to read.
    preparer
        Of the same version.
    """

    def __init__(self, session: Session, snapshot: Snapshot, preparer: VectorPreparer) -> None:
        self._session = session
        self._snapshot = snapshot
        self._preparer = preparer

    def plan(self, request: VectorQuery, deadline: Deadline) -> VectorPlan:
        """Return what `run` would do; a prefilter is evaluated for that."""
        return self._preparer.prepare(request, deadline, resident_only=False).plan

    def run(
        self,
        request: VectorQuery,
        deadline: Deadline,
        meter: QueryMeter,
        measures: Measures,
        *,
        resident_only: bool,
    ) -> QueryResult:
        """Answer a request; see `QueryEngine.run`."""
        started = time.perf_counter()
        prepared = self._preparer.prepare(request, deadline, resident_only=resident_only)
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
        found = _without_skipped(found, prepared, measures, deadline)
        deadline.check("reading the rows found")
        with measures.measure(TAKE) as facts:
            batched = is_batched(request, prepared.column)
            rows = _take(found, prepared, deadline, batched=batched)
            facts.rows = num_rows = rows.num_rows
        stats = search.tally.stats(
            meter,
            started,
            self._snapshot.version,
            plan="ann" if plan.searches else "exact",
            exact=plan.is_exact,
            stop_reason=_stop_reason(request, len(vectors), num_rows, search.tally),
        )
        return QueryResult(rows, stats, plan, measures)

    def split(self, request: VectorQuery, deadline: Deadline) -> SplitSearch:
        """Return the parts of a search; see `QueryEngine.split`."""
        prepared = self._preparer.prepare(request, deadline, resident_only=False)
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

    def why_not(self, request: VectorQuery, row_id: int, deadline: Deadline) -> WhyNot:
        """Tell what keeps a row out of an answer; see `DatasetExplained.why_not`."""
        with metered() as meter:
            prepared = self._preparer.prepare(request, deadline, resident_only=False)
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


def _without_skipped(
    found: list[Candidates],
    prepared: PreparedVectors,
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


def _requested_k(request: VectorQuery, plan: VectorPlan) -> int:
    """Return how many rows are wanted, before the plan cut them to those that there are."""
    return plan.k if request.k is None else request.k + request.offset


def _query_vectors(
    request: VectorQuery, prepared: PreparedVectors
) -> Sequence[NDArray[np.float32]]:
    """Return what to search by for each query: a vector, or several where rows hold lists."""
    column = prepared.column
    if request.vectors is not None:
        vectors = fit_vectors(column.vectors, request.vectors)
        return [vectors] if column.vectors.type.is_multi else list(vectors)
    queries = column.vectors_of(() if request.row_ids is None else request.row_ids)
    if prepared.plan.metric == "cosine":
        require_nonzero(np.concatenate([np.atleast_2d(query) for query in queries]))
    return queries


def _take(
    found: list[Candidates], prepared: PreparedVectors, deadline: Deadline, *, batched: bool
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
