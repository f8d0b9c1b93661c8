"""Answering text queries at one version: plan, search, take, and say what was done."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.query.query_result import QueryResult
from lance_core.query.stats import SearchTally
from lance_core.query.steps import POSTFILTER, TAKE
from lance_core.query.text_leaf import LeafSearch
from lance_core.query.text_prepare import TextPreparer
from lance_core.query.text_rows import addresses_of_ids
from lance_core.query.text_search import TextSearch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lance_core.index.text.text_hits import TextHits
    from lance_core.io.metering import QueryMeter
    from lance_core.query.deadline import Deadline
    from lance_core.query.measure import Measures
    from lance_core.query.plan import TextPlan
    from lance_core.query.query_result import AnswerRows
    from lance_core.query.session import Session
    from lance_core.query.text_elements import ListElements
    from lance_core.query.text_prepare import PreparedText
    from lance_core.query.text_request import TextQuery
    from lance_core.table.snapshot import Snapshot


class TextEngine:
    """Answers text queries on one snapshot; safe to share between threads.

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
        self._preparer = TextPreparer(session, snapshot)

    def plan(self, request: TextQuery, deadline: Deadline) -> TextPlan:
        """Return what `run` would do; a prefilter is evaluated for that."""
        return self._preparer.prepare(request, deadline, resident_only=False).plan

    def run(
        self,
        request: TextQuery,
        deadline: Deadline,
        meter: QueryMeter,
        measures: Measures,
        *,
        resident_only: bool,
    ) -> QueryResult:
        """Answer a request; see `QueryEngine.run`."""
        started = time.perf_counter()
        prepared = self._preparer.prepare(request, deadline, measures, resident_only=resident_only)
        tally = SearchTally()
        leaves = LeafSearch(
            self._session,
            self._snapshot,
            prepared,
            deadline=deadline,
            tally=tally,
            resident_only=resident_only,
        )
        plan = prepared.plan
        hits = TextSearch(plan, leaves.find, deadline=deadline, measures=measures).run()
        if plan.by_element:
            found = _FoundRows.of_elements(hits, leaves.elements)
        else:
            found = _FoundRows(hits.row_ids, hits.scores)
        rows = self._rows(found, prepared, deadline, measures)
        is_short = request.k is None or rows.num_rows < request.k
        stats = tally.stats(
            meter,
            started,
            self._snapshot.version,
            plan="text",
            exact=True,
            stop_reason="no_more_rows" if is_short else "complete",
        )
        return QueryResult(rows, stats, plan, measures)

    def _rows(
        self, found: _FoundRows, prepared: PreparedText, deadline: Deadline, measures: Measures
    ) -> AnswerRows:
        """Return the columns of the rows found, without those that are left out and skipped."""
        parts, files = prepared.parts, self._session.files
        addresses = addresses_of_ids(files, self._snapshot, found.row_ids)
        kept = np.arange(len(addresses))
        if parts.postfilter is not None:
            with measures.measure(POSTFILTER) as facts:
                scores = [pa.array(found.scores)]
                (kept,) = np.nonzero(parts.postfilter.passes(addresses, scores, deadline))
                facts.rows = len(kept)
        kept = kept[prepared.plan.offset :]
        deadline.check("reading the rows found")
        with measures.measure(TAKE) as facts:
            stored = parts.taker.take(addresses[kept])
            rows = parts.shape.answer(stored, found.told(kept), deadline)
            facts.rows = rows.num_rows
        return rows


@dataclass(frozen=True, slots=True, eq=False)
class _FoundRows:
    """Rows that were found, best first; ``elements`` are which of their lists, if it is by these.

    All have shape ``(n,)``.
    """

    row_ids: NDArray[np.uint64]
    scores: NDArray[np.float32]
    elements: NDArray[np.uint32] | None = None

    @classmethod
    def of_elements(cls, hits: TextHits, elements: ListElements) -> _FoundRows:
        """Return the rows of hits that are elements of lists, ties by row id, then element."""
        row_ids, places = elements.of_numbers(hits.row_ids)
        order = np.lexsort((places, row_ids, -hits.scores))
        return cls(row_ids[order], hits.scores[order], places[order])

    def told(self, kept: NDArray[np.int64]) -> list[pa.Array]:
        """Return what an answer tells of some of them beside their columns."""
        scores = pa.array(self.scores[kept])
        if self.elements is None:
            return [scores]
        offsets = pa.array(np.arange(len(kept) + 1, dtype=np.int32))
        return [pa.ListArray.from_arrays(offsets, pa.array(self.elements[kept])), scores]
