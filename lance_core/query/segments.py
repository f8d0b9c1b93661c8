"""The index segments of a column: opened, described for the planner, bound to live rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pyroaring import BitMap

from lance_core.errors import UnsupportedFeatureError
from lance_core.ids import FragmentId
from lance_core.index.coverage import effective_coverage
from lance_core.index.ordinals import RowIdSpace, live_id_words
from lance_core.index.registry import Unusable, UnusableSegmentError, classify
from lance_core.index.vector.bound import BoundSegment
from lance_core.index.vector.metric import metric_in_details
from lance_core.index.vector.quantizer import SearchOptions
from lance_core.index.vector.segment import VectorSegment
from lance_core.query.merge import NO_CANDIDATES
from lance_core.query.plan import SegmentDescription
from lance_core.query.probes import initial_probes
from lance_core.query.residency import NotResidentError
from lance_core.query.searchable_rows import addressed_rows
from lance_core.row_set import count
from lance_core.table.frag_reuse import load_frag_reuse
from lance_core.table.row_id_index import row_id_index

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from lance_core.index.candidates import Candidates
    from lance_core.index.ordinals import RowSpace
    from lance_core.query.plan import IndexSearch, VectorPlan
    from lance_core.query.session import Session
    from lance_core.schema.field import LanceField
    from lance_core.table.files import TableFiles
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
        if snapshot.has_stable_row_ids:
            _row_id_space(snapshot, coverage)
        segment = _open(session, snapshot, metadata)
    except UnusableSegmentError as error:
        return _unusable(metadata, error.reason, error.metric), None
    except UnsupportedFeatureError as error:
        return _unusable(metadata, str(error)), None
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


def _unusable(
    metadata: IndexMetadata, reason: str, metric: str | None = None
) -> SegmentDescription:
    if metric is None:
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


def _mask(
    files: TableFiles, snapshot: Snapshot, fragment_ids: list[FragmentId]
) -> tuple[RowSpace, NDArray[np.uint64]]:
    """Return the rows as the segment's files name them, and which of them are live."""
    if not snapshot.has_stable_row_ids:
        rows = addressed_rows(files, snapshot, fragment_ids)
        return rows.space, rows.words
    index = row_id_index(files, snapshot).of_fragments(fragment_ids)
    space = _row_id_space(snapshot, fragment_ids)
    path = snapshot.manifest.path
    return space, live_id_words(space, index.first_ids, index.lengths, path)


def _row_id_space(snapshot: Snapshot, fragment_ids: Iterable[int]) -> RowIdSpace:
    fragments = snapshot.fragments_by_id
    num_rows = sum(fragments[FragmentId(each)].physical_rows for each in fragment_ids)
    return RowIdSpace(snapshot.manifest.next_row_id, num_rows)


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
        scheduler = segment.folder.scheduler
        space, self.words = _mask(session.files, snapshot, fragment_ids)
        self.num_live = count(self.words)
        self.partitions = BoundSegment(
            segment,
            scheduler,
            session.cache,
            space,
            scheduler.store.key,
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
        is_late = self.num_probed > 0
        self.num_probed += len(chosen)
        if len(chosen) == 0:
            return NO_CANDIDATES
        partitions = self._bound.partitions
        held = partitions.resident(chosen) if self._resident_only else partitions.acquire(chosen)
        if held is None:
            raise NotResidentError("partitions have to be read")
        plan = self._plan
        options = SearchOptions(self._search.k, plan.lower_bound, plan.upper_bound, is_late=is_late)
        return partitions.search(held, self._query, self._bound.words, options)
