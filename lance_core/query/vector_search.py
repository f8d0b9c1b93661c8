"""Running a vector plan: index searches, exact search of the rest, exact distances, one ranking."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from lance_core.index.candidates import Candidates
from lance_core.io.metering import current_meter
from lance_core.query.fitted_vectors import unit_vector
from lance_core.query.merge import NO_CANDIDATES, merge, within, without
from lance_core.query.multivector import rank_by_hits
from lance_core.query.query_groups import hold_first_probes, query_groups
from lance_core.query.range_search import RangeSearch
from lance_core.query.residency import NotResidentError
from lance_core.query.segment_search import SegmentSearch
from lance_core.query.stats import SearchTally
from lance_core.query.steps import FLAT, LISTED, MERGE, PREFILTER, RANK, RESCORE
from lance_core.row_set import to_ordinals

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from lance_core.kernels.exact_rank import ExactRanking
    from lance_core.query.column_search import ColumnSearch
    from lance_core.query.deadline import Deadline
    from lance_core.query.measure import Measures
    from lance_core.query.plan import (
        FlatSearch,
        IndexSearch,
        ListedSearch,
        RankByHits,
        Rescore,
        VectorPlan,
    )
    from lance_core.query.query_groups import OneQuery
    from lance_core.query.row_filter import RowFilter
    from lance_core.query.row_masks import RowMask
    from lance_core.query.segments import BoundSearch

# Vectors that are scored between two looks at the deadline, and read at a time.
_RESCORED_FLOATS = 1 << 24
# About 20 ms of work on one core.
_LONG_RESCORE_FLOATS = 1 << 27


class VectorSearch:
    """One run of a plan; belongs to one thread.

    Parameters
    ----------
    column
        What the queries on the column share.
    plan
        What to do.
    row_filter
        The prefilter; None = all live rows may be found.
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
        row_filter: RowFilter | None = None,
        *,
        requested_k: int,
        deadline: Deadline,
        measures: Measures,
        resident_only: bool = False,
    ) -> None:
        self.tally = SearchTally()
        self._column = column
        self._plan = plan
        self._search_plan = plan
        self._is_range = plan.has_bounds and plan.rescore is not None
        if self._is_range or (plan.has_bounds and plan.rank_by_hits is not None):
            # They bound exact distances, or those of rows, not those of their vectors.
            self._search_plan = replace(plan, lower_bound=None, upper_bound=None)
        self._row_filter = row_filter
        self._requested_k = requested_k
        self._deadline = deadline
        self._measures = measures
        self._resident_only = resident_only
        self._bound: list[tuple[IndexSearch, BoundSearch, RowMask]] | None = None

    def run(
        self, queries: Sequence[NDArray[np.float32]], itself: Sequence[int] | None = None
    ) -> list[Candidates]:
        """Return the nearest rows of each query, nearest first, before they are postfiltered.

        Parameters
        ----------
        queries
            Shape ``(d,)`` each, or ``(m, d)`` where rows hold lists of vectors.
        itself
            A row for each query that is left out of its answer; None = there are no such rows.
        """
        plan = self._plan
        if plan.k == 0:
            return [NO_CANDIDATES for _ in queries]
        parts = [self._search_indices(queries)]
        if plan.flat is not None:
            parts.append(self._search_flat(plan.flat, queries, parts[0]))
        if plan.listed is not None:
            parts.append(self._search_listed(plan.listed, queries))
        with self._measures.measure(MERGE) as facts:
            num_ranked = plan.num_ranked
            ranked = [merge(lists, num_ranked) for lists in zip(*parts, strict=True)]
            if itself is not None:
                ranked = [
                    without(found, row).first(num_ranked - 1)
                    for found, row in zip(ranked, itself, strict=True)
                ]
            facts.rows += sum(map(len, ranked))
        return ranked

    def _search_indices(self, queries: Sequence[NDArray[np.float32]]) -> list[Candidates]:
        if not self._plan.searches:
            return [NO_CANDIDATES for _ in queries]
        ranking = self._plan.rank_by_hits
        if ranking is not None:
            return [self._search_lists(ranking, query) for query in queries]
        return [self._search_index(query, searches) for query, searches in self._sharing(queries)]

    def _sharing(self, queries: Sequence[NDArray[np.float32]]) -> Iterator[OneQuery]:
        """Return each query vector with its searches, whose first probes are read together."""
        if len(queries) == 1:
            yield queries[0], self._segment_searches(queries[0])
            return
        every = ((query, self._segment_searches(query)) for query in queries)
        for group in query_groups(every, self._requested_k):
            held = hold_first_probes(
                [searches for _, searches in group],
                self._requested_k,
                resident_only=self._resident_only,
            )
            yield from group
            del held  # until here nothing that they share was read twice

    def _search_lists(self, ranking: RankByHits, query: NDArray[np.float32]) -> Candidates:
        """Rank rows that hold lists by what is found for each vector of the query, ``(m, d)``."""
        plan = self._plan
        if plan.rescore is not None and self._is_range:
            of_vectors = [searches for _, searches in self._sharing(list(query))]
            return self._search_range(plan.rescore, of_vectors, query)[0]
        hits = [
            merge(self._probe(searches)[0], ranking.hits)
            for _, searches in self._sharing(list(query))
        ]
        # Bounds may rule out the first of them.
        keep = sum(map(len, hits)) if plan.has_bounds else ranking.k
        with self._measures.measure(RANK) as facts:
            found = rank_by_hits(hits, keep)
            facts.rows += len(found)
        if plan.rescore is not None:
            return self._rescored(found.first(plan.rescore.candidates), query, plan.rescore.k)
        return within(found, plan.lower_bound, plan.upper_bound).first(plan.num_ranked)

    def _search_index(
        self, query: NDArray[np.float32], searches: list[SegmentSearch]
    ) -> Candidates:
        plan = self._plan
        if plan.rescore is not None and self._is_range:
            inside, is_short = self._search_range(plan.rescore, [searches], query)
            extra = self._left_out(searches, query) if is_short else NO_CANDIDATES
            return inside if len(extra) == 0 else merge([inside, extra], plan.rescore.k)
        exactly = self._ranking(query, searches)
        lists, is_short = self._probe(searches, exactly)
        if plan.rescore is not None and exactly is not None and exactly.is_done:
            return self._of_exact(lists[0], plan.rescore)
        extra = self._left_out(searches, query) if is_short else NO_CANDIDATES
        if plan.rescore is None and len(extra) == 0:
            return merge(lists, plan.num_ranked)
        candidates, keep = plan.num_ranked, plan.num_ranked
        if plan.rescore is not None:
            candidates, keep = plan.rescore.candidates, plan.rescore.k
        exact = self._rescored(merge(lists, candidates), query, keep)
        return exact if len(extra) == 0 else merge([exact, extra], keep)

    def _ranking(
        self, query: NDArray[np.float32], searches: list[SegmentSearch]
    ) -> ExactRanking | None:
        """Return what makes the search of the only segment score its candidates too.

        None where the candidates are not those of one search, or each step is measured.
        """
        rescore = self._plan.rescore
        if rescore is None or len(searches) != 1 or self._measures.are_kept:
            return None
        (search,) = searches
        if not search.can_rank_exactly or search.num_wanted != rescore.candidates:
            return None
        space = search.bound.partitions.space
        return self._column.stored.ranking(space, query, self._plan.metric)

    def _of_exact(self, exact: Candidates, rescore: Rescore) -> Candidates:
        """Return what `_rescored` does of candidates that have been scored already."""
        self.tally.rows_refined += rescore.candidates
        current_meter().bytes_read += rescore.candidates * self._column.vectors.row_bytes
        return within(exact, self._plan.lower_bound, self._plan.upper_bound).first(rescore.k)

    def _search_range(
        self, rescore: Rescore, searches: list[list[SegmentSearch]], query: NDArray[np.float32]
    ) -> tuple[Candidates, bool]:
        """Search the segments for each vector of a query, inside bounds of exact distances."""
        ranged = RangeSearch(
            self._plan,
            rescore,
            searches,
            self._probe_one,
            self._probe_again,
            lambda candidates: self._score_many(candidates, query),
        )
        found = ranged.run(self._requested_k)
        for each in searches:
            self._count_probes(each)
        return found

    def _score_many(self, candidates: Candidates, query: NDArray[np.float32]) -> Candidates:
        """Return the exact distances of candidates, ranked anew, read some at a time."""
        dimension = self._column.vectors.dimension
        if self._resident_only and len(candidates) * dimension > _LONG_RESCORE_FLOATS:
            raise NotResidentError("scoring many rows takes long")
        self.tally.rows_refined += len(candidates)
        step = max(1, _RESCORED_FLOATS // dimension)
        with self._measures.measure(RESCORE) as facts:
            scored = []
            for start in range(0, len(candidates), step):
                self._deadline.check("scoring candidates")
                some = candidates.slice(start, start + step)
                scored.append(
                    self._column.rescore(
                        some, query, self._plan.metric, resident_only=self._resident_only
                    )
                )
            exact = merge(scored, len(candidates)) if scored else NO_CANDIDATES
            facts.rows += len(exact)
        return exact

    def _rescored(
        self, candidates: Candidates, query: NDArray[np.float32], keep: int
    ) -> Candidates:
        plan = self._plan
        self.tally.rows_refined += len(candidates)
        with self._measures.measure(RESCORE) as facts:
            exact = self._column.rescore(
                candidates, query, plan.metric, resident_only=self._resident_only
            )
            kept = within(exact, plan.lower_bound, plan.upper_bound).first(keep)
            facts.rows += len(kept)
        return kept

    def _segment_searches(self, query: NDArray[np.float32]) -> list[SegmentSearch]:
        if self._plan.metric == "cosine":
            query = unit_vector(self._column.vectors, query)
        return [
            SegmentSearch(
                bound, mask, search, query, self._search_plan, resident_only=self._resident_only
            )
            for search, bound, mask in self._bound_searches()
        ]

    def _bound_searches(self) -> list[tuple[IndexSearch, BoundSearch, RowMask]]:
        """Return the segments to search, the same for all queries of the run."""
        if self._bound is None:
            bound = [self._bind(search) for search in self._plan.searches]
            masks = [self._mask(each) for each in bound]
            self._bound = list(zip(self._plan.searches, bound, masks, strict=True))
        return self._bound

    def _bind(self, search: IndexSearch) -> BoundSearch:
        if self._resident_only and not self._column.is_bound(search.segment):
            raise NotResidentError("deletion files have to be read")
        return self._column.bound(search.segment)

    def _mask(self, bound: BoundSearch) -> RowMask:
        if self._row_filter is None:
            return bound.live
        with self._measures.measure(PREFILTER) as facts:
            mask = bound.mask(self._row_filter, self._deadline, resident_only=self._resident_only)
            facts.rows += mask.num_rows
        return mask

    def _probe(
        self, searches: Sequence[SegmentSearch], exactly: ExactRanking | None = None
    ) -> tuple[list[Candidates], bool]:
        """Search the first partitions of every segment, then more while rows are missing.

        Returns what each search found, and whether that is less than there could be.

        More partitions are probed only when their number was left open (vector index page, section
        7.3). Those that must be probed in any case are probed together: one that has fewer rows
        than are missing cannot end the search.
        """
        lists = [
            self._probe_one(search, search.num_initial(self._requested_k), exactly)
            for search in searches
        ]
        # Scored are only as many as are wanted; some may have no distance.
        is_scored = exactly is not None and exactly.is_done
        is_short = not is_scored and sum(map(len, lists)) < self._plan.num_ranked
        if is_short:
            is_short = self._probe_more(searches, lists)
        self._count_probes(searches)
        return lists, is_short

    def _count_probes(self, searches: Sequence[SegmentSearch]) -> None:
        for search in searches:
            self.tally.partitions_probed += search.num_probed
            self.tally.partitions_total += search.num_partitions

    def _probe_more(self, searches: Sequence[SegmentSearch], lists: list[Candidates]) -> bool:
        """Append what further partitions hold; tell whether that is still less than there is."""
        found = sum(map(len, lists))
        target = min(self._plan.num_ranked, sum(search.mask.num_rows for search in searches))
        for search in searches:
            while found < target and search.num_left > 0:
                more = self._probe_one(search, search.num_needed(target - found))
                lists.append(more)
                found += len(more)
        return found < target

    def _probe_one(
        self, search: SegmentSearch, num_partitions: int, exactly: ExactRanking | None = None
    ) -> Candidates:
        self._deadline.check("searching partitions")
        before = search.num_probed
        with self._measures.measure(search.uuid) as facts:
            found = search.probe(num_partitions, exactly)
            facts.rows += len(found)
            facts.partitions += search.num_probed - before
        return found

    def _probe_again(self, search: SegmentSearch, k: int) -> Candidates:
        self._deadline.check("searching partitions again")
        with self._measures.measure(search.uuid) as facts:
            found = search.probe_again(k)
            facts.rows += len(found)
        return found

    def _left_out(
        self, searches: Sequence[SegmentSearch], query: NDArray[np.float32]
    ) -> Candidates:
        """Score rows exactly that the index leaves out, if nothing else is left to be searched.

        If there are too many to do so, they are counted instead.
        """
        is_all_probed = all(search.num_probed == search.num_partitions for search in searches)
        if not is_all_probed or searches[0].has_fixed_probes:
            return NO_CANDIDATES
        row_ids = [np.empty(0, np.uint64)]
        for search in searches:
            left_out = search.bound.left_out(self._deadline, resident_only=self._resident_only)
            missing = to_ordinals(left_out.words & search.mask.words)
            row_ids.append(search.bound.partitions.space.to_row_ids(missing))
        missing_ids = np.concatenate(row_ids)
        if len(missing_ids) > self._plan.few_rows:
            self.tally.rows_left_out += len(missing_ids)
            return NO_CANDIDATES
        unscored = Candidates(np.zeros(len(missing_ids), np.float32), missing_ids)
        return self._rescored(unscored, query, self._plan.num_ranked)

    def _search_flat(
        self,
        flat: FlatSearch,
        queries: Sequence[NDArray[np.float32]],
        of_index: Sequence[Candidates],
    ) -> list[Candidates]:
        """Search what no index covers for rows that may rank before those an index has found."""
        with self._measures.measure(FLAT) as facts:
            found, num_rows = self._column.search_flat(
                self._plan,
                flat,
                self._row_filter,
                queries,
                [(self._plan.lower_bound, self._upper_bound(found)) for found in of_index],
                deadline=self._deadline,
                resident_only=self._resident_only,
            )
            facts.rows += sum(len(each) for each in found)
        self.tally.rows_scanned_flat += num_rows * len(queries)
        return found

    def _upper_bound(self, found: Candidates) -> float | None:
        """Return what the distances of further rows must be below, None if there is no bound."""
        plan = self._plan
        if not 0 < plan.num_ranked <= len(found):
            return plan.upper_bound
        # A row at the same distance may have the smaller id.
        last = float(np.nextafter(found.distances[plan.num_ranked - 1], np.float32(np.inf)))
        if not np.isfinite(last):
            return plan.upper_bound
        return last if plan.upper_bound is None else min(last, plan.upper_bound)

    def _search_listed(
        self, listed: ListedSearch, queries: Sequence[NDArray[np.float32]]
    ) -> list[Candidates]:
        if self._row_filter is None:
            return [NO_CANDIDATES for _ in queries]
        return [self._score_listed(listed, self._row_filter, query) for query in queries]

    def _score_listed(
        self, listed: ListedSearch, row_filter: RowFilter, query: NDArray[np.float32]
    ) -> Candidates:
        with self._measures.measure(LISTED) as facts:
            found, num_rows = self._column.search_listed(
                self._plan,
                listed,
                row_filter,
                query,
                deadline=self._deadline,
                resident_only=self._resident_only,
            )
            facts.rows += len(found)
        self.tally.rows_scanned_flat += num_rows
        return found
