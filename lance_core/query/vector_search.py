"""Running a vector plan: index searches, exact search of the rest, exact distances, one ranking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lance_core.query.merge import NO_CANDIDATES, merge, within
from lance_core.query.residency import NotResidentError
from lance_core.query.segments import SegmentSearch
from lance_core.query.steps import FLAT, MERGE, RESCORE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.index.candidates import Candidates
    from lance_core.query.column_search import ColumnSearch
    from lance_core.query.deadline import Deadline
    from lance_core.query.measure import Measures
    from lance_core.query.plan import IndexSearch, VectorPlan
    from lance_core.query.segments import BoundSearch


@dataclass(slots=True)
class SearchTally:
    """What a run has done so far, summed over query vectors and segments."""

    partitions_probed: int = 0
    partitions_total: int = 0
    rows_scanned_flat: int = 0
    rows_refined: int = 0


class VectorSearch:
    """One run of a plan; belongs to one thread.

    Parameters
    ----------
    column
        What the queries on the column share.
    plan
        What to do.
    requested_k
        Rows wanted before the plan cut them to the rows there are; automatic probing goes by it.
    deadline
        Looked at between pieces of work.
    measures
        Receives what each step did.
    resident_only
        Raise ``NotResidentError`` instead of reading partitions or vectors.
    """

    def __init__(
        self,
        column: ColumnSearch,
        plan: VectorPlan,
        *,
        requested_k: int,
        deadline: Deadline,
        measures: Measures,
        resident_only: bool = False,
    ) -> None:
        self.tally = SearchTally()
        self._column = column
        self._plan = plan
        self._wanted = plan.offset + plan.k
        self._requested_k = requested_k
        self._deadline = deadline
        self._measures = measures
        self._resident_only = resident_only

    def run(self, query: NDArray[np.float32]) -> Candidates:
        """Return the rows of the answer for one query vector, shape ``(d,)``, nearest first."""
        plan = self._plan
        if plan.k == 0:
            return NO_CANDIDATES
        found = [self._search_index(query), self._search_flat(query)]
        with self._measures.measure(MERGE) as facts:
            ranked = merge(found, self._wanted).slice(plan.offset, self._wanted)
            facts.rows += len(ranked)
        return ranked

    def _search_index(self, query: NDArray[np.float32]) -> Candidates:
        plan = self._plan
        if not plan.searches:
            return NO_CANDIDATES
        searches = self._segment_searches(query)
        lists = self._probe(searches)
        if plan.rescore is None:
            return merge(lists, self._wanted)
        candidates = merge(lists, plan.rescore.candidates)
        self.tally.rows_refined += len(candidates)
        with self._measures.measure(RESCORE) as facts:
            exact = self._column.rescore(
                candidates, query, plan.metric, resident_only=self._resident_only
            )
            # The range held approximate distances before; the exact ones may lie outside.
            kept = within(exact, plan.lower_bound, plan.upper_bound).first(plan.rescore.k)
            facts.rows += len(kept)
        return kept

    def _segment_searches(self, query: NDArray[np.float32]) -> list[SegmentSearch]:
        if self._plan.metric == "cosine":
            query = query / np.linalg.norm(query)
        return [
            SegmentSearch(
                self._bound(search), search, query, self._plan, resident_only=self._resident_only
            )
            for search in self._plan.searches
        ]

    def _bound(self, search: IndexSearch) -> BoundSearch:
        if self._resident_only and not self._column.is_bound(search.segment):
            raise NotResidentError("deletion files have to be read")
        return self._column.bound(search.segment)

    def _probe(self, searches: Sequence[SegmentSearch]) -> list[Candidates]:
        """Search the first partitions of every segment, then more while rows are missing.

        More partitions are probed only when their number was left open (vector index page, section
        7.3). Those that must be probed in any case are probed together: one that has fewer rows
        than are missing cannot end the search.
        """
        lists = [
            self._probe_one(search, search.num_initial(self._requested_k)) for search in searches
        ]
        found = sum(len(candidates) for candidates in lists)
        target = min(self._wanted, sum(search.num_live for search in searches))
        for search in searches:
            while found < target and search.num_left > 0:
                more = self._probe_one(search, search.num_needed(target - found))
                lists.append(more)
                found += len(more)
        self.tally.partitions_probed += sum(search.num_probed for search in searches)
        self.tally.partitions_total += sum(search.num_partitions for search in searches)
        return lists

    def _probe_one(self, search: SegmentSearch, num_partitions: int) -> Candidates:
        self._deadline.check("searching partitions")
        with self._measures.measure(search.uuid) as facts:
            found = search.probe(num_partitions)
            facts.rows += len(found)
        return found

    def _search_flat(self, query: NDArray[np.float32]) -> Candidates:
        flat = self._plan.flat
        if flat is None:
            return NO_CANDIDATES
        with self._measures.measure(FLAT) as facts:
            found, num_rows = self._column.search_flat(
                flat,
                query,
                self._plan.metric,
                bounds=(self._plan.lower_bound, self._plan.upper_bound),
                deadline=self._deadline,
                resident_only=self._resident_only,
            )
            facts.rows += len(found)
        self.tally.rows_scanned_flat += num_rows
        return found
