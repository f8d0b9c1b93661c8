"""The index segments of a column: opened, described for the planner, bound to live rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pyroaring import BitMap

from lance_core.errors import UnsupportedFeatureError
from lance_core.ids import FragmentId
from lance_core.index.coverage import effective_coverage
from lance_core.index.registry import Unusable, UnusableSegmentError, classify
from lance_core.index.vector.bound import BoundSegment
from lance_core.index.vector.metric import metric_in_details
from lance_core.index.vector.segment import VectorSegment
from lance_core.query.flat_search import searchable_rows
from lance_core.query.merge import NO_CANDIDATES
from lance_core.query.plan import SegmentDescription
from lance_core.query.probes import initial_probes
from lance_core.query.residency import NotResidentError
from lance_core.table.frag_reuse import load_frag_reuse

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lance_core.index.candidates import Candidates
    from lance_core.query.plan import IndexSearch, VectorPlan
    from lance_core.query.session import Session
    from lance_core.schema.field import LanceField
    from lance_core.table.index_metadata import IndexMetadata
    from lance_core.table.reuse_history import ReuseHistory
    from lance_core.table.snapshot import Snapshot


def describe_segments(
    session: Session, snapshot: Snapshot, field: LanceField, live: BitMap
) -> list[tuple[SegmentDescription, VectorSegment | None]]:
    """Open the segments on a field, and describe those too that cannot be used."""
    segments = [
        metadata
        for metadata in snapshot.indices
        if field.id in metadata.field_ids and not metadata.is_system
    ]
    try:
        reuse = load_frag_reuse(session.cache, snapshot) if segments else None
    except UnsupportedFeatureError as error:
        # Nobody can tell where the rows are that their files name.
        return [(_unusable(metadata, str(error)), None) for metadata in segments]
    history = None if reuse is None else reuse.history
    return [_describe(session, snapshot, metadata, live, history) for metadata in segments]


def _describe(
    session: Session,
    snapshot: Snapshot,
    metadata: IndexMetadata,
    live: BitMap,
    history: ReuseHistory | None,
) -> tuple[SegmentDescription, VectorSegment | None]:
    usable = classify(metadata)
    coverage = effective_coverage(metadata, live, history)
    if isinstance(usable, Unusable):
        return _unusable(metadata, usable.reason), None
    if not coverage:
        return _unusable(metadata, "it covers no fragment of this version"), None
    try:
        segment = _open(session, snapshot, metadata)
    except UnusableSegmentError as error:
        return _unusable(metadata, error.reason), None
    description = SegmentDescription(
        index_name=metadata.name,
        uuid=metadata.uuid,
        kind=segment.kind,
        metric=str(segment.metric),
        coverage=coverage,
        num_partitions=segment.num_partitions,
        created_at_ms=metadata.created_at_ms,
    )
    return description, segment


def _unusable(metadata: IndexMetadata, reason: str) -> SegmentDescription:
    metric = metric_in_details(metadata.details)
    return SegmentDescription(
        index_name=metadata.name,
        uuid=metadata.uuid,
        kind="",
        metric="" if metric is None else str(metric),
        coverage=BitMap(),
        num_partitions=0,
        created_at_ms=metadata.created_at_ms,
        reason=reason,
    )


def _open(session: Session, snapshot: Snapshot, metadata: IndexMetadata) -> VectorSegment:
    folder = snapshot.index_place(metadata)
    return session.cache.get_or_load(
        ("vector segment", *folder.key, metadata.uuid),
        lambda: VectorSegment.open(folder, metadata.uuid, metadata.files),
    )


class BoundSearch:
    """A segment with the mask of the rows it may return at one version."""

    def __init__(
        self,
        session: Session,
        snapshot: Snapshot,
        segment: VectorSegment,
        description: SegmentDescription,
    ) -> None:
        fragment_ids = [FragmentId(each) for each in description.coverage]
        rows = searchable_rows(session.files, snapshot, fragment_ids)
        scheduler = segment.folder.scheduler
        self.num_live = rows.num_rows
        self.words = rows.words
        self.partitions = BoundSegment(
            segment,
            scheduler,
            session.cache,
            rows.space,
            scheduler.store.uri,
            load_frag_reuse(session.cache, snapshot),
        )


class SegmentSearch:
    """The search of one segment for one query vector: which partitions, how far it has come."""

    def __init__(
        self,
        bound: BoundSearch,
        search: IndexSearch,
        query: NDArray[np.float32],
        plan: VectorPlan,
        *,
        resident_only: bool,
    ) -> None:
        self._bound = bound
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

    @property
    def uuid(self) -> str:
        """The segment."""
        return self._search.segment.uuid

    @property
    def num_live(self) -> int:
        """Rows that the segment may return at all."""
        return self._bound.num_live

    @property
    def num_left(self) -> int:
        """Partitions that may still be probed."""
        return len(self._order) - self.num_probed

    def num_initial(self, k: int) -> int:
        """Return how many partitions to probe first."""
        return initial_probes(self._distances, self._search.segment.metric, k, self._search.probes)

    def num_needed(self, num_rows: int) -> int:
        """Return how many more partitions must be probed at least to find ``num_rows`` more."""
        following = self._order[self.num_probed : self.num_probed + self.num_left]
        reached = np.cumsum(self._lengths[following])
        return min(int(np.searchsorted(reached, num_rows)) + 1, self.num_left)

    def probe(self, num_partitions: int) -> Candidates:
        """Search the next partitions in order of their distance."""
        chosen = self._order[self.num_probed : self.num_probed + num_partitions]
        self.num_probed += len(chosen)
        if len(chosen) == 0:
            return NO_CANDIDATES
        partitions = self._bound.partitions
        held = partitions.resident(chosen) if self._resident_only else partitions.acquire(chosen)
        if held is None:
            raise NotResidentError("partitions have to be read")
        return partitions.search(
            held,
            self._query,
            self._bound.words,
            self._search.k,
            self._plan.lower_bound,
            self._plan.upper_bound,
        )
