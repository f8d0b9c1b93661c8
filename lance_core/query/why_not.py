"""Why a row is not in an answer: found out by running the query again, and then parts of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from lance_core.errors import UnsupportedFeatureError
from lance_core.index.candidates import Candidates
from lance_core.query.fitted_vectors import unit_vector
from lance_core.query.measure import Measures
from lance_core.query.merge import within
from lance_core.query.probes import ProbeBounds
from lance_core.query.row_place import Absent, RowPlace, holding_partition, locate
from lance_core.query.vector_search import VectorSearch
from lance_core.row_set import contains

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from lance_core.io.metering import QueryMeter
    from lance_core.query.column_search import ColumnSearch
    from lance_core.query.deadline import Deadline
    from lance_core.query.plan import IndexSearch, VectorPlan
    from lance_core.query.postfilter import Postfilter
    from lance_core.query.row_filter import RowFilter
    from lance_core.query.session import Session
    from lance_core.table.snapshot import Snapshot

WhyNotReason = Literal[
    "present",
    "before_offset",
    "itself",
    "unknown",
    "deleted",
    "filtered",
    "not_indexed",
    "outside_range",
    "partition_not_probed",
    "lost_in_refine",
    "not_reached",
    "given_up",
    "no_match",
    "beaten",
]


_Reason = tuple[WhyNotReason, dict[str, object]]

_LEFT_OUT = "no segment of the index covers its fragment, and a fast search looks at nothing else"


@dataclass(frozen=True, slots=True)
class WhyNot:
    """What keeps a row out of an answer.

    ``reason`` is one of

    - ``present``: nothing, it is there (``rank``, ``distance``);
    - ``before_offset``: it is nearer than the rows returned, and skipped;
    - ``itself``: it is the row whose neighbours are asked for;
    - ``unknown``, ``deleted``: the version has no such row, or no longer;
    - ``filtered``: the filter does not hold for it;
    - ``not_indexed``: it was not compared with the query at all (``cause``), because the index
      leaves it out and nothing else was searched, or because its vector has no distance;
    - ``outside_range``: its ``distance``, exact or where the answer has estimates that of its
      quantised vector, is not inside the bounds;
    - ``partition_not_probed``: it lies in ``partition``, which is the ``partition_rank``-th by the
      distance of its centroid, and ``probed`` were searched;
    - ``lost_in_refine``: by its quantised vector it is only the ``approximate_rank``-th, and
      ``candidates`` were scored exactly;
    - ``not_reached``: the walk through the graph did not come to it; a larger ``ef`` may help;
    - ``given_up``: the search gave it up early by a bound below its estimate, which holds with high
      probability only, though that estimate is near enough;
    - ``no_match``: its texts are not what a query for words looks for;
    - ``beaten``: ``rank`` rows are as near, of which ``wanted`` were taken; of a query for words
      its ``score`` and the last one taken are told.

    ``detail`` holds the facts named above.
    """

    row_id: int
    reason: WhyNotReason
    detail: Mapping[str, object]

    def text(self) -> str:
        """Return the reason as a sentence."""
        facts = ", ".join(f"{name} {_show(value)}" for name, value in self.detail.items())
        said = _SENTENCES[self.reason]
        return f"row {self.row_id} {said}{': ' if facts else ''}{facts}"


_SENTENCES: Mapping[str, str] = {
    "present": "is in the answer",
    "before_offset": "is nearer than the rows returned and skipped by the offset",
    "itself": "is the row whose neighbours are asked for",
    "unknown": "is no row of this version",
    "deleted": "is deleted",
    "filtered": "does not pass the filter",
    "not_indexed": "was not compared with the query",
    "outside_range": "is outside the distance range",
    "partition_not_probed": "lies in a partition that was not probed",
    "lost_in_refine": "was not among the candidates that were scored exactly",
    "not_reached": "was not reached by the walk through the graph",
    "given_up": "was given up early by a bound of its estimate that did not hold",
    "no_match": "has not the words that are looked for",
    "beaten": "is beaten by others",
}


class WhyNotFinder:
    """One query, asked about rows; belongs to one thread.

    Where rows hold lists of vectors, an index finds vectors of theirs in many partitions; what has
    become of them cannot be told, only that of rows which were compared one by one.

    Parameters
    ----------
    session, snapshot
        The version.
    column, plan
        What is searched, and how.
    prefilter, postfilter
        The filter, on either side of the search.
    query
        Shape ``(d,)``, or ``(m, d)`` where rows hold lists; not normalised.
    itself
        The row whose vector ``query`` is; None = it is given.
    requested_k
        Rows wanted, automatic probing goes by it.
    meter
        Counts what is read.
    deadline
        Looked at between pieces of work.
    """

    def __init__(
        self,
        session: Session,
        snapshot: Snapshot,
        column: ColumnSearch,
        plan: VectorPlan,
        prefilter: RowFilter | None,
        postfilter: Postfilter | None,
        query: NDArray[np.float32],
        itself: int | None,
        *,
        requested_k: int,
        meter: QueryMeter,
        deadline: Deadline,
    ) -> None:
        self._session = session
        self._snapshot = snapshot
        self._column = column
        self._plan = plan
        self._prefilter = prefilter
        self._postfilter = postfilter
        self._query = query
        self._itself = itself
        self._requested_k = requested_k
        self._meter = meter
        self._deadline = deadline

    def find(self, row_id: int) -> WhyNot:
        """Return what keeps a row out of the answer.

        Raises
        ------
        UnsupportedFeatureError
            The index has lost a row that holds a list of vectors.
        """
        reason, detail = self._reason(row_id)
        return WhyNot(row_id, reason, detail)

    def _reason(self, row_id: int) -> _Reason:
        found = locate(self._session, self._snapshot, self._column, row_id, self._plan.metric)
        if isinstance(found, Absent):
            return found.reason, {}
        if row_id == self._itself:
            return "itself", {}
        if self._plan.k == 0:
            return self._none_wanted(found)
        measures = Measures(self._meter)
        ranked = self._run(self._plan, measures)
        kept = self._postfiltered(ranked)
        rank = _rank_of(row_id, kept)
        if rank is not None:
            is_skipped = rank <= self._plan.offset
            reason: WhyNotReason = "before_offset" if is_skipped else "present"
            return reason, {"rank": rank, "distance": _distance_at(kept, rank)}
        if not self._passes(found):
            return "filtered", {"filter": self._filter_text}
        return self._lost(found, ranked, measures)

    def _none_wanted(self, row: RowPlace) -> _Reason:
        """Tell why a row is not found by a query whose offset skips all rows that could be."""
        if not self._passes(row):
            return "filtered", {"filter": self._filter_text}
        if self._search_over(row) is None and not self._is_scanned(row):
            return "not_indexed", {"cause": _LEFT_OUT}
        if self._exact_distance(row) is None:
            return "not_indexed", {"cause": row.flaw}
        return "before_offset", {"offset": self._plan.offset}

    def _lost(self, row: RowPlace, ranked: Candidates, measures: Measures) -> _Reason:
        """Tell why a row is not found that might have been."""
        search = self._search_over(row)
        if search is None and not self._is_scanned(row):
            return "not_indexed", {"cause": _LEFT_OUT}
        exact = self._exact_distance(row)
        if self._column.vectors.type.is_multi and self._plan.searches:
            raise UnsupportedFeatureError(
                "what has become of a list of vectors in an index cannot be told; search exactly"
            )
        if search is None:
            if exact is None:
                return "not_indexed", {"cause": row.flaw}
            return self._outranked(row, ranked, exact, measures)
        bound = self._column.bound(search.segment).partitions
        partition = holding_partition(bound, row.row_id, self._deadline)
        if partition is None:
            cause = "the index leaves it out" if row.flaw is None else row.flaw
            return "not_indexed", {"cause": cause}
        order, _ = bound.segment.rank(self._metric_query)
        place = int(np.flatnonzero(order == partition)[0]) + 1
        probed = _num_probed(search, measures)
        if place > probed:
            return "partition_not_probed", {
                "segment": search.segment.uuid,
                "partition": partition,
                "partition_rank": place,
                "probed": probed,
                "partitions": len(order),
                "distance": exact,
            }
        return self._outranked(row, ranked, exact, measures, search)

    def _outranked(
        self,
        row: RowPlace,
        ranked: Candidates,
        exact: float | None,
        measures: Measures,
        search: IndexSearch | None = None,
    ) -> _Reason:
        """Tell how far a row stands behind that was looked at."""
        unlimited = self._unlimited(measures)
        everything = self._run(unlimited)
        rank = _rank_of(row.row_id, everything)
        wanted = self._plan.offset + self._plan.k
        detail: dict[str, object] = {"distance": exact}
        is_beaten = False
        if rank is not None:
            distance = _distance_at(everything, rank)
            last = _distance_at(ranked, len(ranked)) if len(ranked) > 0 else None
            detail = {"distance": distance, "rank": rank, "wanted": wanted, "last_distance": last}
            # Bounds make a search for all rows score more of them than one for a few.
            is_beaten = rank > wanted and (last is None or distance >= last)
        if is_beaten or (rank is not None and search is None):
            return "beaten", detail
        if search is not None:
            return self._passed_over(row, unlimited, detail, search)
        return "outside_range", {**detail, **self._bounds}

    def _passed_over(
        self,
        row: RowPlace,
        unlimited: VectorPlan,
        detail: dict[str, object],
        search: IndexSearch,
    ) -> _Reason:
        """Tell why the index does not find a row that is near enough, or outside the bounds."""
        plan, rescore = self._plan, self._plan.rescore
        by_index = self._run(
            replace(unlimited, rescore=None, flat=None, lower_bound=None, upper_bound=None)
        )
        place = _rank_of(row.row_id, by_index)
        if rescore is None and place is not None:
            # What the index reports is what the bounds are held against.
            detail = {**detail, "distance": _distance_at(by_index, place)}
        if self._is_outside(detail["distance"]):
            return "outside_range", {**detail, **self._bounds}
        if rescore is not None and place is not None and place > rescore.candidates:
            return "lost_in_refine", {
                "approximate_rank": place,
                "candidates": rescore.candidates,
                "distance": detail["distance"],
            }
        if "HNSW" in search.segment.kind:
            return "not_reached", {**detail, "ef": plan.ef}
        return "given_up", detail

    @property
    def _bounds(self) -> dict[str, object]:
        return {"lower_bound": self._plan.lower_bound, "upper_bound": self._plan.upper_bound}

    def _is_outside(self, distance: object) -> bool:
        """Tell whether a distance is not inside the bounds."""
        if not isinstance(distance, float):
            return False
        alone = Candidates(np.array([distance], np.float32), np.zeros(1, np.uint64))
        return len(within(alone, self._plan.lower_bound, self._plan.upper_bound)) == 0

    def _unlimited(self, measures: Measures) -> VectorPlan:
        """Return the plan that ranks all rows that the query looked at."""
        plan = self._plan
        most = sum(each.physical_rows for each in self._snapshot.fragments)
        searches = []
        for search in plan.searches:
            probed = max(_num_probed(search, measures), 1)
            searches.append(replace(search, k=most, probes=ProbeBounds(probed, probed)))
        rescore = plan.rescore
        if rescore is not None:
            candidates = rescore.candidates if rescore.reason == "refine" else most
            rescore = replace(rescore, candidates=candidates, k=most)
        return replace(
            plan,
            searches=tuple(searches),
            flat=None if plan.flat is None else replace(plan.flat, k=most),
            listed=None if plan.listed is None else replace(plan.listed, k=most),
            rescore=rescore,
            offset=0,
            k=most,
            ef=None,
        )

    def _run(self, plan: VectorPlan, measures: Measures | None = None) -> Candidates:
        search = VectorSearch(
            self._column,
            plan,
            self._prefilter,
            requested_k=self._requested_k,
            deadline=self._deadline,
            measures=Measures(self._meter) if measures is None else measures,
        )
        itself = None if self._itself is None else [self._itself]
        (found,) = search.run([self._query], itself)
        return found

    def _postfiltered(self, ranked: Candidates) -> Candidates:
        if self._postfilter is None:
            return ranked
        addresses = self._column.addresses(ranked.row_ids)
        (kept,) = self._postfilter.keep([ranked], [addresses], self._deadline)
        return kept

    def _passes(self, row: RowPlace) -> bool:
        if self._prefilter is not None:
            passing = self._prefilter.passing([row.fragment_id], self._deadline)
            words = passing[row.fragment_id].words
            return bool(contains(words, np.array([row.offset], np.uint32))[0])
        if self._postfilter is None:
            return True
        distance = self._exact_distance(row)
        alone = Candidates(
            np.array([np.nan if distance is None else distance], np.float32),
            np.array([row.row_id], np.uint64),
        )
        return len(self._postfiltered(alone)) > 0

    @property
    def _filter_text(self) -> str | None:
        return self._plan.postfilter if self._prefilter is None else self._prefilter.text

    @property
    def _metric_query(self) -> NDArray[np.float32]:
        if self._plan.metric != "cosine":
            return self._query
        return unit_vector(self._column.vectors, self._query)

    def _exact_distance(self, row: RowPlace) -> float | None:
        distances = self._column.stored.score(
            row.address, self._query, self._plan.metric, resident_only=False
        )
        return None if np.isnan(distances[0]) else float(distances[0])

    def _search_over(self, row: RowPlace) -> IndexSearch | None:
        """Return the index search that answers for the fragment of a row."""
        for search in self._plan.searches:
            if row.fragment_id in search.segment.coverage:
                return search
        return None

    def _is_scanned(self, row: RowPlace) -> bool:
        exact = (self._plan.flat, self._plan.listed)
        return any(each is not None and row.fragment_id in each.fragments for each in exact)


def _num_probed(search: IndexSearch, measures: Measures) -> int:
    facts = measures.of(search.segment.uuid)
    return 0 if facts is None else facts.partitions


def _rank_of(row_id: int, ranked: Candidates) -> int | None:
    """Return the place of a row in a ranking, the first being 1; None if it is not there."""
    places = np.flatnonzero(ranked.row_ids == np.uint64(row_id))
    return int(places[0]) + 1 if len(places) > 0 else None


def _distance_at(ranked: Candidates, rank: int) -> float:
    return float(ranked.distances[rank - 1])


def _show(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
