"""The scalar indices of a version: which segments answer conditions on a column, and for what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyroaring import BitMap

from lance_core.cache.keys import CacheKey
from lance_core.errors import UnsupportedFeatureError
from lance_core.ids import FieldId
from lance_core.index.condition_segment import open_condition_segment
from lance_core.index.coverage import doubtful_coverage, effective_coverage
from lance_core.index.registry import IndexKind, Unusable, UnusableSegmentError, classify
from lance_core.index.scalar.open import open_scalar_segment
from lance_core.index.scalar.zone_segment import ZoneSegment
from lance_core.index.scalar.zones import MISPLACED
from lance_core.query.current_rows import rows_of_old_fragments
from lance_core.query.plan import SkippedSegment

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from lance_core.expr.index_query import IndexLeaf, LeafQuery
    from lance_core.index.scalar.segment import ScalarSegment, ValueSegment
    from lance_core.query.session import Session
    from lance_core.table.frag_reuse import FragmentReuse
    from lance_core.table.index_metadata import IndexMetadata
    from lance_core.table.snapshot import Snapshot

_PREFERENCE = {  # exact ones first, then by how few rows are left to look at
    IndexKind.BITMAP: 0,
    IndexKind.LABEL_LIST: 0,
    IndexKind.BTREE: 0,
    IndexKind.NGRAM: 1,
    IndexKind.BLOOMFILTER: 1,
    IndexKind.INVERTED: 1,
    IndexKind.ZONEMAP: 2,
}
_CONTESTED = "other segments of the index claim the same fragments"
_NO_COVERAGE = "it covers no fragment of this version"
_NO_ZONES = "its file has no zones of the fragments that it covers: rebuild it"
_KEPT_BYTES = 512
"""What keeping the indices of a column, or a segment of theirs, takes beside the coverage."""


@dataclass(frozen=True, slots=True, eq=False)
class CoveringSegment:
    """A segment that can be asked, and the live fragments that it answers for.

    It does not hold what was opened: that belongs to the cache.
    """

    metadata: IndexMetadata
    coverage: BitMap


@dataclass(frozen=True, slots=True, eq=False)
class SegmentQuery:
    """What one segment is asked, and the fragments for which its answer counts."""

    index_name: str
    segment: ScalarSegment
    query: LeafQuery
    coverage: BitMap


@dataclass(frozen=True, slots=True, eq=False)
class ScalarIndex:
    """The segments of one name on one column; no fragment is covered by two of them."""

    name: str
    created_at_ms: int
    segments: tuple[CoveringSegment, ...]
    num_fragments: int


@dataclass(frozen=True, slots=True, eq=False)
class ColumnIndices:
    """The indices on one column at one version; ``nbytes`` are those held, without segments.

    ``skipped`` are segments that cannot be used, and why.
    """

    indices: tuple[ScalarIndex, ...]
    skipped: tuple[SkippedSegment, ...]
    nbytes: int


class ScalarIndices:
    """Finds the scalar indices of one version; those of a column are kept in the cache.

    Parameters
    ----------
    session, snapshot
        Cache, and the version.
    reuse
        Deferred compactions that index files may not have followed, None where there were none.
    """

    def __init__(self, session: Session, snapshot: Snapshot, reuse: FragmentReuse | None) -> None:
        self._cache = session.cache
        self._snapshot = snapshot
        self._reuse = reuse
        self._columns: dict[FieldId, ColumnIndices] = {}

    def opened(self, field_id: FieldId, name: str) -> list[ValueSegment]:
        """Return the segments of an index of values that can be asked; errors as `queries`."""
        place, field = self._snapshot.index_place, self._snapshot.schema.by_id(field_id)
        return [
            open_scalar_segment(place(own), own, self._cache, field)
            for index in self._on_field(field_id).indices
            if index.name == name
            for own in (covering.metadata for covering in index.segments)
        ]

    def skipped(self, field_ids: Iterable[int]) -> tuple[SkippedSegment, ...]:
        """Return the segments on some columns that cannot be used, and why; errors as `queries`."""
        columns = [self._on_field(FieldId(each)) for each in dict.fromkeys(field_ids)]
        return tuple(each for column in columns for each in column.skipped)

    def queries(self, leaf: IndexLeaf) -> list[SegmentQuery]:
        """Return what to ask which segments, so that every fragment is answered for once at most.

        Each index answers the first query that its segments support. Among several indices those
        that answer exactly come first, then those of the better coverage, then the first created.

        Raises
        ------
        CorruptFileError
            A segment's header is damaged or missing.
        """
        field_id = FieldId(leaf.field_id)
        candidates = [
            (place, _PREFERENCE[segment.kind], index, covering, segment, query)
            for index in self._on_field(field_id).indices
            for covering in index.segments
            for segment in (self._open(covering.metadata, field_id),)
            for place, query in enumerate(leaf.queries)
            if segment.supports(query)
            and not any(segment.supports(other) for other in leaf.queries[:place])
        ]
        if len(candidates) > 1:
            candidates.sort(
                key=lambda c: (c[1], c[0], -c[2].num_fragments, c[2].created_at_ms, c[2].name)
            )
        queries: list[SegmentQuery] = []
        taken = BitMap()
        for _, _, index, covering, segment, query in candidates:
            left = covering.coverage - taken if queries else covering.coverage
            if left:
                queries.append(SegmentQuery(index.name, segment, query, left))
                taken |= left
        return queries

    def _on_field(self, field_id: FieldId) -> ColumnIndices:
        known = self._columns.get(field_id)
        if known is None:
            snapshot = self._snapshot
            name = (snapshot.incarnation, field_id)
            key = CacheKey("scalar indices", snapshot.scheduler.store.key, name)
            known = self._cache.get_or_load(key, lambda: self._find(field_id))
            self._columns[field_id] = known
        return known

    def _find(self, field_id: FieldId) -> ColumnIndices:
        by_name: dict[str, list[CoveringSegment]] = {}
        skipped: list[SkippedSegment] = []
        for metadata in self._snapshot.indices:
            if field_id not in metadata.field_ids or metadata.is_system:
                continue
            found = self._covering(metadata, field_id)
            if isinstance(found, Unusable):
                skipped.append(_skipped(metadata, found.reason))
            else:
                by_name.setdefault(metadata.name, []).append(found)
        indices = []
        for name, own in by_name.items():
            segments = tuple(_uncontested(own))
            used = {each.metadata.uuid for each in segments}
            left_out = [each.metadata for each in own if each.metadata.uuid not in used]
            skipped += [_skipped(each, _CONTESTED) for each in left_out]
            created = min(_created(each.metadata) for each in own)
            num_fragments = sum(len(each.coverage) for each in segments)
            indices.append(ScalarIndex(name, created, segments, num_fragments))
        return ColumnIndices(tuple(indices), tuple(skipped), _nbytes(indices, skipped))

    def _covering(self, metadata: IndexMetadata, field_id: FieldId) -> CoveringSegment | Unusable:
        obstacle = _obstacle(metadata)
        if obstacle is not None:
            return obstacle
        history = None if self._reuse is None else self._reuse.history
        live = BitMap(self._snapshot.fragments_by_id)
        coverage = effective_coverage(metadata, live, history)
        coverage -= doubtful_coverage(metadata, live, history)
        if not coverage:
            return Unusable(_NO_COVERAGE)
        segment = self._usable(metadata, field_id)
        if isinstance(segment, Unusable):
            return segment
        if isinstance(segment, ZoneSegment):
            return self._covering_zones(metadata, segment, coverage)
        return CoveringSegment(metadata, coverage)

    def _usable(self, metadata: IndexMetadata, field_id: FieldId) -> ScalarSegment | Unusable:
        """Open a segment, or tell what keeps it from being used."""
        try:
            return self._open(metadata, field_id)
        except UnusableSegmentError as error:
            return Unusable(error.reason)
        except UnsupportedFeatureError as error:
            return Unusable(str(error))

    def _covering_zones(
        self, metadata: IndexMetadata, segment: ZoneSegment, coverage: BitMap
    ) -> CoveringSegment | Unusable:
        """Leave out fragments without zones: the manifest may name those that rows moved to."""
        if segment.may_lack_rows(self._num_rows()):
            return Unusable(MISPLACED)
        zoned = segment.zones.fragments
        coverage &= zoned if self._reuse is None else self._reuse.history.fold(zoned)
        return CoveringSegment(metadata, coverage) if coverage else Unusable(_NO_ZONES)

    def _open(self, metadata: IndexMetadata, field_id: FieldId) -> ScalarSegment:
        snapshot = self._snapshot
        field = snapshot.schema.by_id(field_id)
        return open_condition_segment(snapshot.index_place(metadata), metadata, self._cache, field)

    def _num_rows(self) -> Mapping[int, int]:
        """Return the rows of each fragment, those that deferred compactions rewrote included."""
        num_rows: dict[int, int] = {
            each.id: each.physical_rows for each in self._snapshot.fragments
        }
        if self._reuse is not None:
            num_rows |= rows_of_old_fragments(self._reuse)
        return num_rows


def _obstacle(metadata: IndexMetadata) -> Unusable | None:
    """Tell what keeps a segment from answering conditions, before it is opened."""
    kind = classify(metadata)
    if isinstance(kind, Unusable):
        return kind
    return None if kind.may_be_scalar else Unusable(f"a {kind} index answers no condition")


def _uncontested(segments: Sequence[CoveringSegment]) -> Iterator[CoveringSegment]:
    """Yield segments without the fragments that several of them claim.

    Which of them holds a row, and whether as it is now, is not told.
    """
    seen, contested = BitMap(), BitMap()
    for each in segments:
        contested |= seen & each.coverage
        seen |= each.coverage
    for each in segments:
        coverage = each.coverage - contested
        if coverage:
            yield CoveringSegment(each.metadata, coverage)


def _nbytes(indices: Sequence[ScalarIndex], skipped: Sequence[SkippedSegment]) -> int:
    segments = [each for index in indices for each in index.segments]
    coverage = sum(len(each.coverage.serialize()) for each in segments)
    return coverage + _KEPT_BYTES * (1 + len(indices) + len(segments) + len(skipped))


def _skipped(metadata: IndexMetadata, reason: str) -> SkippedSegment:
    return SkippedSegment(metadata.name, metadata.uuid, reason)


def _created(metadata: IndexMetadata) -> int:
    # Old writers did not record it, so a segment without a time is older than any with one.
    return 0 if metadata.created_at_ms is None else metadata.created_at_ms
