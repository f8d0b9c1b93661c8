"""The index segments of a column: opened, described for the planner, bound to live rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from pyroaring import BitMap

from lance_core.cache.keys import CacheKey
from lance_core.errors import CorruptFileError, UnsupportedFeatureError
from lance_core.ids import FragmentId
from lance_core.index.coverage import effective_coverage
from lance_core.index.registry import Unusable, UnusableSegmentError, classify
from lance_core.index.vector.bound import BoundSegment
from lance_core.index.vector.metric import Metric, metric_in_details
from lance_core.index.vector.segment import VectorSegment
from lance_core.kernels.masks import clear_held_rows
from lance_core.query.plan import SegmentDescription
from lance_core.query.residency import NotResidentError
from lance_core.query.row_masks import RowMask
from lance_core.query.row_spaces import live_rows, row_id_space
from lance_core.row_set import count
from lance_core.scan.vector_type import vector_type
from lance_core.table.frag_reuse import load_frag_reuse

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lance_core.index.vector.held_partitions import HeldPartitions
    from lance_core.query.deadline import Deadline
    from lance_core.query.row_filter import RowFilter
    from lance_core.query.session import Session
    from lance_core.schema.field import LanceField
    from lance_core.table.index_metadata import IndexMetadata
    from lance_core.table.reuse_history import ReuseHistory
    from lance_core.table.snapshot import Snapshot


_DAMAGED = "a file of it is damaged or missing"
_ROWS_LOOKED_THROUGH = 1 << 20
"""Rows of partitions held at a time while rows are looked for that none of them holds."""


@dataclass(frozen=True, slots=True)
class OpenedSegment:
    """A segment as the planner sees it; not open if it cannot be used.

    ``damage`` is why it cannot, where its files contradict the format or are missing.
    """

    description: SegmentDescription
    segment: VectorSegment | None = None
    damage: CorruptFileError | None = None


def describe_segments(
    session: Session, snapshot: Snapshot, field: LanceField, live: BitMap
) -> list[OpenedSegment]:
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
        return [_unusable(metadata, str(error)) for metadata in segments]
    except CorruptFileError as error:
        return [_unusable(metadata, _DAMAGED, damage=error) for metadata in segments]
    history = None if reuse is None else reuse.history
    found = vector_type(field)
    is_multi = found is not None and found.is_multi
    return [
        _describe(session, snapshot, metadata, field, live, history, is_multi=is_multi)
        for metadata in segments
    ]


def _describe(
    session: Session,
    snapshot: Snapshot,
    metadata: IndexMetadata,
    field: LanceField,
    live: BitMap,
    history: ReuseHistory | None,
    *,
    is_multi: bool,
) -> OpenedSegment:
    reason = _obstacle(metadata)
    coverage = effective_coverage(metadata, live, history)
    if reason is not None:
        return _unusable(metadata, reason)
    if not coverage:
        return _unusable(metadata, "it covers no fragment of this version")
    try:
        if snapshot.has_stable_row_ids:
            row_id_space(snapshot, coverage)
        segment = open_segment(session, snapshot, metadata)
        if is_multi:
            _require_similarities(segment)
        _check_dimension(segment, field)
    except UnusableSegmentError as error:
        return _unusable(metadata, error.reason, error.metric)
    except UnsupportedFeatureError as error:
        return _unusable(metadata, str(error))
    except CorruptFileError as error:
        return _unusable(metadata, _DAMAGED, damage=error)
    description = SegmentDescription(
        index_name=metadata.name,
        uuid=metadata.uuid,
        kind=segment.kind,
        metric=str(segment.metric),
        coverage=coverage,
        num_partitions=segment.num_partitions,
        created_at_ms=metadata.created_at_ms,
    )
    return OpenedSegment(description, segment)


def _obstacle(metadata: IndexMetadata) -> str | None:
    kind = classify(metadata)
    if isinstance(kind, Unusable):
        return kind.reason
    return None if kind.may_be_vector else f"a {kind} index finds no neighbours"


def _check_dimension(segment: VectorSegment, field: LanceField) -> None:
    found = vector_type(field)
    if found is not None and segment.dimension != found.dimension:
        raise CorruptFileError(
            segment.storage.reader.path,
            f'the index has {segment.dimension} dimensions, column "{field.name}" has'
            f" {found.dimension}",
        )


def _require_similarities(segment: VectorSegment) -> None:
    if segment.metric != Metric.COSINE:
        raise UnusableSegmentError(
            f"lists of vectors are ranked by cosine similarities, its metric is {segment.metric}"
        )


def _unusable(
    metadata: IndexMetadata,
    reason: str,
    metric: str | None = None,
    damage: CorruptFileError | None = None,
) -> OpenedSegment:
    if metric is None:
        metric = metric_in_details(metadata.details)
    description = SegmentDescription(
        index_name=metadata.name,
        uuid=metadata.uuid,
        kind="",
        metric="" if metric is None else str(metric),
        coverage=BitMap(),
        num_partitions=0,
        created_at_ms=metadata.created_at_ms,
        reason=reason,
    )
    return OpenedSegment(description, damage=damage)


def open_segment(session: Session, snapshot: Snapshot, metadata: IndexMetadata) -> VectorSegment:
    """Open a segment, which all versions that have it share."""
    folder = snapshot.index_place(metadata)
    store, path = folder.key
    return session.cache.get_or_load(
        CacheKey("vector segment", store, (path, metadata.uuid)),
        lambda: VectorSegment.open(folder, metadata.uuid, metadata.files),
    )


class BoundSearch:
    """A segment with the mask of the rows it may return at one version.

    ``nbytes`` counts the segment's header too: whoever has this keeps that in memory.
    """

    def __init__(
        self,
        session: Session,
        snapshot: Snapshot,
        segment: VectorSegment,
        description: SegmentDescription,
    ) -> None:
        self._fragment_ids = [FragmentId(each) for each in description.coverage]
        self._uuid = description.uuid
        self._cache = session.cache
        store = snapshot.scheduler.store.key
        self._left_out_key = CacheKey("left out", store, (snapshot.incarnation, description.uuid))
        scheduler = segment.folder.scheduler
        space, words, self._runs = live_rows(session.files, snapshot, self._fragment_ids)
        self.live = RowMask(words, count(words))
        self.partitions = BoundSegment(
            segment,
            scheduler,
            session.cache,
            space,
            scheduler.store.key,
            load_frag_reuse(session.cache, snapshot),
        )
        self.nbytes = self.live.nbytes + self._runs.nbytes + self.partitions.nbytes + segment.nbytes

    def mask(
        self, row_filter: RowFilter | None, deadline: Deadline, *, resident_only: bool
    ) -> RowMask:
        """Return the rows that may be found: the live ones, of a filter those that pass."""
        if row_filter is None:
            return self.live
        return row_filter.mask(
            self._uuid,
            self.live,
            self._runs,
            self._fragment_ids,
            deadline,
            resident_only=resident_only,
        )

    def hold(self, partitions: NDArray[np.int64], *, resident_only: bool) -> HeldPartitions:
        """Keep partitions in memory, reading in one batch those that are not there.

        With ``resident_only`` a ``NotResidentError`` is raised if some are not.
        """
        if not resident_only:
            return self.partitions.acquire(partitions)
        held = self.partitions.resident(partitions)
        if held is None:
            raise NotResidentError("partitions have to be read")
        return held

    def left_out(self, deadline: Deadline, *, resident_only: bool) -> RowMask:
        """Return the live rows that no partition holds; looks through all of them on first use.

        These are rows without a vector, with a NaN or an infinity in it, and zero vectors under
        cosine (vector index page, section 7.5).
        """
        if resident_only and self._left_out_key not in self._cache:
            raise NotResidentError("all partitions have to be looked through")
        return self._cache.get_or_load(self._left_out_key, lambda: self._look_through(deadline))

    def _look_through(self, deadline: Deadline) -> RowMask:
        words = self.live.words.copy()
        piece = np.cumsum(self.partitions.segment.lengths) // _ROWS_LOOKED_THROUGH
        for each in np.unique(piece):
            deadline.check("looking for rows that the index leaves out")
            held = self.partitions.acquire(np.flatnonzero(piece == each))
            clear_held_rows(held.rows, words)
        return RowMask(words, count(words))
