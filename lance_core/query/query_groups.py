"""Queries that share their reads: what they probe is held in memory for all of them at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from lance_core.index.vector.held_partitions import HeldPartitions
    from lance_core.query.segment_search import SegmentSearch

    OneQuery = tuple[NDArray[np.float32], list[SegmentSearch]]
    """A query vector and its searches, one per segment."""

_HELD_FLOATS = 1 << 26
"""Bound of what a group holds, as if every row were stored as a vector: 256 MiB."""


def query_groups(queries: Iterable[OneQuery], k: int) -> Iterator[list[OneQuery]]:
    """Cut queries into groups whose first probes together fit in memory, in their order.

    Parameters
    ----------
    queries
        The queries, all over the same segments.
    k
        Rows wanted, which the number of probes depends on.
    """
    group: list[OneQuery] = []
    probed: list[NDArray[np.bool_]] = []
    for query, searches in queries:
        if not group:
            probed = [np.zeros(search.num_partitions, np.bool_) for search in searches]
        for search, marks in zip(searches, probed, strict=True):
            marks[search.initial(k)] = True
        group.append((query, searches))
        if sum(map(_num_floats, searches, probed)) >= _HELD_FLOATS:
            yield group
            group = []
    if group:
        yield group


def hold_first_probes(
    queries: Sequence[Sequence[SegmentSearch]], k: int, *, resident_only: bool
) -> list[HeldPartitions]:
    """Hold what queries probe first: of each segment all partitions together, by one read."""
    return [
        of_segment[0].bound.hold(
            np.unique(np.concatenate([search.initial(k) for search in of_segment])),
            resident_only=resident_only,
        )
        for of_segment in zip(*queries, strict=True)
    ]


def _num_floats(search: SegmentSearch, probed: NDArray[np.bool_]) -> int:
    segment = search.bound.partitions.segment
    return int(segment.lengths[probed].sum()) * segment.dimension
