"""The scalar indices of a version: which segments answer conditions on a column, and for what."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyroaring import BitMap

from lance_core.errors import UnsupportedFeatureError
from lance_core.ids import FieldId
from lance_core.index.coverage import effective_coverage
from lance_core.index.registry import IndexKind, Unusable, UnusableSegmentError, classify
from lance_core.index.scalar.open import open_scalar_segment
from lance_core.index.scalar.zone_segment import ZoneSegment
from lance_core.index.scalar.zones import MISPLACED
from lance_core.query.current_rows import rows_of_old_fragments
from lance_core.query.plan import SkippedSegment

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lance_core.expr.index_query import IndexLeaf, LeafQuery
    from lance_core.index.scalar.segment import ScalarSegment
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
    IndexKind.ZONEMAP: 2,
}
_CONTESTED = "other segments of the index claim the same fragments"
_NO_COVERAGE = "it covers no fragment of this version"


@dataclass(frozen=True, slots=True, eq=False)
class CoveringSegment:
    """A segment that can be asked, and the live fragments that it answers for."""

    index_name: str
    uuid: str
    segment: ScalarSegment
    coverage: BitMap


@dataclass(frozen=True, slots=True, eq=False)
class SegmentQuery:
    """What one segment is asked, and the fragments for which its answer counts."""

    source: CoveringSegment
    query: LeafQuery
    coverage: BitMap


@dataclass(frozen=True, slots=True, eq=False)
class ScalarIndex:
    """The segments of one name on one column; no fragment is covered by two of them."""

    name: str
    created_at_ms: int
    segments: tuple[CoveringSegment, ...]

    @property
    def coverage(self) -> BitMap:
        """Fragments that its segments cover."""
        return BitMap.union(BitMap(), *(each.coverage for each in self.segments))


class ScalarIndices:
    """Opens the scalar indices of one version, those of a column when it is first asked about.

    Parameters
    ----------
    session, snapshot
        Cache, and the version.
    reuse
        Deferred compactions that index files may not have followed, None where there were none.

    Attributes
    ----------
    skipped
        Segments on the columns asked about that cannot be used, and why.
    """

    def __init__(self, session: Session, snapshot: Snapshot, reuse: FragmentReuse | None) -> None:
        self.skipped: list[SkippedSegment] = []
        self._cache = session.cache
        self._snapshot = snapshot
        self._history = None if reuse is None else reuse.history
        self._old_rows = {} if reuse is None else rows_of_old_fragments(reuse)
        self._num_rows: dict[int, int] = {
            fragment.id: fragment.physical_rows for fragment in snapshot.fragments
        }
        if reuse is not None:
            self._num_rows |= rows_of_old_fragments(reuse)
        self._live = BitMap(snapshot.fragments_by_id)
        self._by_field: dict[FieldId, tuple[ScalarIndex, ...]] = {}

    def queries(self, leaf: IndexLeaf) -> list[SegmentQuery]:
        """Return what to ask which segments, so that every fragment is answered for once at most.

        Each index answers the first query that its segments support. Among several indices those
        that answer exactly come first, then those of the better coverage, then the first created.

        Raises
        ------
        CorruptFileError
            A segment's header is damaged or missing.
        """
        candidates = [
            (place, _PREFERENCE[each.segment.kind], index, each, query)
            for index in self._on_field(leaf)
            for each in index.segments
            for place, query in enumerate(leaf.queries)
            if each.segment.supports(query)
            and not any(each.segment.supports(other) for other in leaf.queries[:place])
        ]
        candidates.sort(
            key=lambda c: (c[1], c[0], -len(c[2].coverage), c[2].created_at_ms, c[2].name)
        )
        queries, taken = [], BitMap()
        for _, _, _, source, query in candidates:
            left = source.coverage - taken
            if left:
                queries.append(SegmentQuery(source, query, left))
                taken |= left
        return queries

    def _on_field(self, leaf: IndexLeaf) -> tuple[ScalarIndex, ...]:
        field_id = FieldId(leaf.field_id)
        known = self._by_field.get(field_id)
        if known is None:
            known = self._by_field[field_id] = tuple(self._indices(field_id))
        return known

    def _indices(self, field_id: FieldId) -> Iterator[ScalarIndex]:
        by_name: dict[str, list[tuple[IndexMetadata, CoveringSegment]]] = {}
        for metadata in self._snapshot.indices:
            if field_id not in metadata.field_ids or metadata.is_system:
                continue
            found = self._open(metadata, field_id)
            if isinstance(found, Unusable):
                self._skip(metadata, found.reason)
            else:
                by_name.setdefault(metadata.name, []).append((metadata, found))
        for name, own in by_name.items():
            created = min(_created(metadata) for metadata, _ in own)
            yield ScalarIndex(name, created, tuple(self._uncontested(own)))

    def _open(self, metadata: IndexMetadata, field_id: FieldId) -> CoveringSegment | Unusable:
        kind = classify(metadata)
        if isinstance(kind, Unusable):
            return kind
        if not kind.may_be_scalar:
            return Unusable(f"a {kind} index answers no condition")
        coverage = effective_coverage(metadata, self._live, self._history)
        if not coverage:
            return Unusable(_NO_COVERAGE)
        segment = self._segment(metadata, field_id)
        if isinstance(segment, Unusable):
            return segment
        return CoveringSegment(metadata.name, metadata.uuid, segment, coverage)

    def _segment(self, metadata: IndexMetadata, field_id: FieldId) -> ScalarSegment | Unusable:
        field = self._snapshot.schema.by_id(field_id)
        try:
            folder = self._snapshot.index_place(metadata)
            segment = open_scalar_segment(folder, metadata, self._cache, field)
        except UnusableSegmentError as error:
            return Unusable(error.reason)
        except UnsupportedFeatureError as error:
            return Unusable(str(error))
        if isinstance(segment, ZoneSegment) and segment.may_lack_rows(self._num_rows):
            return Unusable(MISPLACED)
        return segment

    def _uncontested(
        self, segments: Sequence[tuple[IndexMetadata, CoveringSegment]]
    ) -> Iterator[CoveringSegment]:
        """Yield segments without the fragments that several of them claim.

        Which of them holds a row, and whether as it is now, is not told.
        """
        seen, contested = BitMap(), BitMap()
        for _, segment in segments:
            contested |= seen & segment.coverage
            seen |= segment.coverage
        for metadata, segment in segments:
            coverage = segment.coverage - contested
            if coverage:
                yield replace(segment, coverage=coverage)
            else:
                self._skip(metadata, _CONTESTED)

    def _skip(self, metadata: IndexMetadata, reason: str) -> None:
        self.skipped.append(SkippedSegment(metadata.name, metadata.uuid, reason))


def _created(metadata: IndexMetadata) -> int:
    # Old writers did not record it, so a segment without a time is older than any with one.
    return 0 if metadata.created_at_ms is None else metadata.created_at_ms
