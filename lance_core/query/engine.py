"""Answering requests at one version: resolve, plan, run, take, and say what was done."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_core.io.file_maps import seldom_checked
from lance_core.io.metering import QueryMeter, metered
from lance_core.query.deadline import NO_DEADLINE, Deadline
from lance_core.query.hybrid_request import HybridQuery
from lance_core.query.hybrid_search import HybridEngine
from lance_core.query.indexed_filter import IndexUse
from lance_core.query.measure import Measures
from lance_core.query.plain_scan import PlainScan
from lance_core.query.planner import segments_of_index
from lance_core.query.prewarm import IndexWarmer, require_index
from lance_core.query.query_result import QueryResult
from lance_core.query.request import ScanQuery, VectorQuery
from lance_core.query.residency import NotResidentError
from lance_core.query.row_filter import RowFilter
from lance_core.query.stats import SearchTally
from lance_core.query.text_engine import TextEngine
from lance_core.query.text_request import TextQuery
from lance_core.query.vector_engine import VectorEngine
from lance_core.query.vector_prepare import VectorPreparer
from lance_core.query.why_not_text import TextWhyNotFinder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lance_core.query.plan import Plan
    from lance_core.query.prewarm import Prewarmed
    from lance_core.query.session import Session
    from lance_core.query.split_search import SplitSearch
    from lance_core.query.why_not import WhyNot
    from lance_core.table.snapshot import Snapshot

    Params = Mapping[str, object] | None
    """Values of the names in a filter."""

_RUN_BATCH_ROWS = 1 << 16
"""Batches of an answer that is needed as a whole."""

Request = VectorQuery | ScanQuery | TextQuery | HybridQuery


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
        self._preparer = VectorPreparer(session, snapshot)
        self._vectors = VectorEngine(session, snapshot, self._preparer)
        self._texts = TextEngine(session, snapshot)
        self._hybrids = HybridEngine(session, snapshot)
        self._is_mapped = _is_local(snapshot)

    def count_rows(self) -> int:
        """Return the number of live rows."""
        return self._preparer.count_rows()

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
        with metered() as meter:
            if isinstance(request, ScanQuery):
                return self._run_scan(request, deadline, meter, resident_only=resident_only)
            if isinstance(request, HybridQuery):
                run = partial(
                    self.run, deadline=deadline, resident_only=resident_only, measured=measured
                )
                return self._hybrids.run(request, run, deadline, measured=measured)
            measures = Measures(meter if measured else None)
            self._require_mapped(resident_only=resident_only)
            with seldom_checked():
                if isinstance(request, TextQuery):
                    return self._texts.run(
                        request, deadline, meter, measures, resident_only=resident_only
                    )
                return self._vectors.run(
                    request, deadline, meter, measures, resident_only=resident_only
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
        return self._vectors.plan(request, deadline)

    def split(self, request: VectorQuery, deadline: Deadline) -> SplitSearch:
        """Return the parts of a search, to be run in any number of processes.

        Raises
        ------
        InvalidRequestError
            The request does not fit the schema, or cannot be answered in parts.
        """
        return self._vectors.split(request, deadline)

    def why_not(self, request: VectorQuery | TextQuery, row_id: int, deadline: Deadline) -> WhyNot:
        """Tell what keeps a row out of an answer; see `DatasetExplained.why_not`."""
        if isinstance(request, TextQuery):
            run = partial(self.run, deadline=deadline)
            return TextWhyNotFinder(self._snapshot, run, request).find(row_id)
        return self._vectors.why_not(request, row_id, deadline)

    def prewarm(
        self,
        index: str,
        partitions: Sequence[int] | None,
        progress: Callable[[Prewarmed], object],
        deadline: Deadline,
    ) -> Prewarmed:
        """Load an index into memory; see `DatasetReads.prewarm`."""
        (field_id,) = {each.field_ids[0] for each in require_index(self._snapshot, index)}
        column = self._preparer.open_column(self._snapshot.schema.by_id(field_id))
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
        *,
        resident_only: bool,
    ) -> QueryResult:
        started = time.perf_counter()
        if resident_only:
            raise NotResidentError("a plain query reads what it returns")
        measures = Measures(meter)
        scan = self.scan(request, lambda: deadline, batch_rows=_RUN_BATCH_ROWS)
        table = pa.Table.from_batches(scan.batches(measures), scan.schema)
        is_short = request.limit is None or table.num_rows < request.limit
        stats = SearchTally().stats(
            meter,
            started,
            self._snapshot.version,
            plan="scan",
            exact=True,
            stop_reason="no_more_rows" if is_short else "complete",
        )
        return QueryResult(table, stats, scan.plan(), measures)

    def _require_mapped(self, *, resident_only: bool) -> None:
        if resident_only and not self._is_mapped:
            raise NotResidentError("a store that is not mapped may make the query wait")


def _is_local(snapshot: Snapshot) -> bool:
    """Tell whether all files of a version are mapped, so that reading them never waits."""
    bases = snapshot.manifest.base_paths.values()
    return snapshot.scheduler.store.map(snapshot.manifest.path) is not None and all(
        "://" not in base.path or base.path.startswith("file://") for base in bases
    )
