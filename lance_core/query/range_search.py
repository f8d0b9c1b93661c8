"""Searching an index for rows whose exact distances lie inside the bounds of a query.

Estimates of a quantiser may lie on another side of a bound than the distances, under cosine they
are twice as large. So the index is searched as if there were no bounds, and these cut the exact
distances of what it found. While too few rows are left, more of the partitions' rows are scored,
then further partitions probed if their number was left open. pylance 14.0.2 cuts the estimates too
and so loses rows (vector index page, section 7.4).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lance_core.query.merge import merge, within
from lance_core.query.multivector import HITS_PER_ROW, nearest_hits, rank_by_hits

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lance_core.index.candidates import Candidates
    from lance_core.query.plan import Rescore, VectorPlan
    from lance_core.query.segment_search import SegmentSearch

_WIDER = 4
_FEWEST = 256
"""Candidates whose farther half tells whether rows inside the bounds may follow: estimates err."""
_MOST_AT_ONCE = 64
"""Partitions that are probed together after the first ones."""


@dataclass(frozen=True, slots=True, eq=False)
class RangeSearch:
    """One query inside bounds.

    Parameters
    ----------
    plan, rescore
        What to do; the searches of segments know of no bounds.
    searches
        One per segment, of each vector of the query.
    probe
        Searches the next partitions of a segment, as many as given.
    probe_again
        Searches the partitions probed last again, for as many rows as given.
    score
        Replaces distances by exact ones and ranks anew.
    """

    plan: VectorPlan
    rescore: Rescore
    searches: Sequence[Sequence[SegmentSearch]]
    probe: Callable[[SegmentSearch, int], Candidates]
    probe_again: Callable[[SegmentSearch, int], Candidates]
    score: Callable[[Candidates], Candidates]

    def run(self, requested_k: int) -> tuple[Candidates, bool]:
        """Return the nearest rows inside the bounds, and whether they are less than there could be.

        Parameters
        ----------
        requested_k
            Rows wanted; automatic probing goes by it.
        """
        keep = self.rescore.k
        target = min(keep, sum(search.mask.num_rows for search in self.searches[0]))
        found = self._search_next(lambda search: search.num_initial(requested_k))
        while len(found) < target and any(s.num_left > 0 for each in self.searches for s in each):
            more = self._search_next(_as_many_again)
            # A row that holds several vectors may lie in several partitions.
            found = nearest_hits(merge([found, more], len(found) + len(more))).first(keep)
        return found, len(found) < target

    def _search_next(self, num_partitions: Callable[[SegmentSearch], int]) -> Candidates:
        """Probe partitions and score their nearest rows, more while too few are inside the bounds.

        It ends too when the farther half of the candidates lies beyond the upper bound.
        """
        plan, keep = self.plan, self.rescore.k
        found = [
            [self.probe(search, num_partitions(search)) for search in each]
            for each in self.searches
        ]
        most = max(sum(search.num_chosen for search in each) for each in self.searches)
        candidates, hits = self.rescore.candidates, plan.searches[0].k
        while True:
            nearest = [merge(lists, hits) for lists in found]
            chosen = self._ranked(nearest, candidates)
            below = within(self.score(chosen), None, plan.upper_bound)
            inside = within(below, plan.lower_bound, None)
            is_cut = len(chosen) >= candidates or any(len(each) >= hits for each in nearest)
            is_all = not is_cut or min(candidates, hits) >= most
            if len(inside) >= keep or is_all or _is_beyond(chosen, below):
                return inside.first(keep)
            candidates = max(_WIDER * candidates, _FEWEST)
            hits = candidates if plan.rank_by_hits is None else candidates * HITS_PER_ROW
            found = [[self.probe_again(s, min(hits, most)) for s in each] for each in self.searches]

    def _ranked(self, nearest: Sequence[Candidates], candidates: int) -> Candidates:
        if self.plan.rank_by_hits is not None:
            return rank_by_hits(nearest, candidates)
        return nearest[0].first(candidates)


def _is_beyond(chosen: Candidates, below: Candidates) -> bool:
    """Tell whether no row of the farther half is ``below`` the upper bound."""
    farther = chosen.row_ids[len(chosen) // 2 :]
    return len(chosen) >= _FEWEST and not np.isin(farther, below.row_ids).any()


def _as_many_again(search: SegmentSearch) -> int:
    return min(max(search.num_probed, 1), search.num_left, _MOST_AT_ONCE)
