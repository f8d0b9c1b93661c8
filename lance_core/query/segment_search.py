"""The search of one segment for one query vector, partition after partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.index.vector.quantizer import SearchOptions
from lance_core.query.merge import NO_CANDIDATES, merge
from lance_core.query.multivector import nearest_hits
from lance_core.query.probes import initial_probes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lance_core.index.candidates import Candidates
    from lance_core.index.vector.held_partitions import HeldPartitions
    from lance_core.kernels.exact_rank import ExactRanking
    from lance_core.query.plan import IndexSearch, VectorPlan
    from lance_core.query.row_masks import RowMask
    from lance_core.query.segments import BoundSearch

_RANK_EXACTLY = frozenset({"IVF_PQ"})
_MAX_AHEAD = 64
"""Partitions that are read at once while a search goes on until it has enough rows."""


class SegmentSearch:
    """Which partitions are searched, and how far the search has come."""

    def __init__(
        self,
        bound: BoundSearch,
        mask: RowMask,
        search: IndexSearch,
        query: NDArray[np.float32],
        plan: VectorPlan,
        *,
        resident_only: bool,
    ) -> None:
        self.bound = bound
        self.mask = mask
        self._search = search
        self._query = query
        self._plan = plan
        self._resident_only = resident_only
        segment = bound.partitions.segment
        # Only the nearest can come into question where the caller bounds the number of probes.
        self._order, self._distances = segment.rank(query, search.probes.maximum)
        self._lengths = segment.lengths
        self.num_partitions = segment.num_partitions
        self.num_probed = 0
        self._chosen = self._order[:0]
        self._is_late = False
        self._ahead: HeldPartitions | None = None
        self._num_ahead = 1
        self._ahead_until = 0

    @property
    def uuid(self) -> str:
        """The segment."""
        return self._search.segment.uuid

    @property
    def num_wanted(self) -> int:
        """Rows that `probe` finds at most."""
        return self._search.k

    @property
    def can_rank_exactly(self) -> bool:
        """Whether `probe` makes use of what gives rows exact distances."""
        return self._search.segment.kind in _RANK_EXACTLY

    @property
    def has_fixed_probes(self) -> bool:
        """Whether the caller said how many partitions to probe."""
        return self._search.probes.is_fixed

    @property
    def num_left(self) -> int:
        """Partitions that may still be probed."""
        return len(self._order) - self.num_probed

    def num_initial(self, k: int) -> int:
        """Return how many partitions to probe first."""
        return initial_probes(self._distances, self._search.segment.metric, k, self._search.probes)

    def initial(self, k: int) -> NDArray[np.int64]:
        """Return the partitions to probe first."""
        return self._order[: self.num_initial(k)]

    def num_needed(self, num_rows: int) -> int:
        """Return how many more partitions must be probed at least to find ``num_rows`` more."""
        following = self._order[self.num_probed : self.num_probed + self.num_left]
        reached = np.cumsum(self._lengths[following])
        return min(int(np.searchsorted(reached, num_rows)) + 1, self.num_left)

    def probe(self, num_partitions: int, exact: ExactRanking | None = None) -> Candidates:
        """Search the next partitions in order of their distance.

        With ``exact`` the rows found may have exact distances, as it tells then.
        """
        start = self.num_probed
        self._chosen = chosen = self._order[start : start + num_partitions]
        if len(chosen) == 0:
            return NO_CANDIDATES
        self.num_probed += len(chosen)
        self._is_late = start > 0
        if self._is_late and not self._resident_only:
            self._read_ahead(start, self.num_probed)
        return self._search_chosen(self._search.k, exact)

    @property
    def num_chosen(self) -> int:
        """Rows, or vectors of rows, of the partitions that were probed last."""
        return int(self._lengths[self._chosen].sum())

    def probe_again(self, k: int) -> Candidates:
        """Search the partitions that were probed last once more, for ``k`` rows."""
        return NO_CANDIDATES if len(self._chosen) == 0 else self._search_chosen(k)

    def _search_chosen(self, k: int, exact: ExactRanking | None = None) -> Candidates:
        held = self.bound.hold(self._chosen, resident_only=self._resident_only)
        plan = self._plan
        options = SearchOptions(
            k, plan.lower_bound, plan.upper_bound, plan.ef, plan.approx_mode, self._is_late, exact
        )
        if plan.rank_by_hits is not None and self.bound.partitions.segment.graph is not None:
            return self._walk(held, options)
        return self.bound.partitions.search(held, self._query, self.mask.words, options)

    def _read_ahead(self, start: int, stop: int) -> None:
        """Read partitions that may be probed next too: one by one they would take a request each.

        Each time twice as many, so that not many more are read than are probed.
        """
        if stop > self._ahead_until:
            self._ahead_until = max(stop, start + self._num_ahead)
            following = self._order[start : self._ahead_until]
            self._ahead = self.bound.hold(following, resident_only=False)
            self._num_ahead = min(2 * self._num_ahead, _MAX_AHEAD)

    def _walk(self, held: HeldPartitions, options: SearchOptions) -> Candidates:
        """Search graphs over vectors of lists: of a partition each row is found but once."""
        partitions = self.bound.partitions
        found = [
            nearest_hits(partitions.search(piece, self._query, self.mask.words, options))
            for piece in held.pieces(max_rows=1)
        ]
        return merge(found, options.k)
