"""From segment descriptions and a request to a plan: pure, no I/O, microseconds when warm."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING

from pyroaring import BitMap

from lance_core.ids import FragmentId
from lance_core.query.graph_breadth import require_breadth
from lance_core.query.multivector import HITS_PER_ROW
from lance_core.query.plan import (
    FlatSearch,
    IndexChoice,
    IndexSearch,
    ListedSearch,
    Prefilter,
    RankByHits,
    Rescore,
    SegmentDescription,
    SkippedSegment,
    VectorPlan,
)
from lance_core.query.probes import ProbeBounds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lance_core.query.filter_steps import FilterSteps
    from lance_core.query.request import VectorQuery

DEFAULT_METRIC = "l2"
DEFAULT_FEW_ROWS = 20_000
_ROWS_SCANNED_PER_PICKED = 8

_CONTESTED = "other segments claim the same fragments"


def choose_index(
    segments: Sequence[SegmentDescription],
    live: BitMap,
    *,
    metric: str | None,
    use_index: bool = True,
) -> IndexChoice:
    """Choose the index whose metric fits, then the best coverage, then the first created.

    Parameters
    ----------
    segments
        All segments of all indices on the column.
    live
        Fragments of the version.
    metric
        Wanted metric; None = that of the chosen index, without an index ``l2``.
    use_index
        False: choose the metric as otherwise, but search nothing by index.

    Notes
    -----
    An index is a set of segments of one name. Its fragments that no usable segment answers for are
    left to exact search, so a segment that cannot be read costs time and never a row. So are
    fragments that two segments claim, as those of Lance 0.21 do: which of them holds a row, and
    whether as it is now, is not told.
    """
    usable = [s for s in segments if s.reason is None and metric in {None, s.metric}]
    chosen = _uncontested(_best_index(usable))
    if chosen:
        metric = chosen[0].metric
    elif metric is None:
        metric = _metric_without_index(segments)
    if not use_index:
        chosen = []
    covered = BitMap.union(BitMap(), *(s.coverage for s in chosen))
    used = {s.uuid for s in chosen if s.coverage}
    emptied = {s.uuid for s in chosen} - used
    return IndexChoice(
        metric=metric,
        segments=tuple(s for s in chosen if s.coverage),
        skipped=tuple(
            SkippedSegment(
                s.index_name,
                s.uuid,
                _CONTESTED if s.uuid in emptied else _why_skipped(s, metric, use_index=use_index),
            )
            for s in segments
            if s.uuid not in used
        ),
        uncovered=live - covered,
    )


def segments_of_index(
    segments: Sequence[SegmentDescription], name: str
) -> tuple[list[SegmentDescription], list[SkippedSegment]]:
    """Return the segments of an index that queries search, and those that none does.

    Parameters
    ----------
    segments
        All segments of all indices on a column.
    name
        The index.
    """
    own = [each for each in segments if each.index_name == name]
    usable = [
        each
        for metric in dict.fromkeys(each.metric for each in own)
        for each in _uncontested([s for s in own if s.reason is None and s.metric == metric])
    ]
    skipped = [SkippedSegment(name, s.uuid, s.reason) for s in own if s.reason is not None]
    emptied = [SkippedSegment(name, s.uuid, _CONTESTED) for s in usable if not s.coverage]
    return [each for each in usable if each.coverage], skipped + emptied


def _best_index(usable: Sequence[SegmentDescription]) -> list[SegmentDescription]:
    by_index = [
        list(group)
        for _, group in groupby(
            sorted(usable, key=lambda s: (s.index_name, s.metric)),
            key=lambda s: (s.index_name, s.metric),
        )
    ]
    if not by_index:
        return []

    def preference(index: list[SegmentDescription]) -> tuple[int, int]:
        covered = BitMap.union(BitMap(), *(s.coverage for s in index))
        return -len(covered), min(_created(s) for s in index)

    return min(by_index, key=preference)


def _uncontested(index: Sequence[SegmentDescription]) -> list[SegmentDescription]:
    """Return the segments without the fragments that several of them claim."""
    seen, contested = BitMap(), BitMap()
    for segment in index:
        contested |= seen & segment.coverage
        seen |= segment.coverage
    if len(contested) == 0:
        return list(index)
    return [replace(segment, coverage=segment.coverage - contested) for segment in index]


def _metric_without_index(segments: Sequence[SegmentDescription]) -> str:
    known = sorted((_created(s), s.metric) for s in segments if s.metric != "")
    return known[0][1] if known else DEFAULT_METRIC


def _created(segment: SegmentDescription) -> int:
    # Old writers did not record it, so a segment without a time is older than any with one.
    return 0 if segment.created_at_ms is None else segment.created_at_ms


def _why_skipped(segment: SegmentDescription, metric: str, *, use_index: bool) -> str:
    if segment.reason is not None:
        return segment.reason
    if segment.metric != metric:
        return f"its metric is {segment.metric}, the query's is {metric}"
    if not use_index:
        return "the query asks for exact search"
    return "another index on the column covers more, or was created first"


@dataclass(frozen=True, slots=True)
class PassingCounts:
    """What the planner knows of a prefilter: how many rows of each fragment pass.

    ``steps`` tells how they were found.
    """

    text: str
    num_rows: Mapping[FragmentId, int]
    steps: FilterSteps | None = None

    def within(self, fragments: BitMap) -> int:
        """Return how many rows of some fragments pass."""
        return sum(self.num_rows[FragmentId(each)] for each in fragments)


def plan_vector(
    request: VectorQuery,
    choice: IndexChoice,
    *,
    column: str,
    columns: tuple[str, ...],
    num_rows: int,
    passing: PassingCounts | None = None,
    few_rows: int = DEFAULT_FEW_ROWS,
    is_multi: bool = False,
) -> VectorPlan:
    """Plan one vector query.

    Parameters
    ----------
    request
        The query, valid in itself.
    choice
        The index for its metric.
    column, columns
        Vector column and columns of the answer, resolved against the schema.
    num_rows
        Live rows of the version; no step keeps more, whatever ``k`` says.
    passing
        The rows that pass the prefilter, of all fragments that are searched; None = no prefilter.
    few_rows
        Rows that pass a prefilter are scored exactly, one by one, if there are no more than these.
    is_multi
        Whether rows hold lists of vectors.

    Raises
    ------
    InvalidRequestError
        ``ef`` is below the number of rows asked for.
    """
    require_breadth(request, choice)
    searched = _searched_fragments(request, choice)
    prefilter, num_live = None, num_rows
    if passing is not None:
        num_rows = passing.within(searched)
        prefilter = Prefilter(passing.text, num_rows, passing.steps)
    wanted = num_rows if request.k is None else min(request.offset + request.k, num_rows)
    itself = 0 if request.row_ids is None else 1
    ranked = min(wanted + itself, num_rows)
    factor = 1 if request.refine_factor is None else request.refine_factor
    candidates = min(ranked * factor, num_rows)
    rank_by_hits = None
    if is_multi and choice.segments:
        # Bounds cut exact distances: the hits must tell of as many rows as are to be scored.
        is_range = request.refine_factor is not None and (
            request.lower_bound is not None or request.upper_bound is not None
        )
        rows = candidates if is_range else ranked
        rank_by_hits = RankByHits(rows * HITS_PER_ROW, candidates)
    found = candidates if rank_by_hits is None else rank_by_hits.hits
    probes = ProbeBounds(request.min_probes, request.max_probes)
    plan = VectorPlan(
        column=column,
        metric=choice.metric,
        searches=tuple(IndexSearch(s, probes, found) for s in choice.segments),
        skipped=choice.skipped,
        flat=_flat_search(request, choice, ranked),
        rescore=None,
        lower_bound=request.lower_bound,
        upper_bound=request.upper_bound,
        offset=request.offset,
        k=max(wanted - request.offset, 0),
        columns=columns,
        few_rows=few_rows,
        has_itself=request.row_ids is not None,
        fragments_left_out=len(choice.uncovered) if request.fast_search else 0,
        prefilter=prefilter,
        rank_by_hits=rank_by_hits,
        postfilter=None if request.prefilter else request.filter,
        ef=request.ef,
        approx_mode=request.approx_mode,
    )
    if prefilter is not None and searched:
        reason = _why_listed(prefilter, plan, probes, num_live)
        if reason is not None:
            listed = ListedSearch(searched, num_rows, ranked, reason)
            return replace(plan, searches=(), flat=None, rank_by_hits=None, listed=listed)
    return replace(plan, rescore=_rescore(request, choice, plan.flat, candidates, ranked))


def _searched_fragments(request: VectorQuery, choice: IndexChoice) -> BitMap:
    covered = BitMap.union(BitMap(), *(s.coverage for s in choice.segments))
    return covered if request.fast_search else covered | choice.uncovered


def _why_listed(
    prefilter: Prefilter, plan: VectorPlan, probes: ProbeBounds, num_live: int
) -> str | None:
    """Say why the rows that pass are scored one by one, None if they are not.

    Where the number of partitions was left open, all rows that pass are to be found if no more are
    asked for. Most partitions would have to be searched for that. Without an index all vectors
    would be scanned, each of them in less time than one that is picked.
    """
    if prefilter.num_rows <= plan.few_rows:
        return f"at most {plan.few_rows} rows pass the filter"
    if plan.searches and not probes.is_fixed and prefilter.num_rows <= plan.num_ranked:
        return "all rows that pass the filter are asked for"
    if not plan.searches and prefilter.num_rows * _ROWS_SCANNED_PER_PICKED <= num_live:
        return "no index is used, and few of the rows pass the filter"
    return None


def _flat_search(request: VectorQuery, choice: IndexChoice, wanted: int) -> FlatSearch | None:
    if request.fast_search or not choice.uncovered:
        return None
    if not request.use_index:
        reason = "exact search was asked for"
    elif choice.segments:
        reason = "no segment of the index covers these fragments"
    else:
        reason = "no usable index"
    return FlatSearch(choice.uncovered, wanted, reason)


def _rescore(
    request: VectorQuery,
    choice: IndexChoice,
    flat: FlatSearch | None,
    candidates: int,
    wanted: int,
) -> Rescore | None:
    if not choice.segments:
        return None
    if request.refine_factor is not None:
        return Rescore(candidates, wanted, "refine")
    if flat is not None:
        # Distances of a quantiser and exact ones must not meet in one ranking.
        return Rescore(wanted, wanted, "mixed")
    return None
