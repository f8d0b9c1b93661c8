"""Describing the indices of a version: all segments are opened, as far as they can be."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pyroaring import BitMap

from lance_core.errors import (
    CorruptFileError,
    IndexNotFoundError,
    UnsupportedFeatureError,
)
from lance_core.index.coverage import effective_coverage
from lance_core.index.registry import IndexKind, Unusable, UnusableSegmentError, classify
from lance_core.index.scalar.open import open_scalar_segment
from lance_core.index.vector.build.stored_parameters import stored_parameters
from lance_core.query.index_statistics import (
    UNKNOWN_TYPE,
    IndexStatistics,
    PartitionSizes,
    SegmentStatistics,
    TextSizes,
)
from lance_core.query.scalar_indices import ScalarIndices
from lance_core.query.segments import describe_segments
from lance_core.query.text_segments import describe_text_segments, open_text_segment_of
from lance_core.scan.vector_type import vector_type
from lance_core.table.frag_reuse import load_frag_reuse
from lance_core.table.reuse_of_version import reuse_of
from lance_core.table.reuse_trim import trimmed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from lance_core.ids import FieldId
    from lance_core.index.text.segment import TextSegment
    from lance_core.index.vector.segment import VectorSegment
    from lance_core.proto import table_pb2
    from lance_core.query.segments import OpenedSegment
    from lance_core.query.session import Session
    from lance_core.schema.field import LanceField
    from lance_core.table.index_metadata import IndexMetadata
    from lance_core.table.snapshot import Snapshot

    _Entry = tuple[IndexMetadata, table_pb2.IndexMetadata]
    """A segment as a value, and as the manifest has it."""

_DAMAGED = "a file of it is damaged or missing"
_NO_COLUMN = "its column is gone"


def indices_of(session: Session, snapshot: Snapshot) -> tuple[IndexStatistics, ...]:
    """Describe all indices of a version, in the order of the manifest; those of the table not.

    Opens every segment that covers something, which reads what every query needs of it, and no
    rows. Segments that cannot be opened are described by what the manifest says.

    Raises
    ------
    CorruptFileError, UnsupportedFeatureError
        The Fragment Reuse Index, or a deletion file of an old writer, cannot be read.
    """
    describer = _Describer(session, snapshot)
    return tuple(_index(describer, entries) for entries in _entries(snapshot).values())


def index_of_name(session: Session, snapshot: Snapshot, name: str) -> IndexStatistics:
    """Describe one index; as `indices_of`, or ``IndexNotFoundError``, which tells those there."""
    segments_named(snapshot, name)
    return _index(_Describer(session, snapshot), _entries(snapshot)[name])


def segments_named(snapshot: Snapshot, name: str) -> list[IndexMetadata]:
    """Return the segments of an index; ``IndexNotFoundError``, which tells the names there are."""
    known = [each for each in snapshot.indices if not each.is_system]
    found = [each for each in known if each.name == str(name)]  # an array would equal its items
    if not found:
        raise no_such_index(snapshot, name)
    return found


def no_such_index(snapshot: Snapshot, name: str) -> IndexNotFoundError:
    """Return an error that tells the names of the indices that there are."""
    names = ", ".join(sorted({each.name for each in snapshot.indices if not each.is_system}))
    return IndexNotFoundError(
        f'version {snapshot.version} has no index "{name}"; '
        + (f"there are: {names}" if names else "it has none at all")
    )


def _entries(snapshot: Snapshot) -> dict[str, list[_Entry]]:
    """Return the segments of each index, the oldest first."""
    by_name: dict[str, list[_Entry]] = {}
    messages = snapshot.manifest.index_section.indices
    for metadata, message in zip(snapshot.indices, messages, strict=True):
        if not metadata.is_system:
            by_name.setdefault(metadata.name, []).append((metadata, message))
    return by_name


def _index(describer: _Describer, found: Sequence[_Entry]) -> IndexStatistics:
    newest, newest_entry = found[-1]
    segments = tuple(describer.segment(metadata) for metadata, _ in found)
    # What is used tells best; what is not may still know what it is.
    told = [each for each in segments if each.unused is None] + list(segments)
    types = [each.index_type for each in told if each.index_type != UNKNOWN_TYPE]
    covered = BitMap.union(BitMap(), *(BitMap(each.covered) for each in segments))
    created = [each.created_at_ms for each, _ in found if each.created_at_ms is not None]
    return IndexStatistics(
        newest.name,
        tuple(describer.path_of(each) for each in newest.field_ids),
        describer.has_fields(newest.field_ids),
        types[0] if types else UNKNOWN_TYPE,
        next((each.metric for each in told if each.metric is not None), None),
        newest_entry.index_details.type_url,
        newest.index_version,
        min(created, default=None),
        describer.num_rows(covered),
        describer.num_rows(describer.live - covered),
        segments,
    )


class _Describer:
    """Describes segments of one version; belongs to one thread."""

    def __init__(self, session: Session, snapshot: Snapshot) -> None:
        self._session = session
        self._snapshot = snapshot
        self._history = reuse_of(snapshot.scheduler, snapshot.manifest)
        self.live = BitMap(snapshot.fragments_by_id)
        self._known = {each.id for each in snapshot.schema.walk()}
        self._vectors: dict[FieldId, Mapping[str, OpenedSegment]] = {}

    @cached_property
    def _live_rows(self) -> Mapping[int, int]:
        files, snapshot = self._session.files, self._snapshot
        return {each.id: files.num_live_rows(snapshot, each) for each in snapshot.fragments}

    @cached_property
    def _scalars(self) -> ScalarIndices:
        reuse = load_frag_reuse(self._session.cache, self._snapshot)
        return ScalarIndices(self._session, self._snapshot, reuse)

    def num_rows(self, fragments: Iterable[int]) -> int:
        """Return the live rows of fragments."""
        return sum(self._live_rows[each] for each in fragments)

    def has_fields(self, field_ids: Iterable[FieldId]) -> bool:
        """Tell whether the schema has columns."""
        return self._known >= set(field_ids)

    def path_of(self, field_id: FieldId) -> str:
        """Return the path of a column, or what stands for one that is gone."""
        if field_id not in self._known:
            return f"field {field_id}"
        return self._snapshot.schema.path_of(field_id)

    def segment(self, metadata: IndexMetadata) -> SegmentStatistics:
        """Describe a segment."""
        opened = self._opened(metadata)
        return SegmentStatistics(
            uuid=metadata.uuid,
            index_type=opened.index_type,
            metric=opened.metric,
            dataset_version=metadata.dataset_version,
            num_bytes=sum(file.size for file in metadata.files),
            covered=tuple(effective_coverage(metadata, self.live, self._history)),
            partitions=opened.partitions,
            num_compactions_behind=len(trimmed(self._history, [metadata]).versions),
            unused=opened.unused,
            text=opened.text,
        )

    def _opened(self, metadata: IndexMetadata) -> _Opened:
        kind = classify(metadata)
        if isinstance(kind, Unusable):
            return _Opened(_type_in_manifest(metadata), unused=kind.reason)
        if not self.has_fields(metadata.field_ids):
            return _Opened(_type_in_manifest(metadata), unused=_NO_COLUMN)
        field = self._snapshot.schema.by_id(metadata.field_ids[0])
        is_vector = kind is IndexKind.UNTOLD and vector_type(field) is not None
        if kind is IndexKind.VECTOR or is_vector:
            return self._opened_vector(metadata, field)
        if kind is IndexKind.INVERTED:
            return self._opened_text(metadata, field)
        return self._opened_scalar(metadata, field)

    def _opened_vector(self, metadata: IndexMetadata, field: LanceField) -> _Opened:
        if field.id not in self._vectors:
            described = describe_segments(self._session, self._snapshot, field, self.live)
            self._vectors[field.id] = {each.description.uuid: each for each in described}
        found = self._vectors[field.id][metadata.uuid]
        seen = found.description
        metric = seen.metric if seen.metric != "" else None
        if found.segment is None:
            return _Opened(_type_in_manifest(metadata), metric, None, seen.reason)
        return _Opened(seen.kind, metric, _sizes(found.segment))

    def _opened_scalar(self, metadata: IndexMetadata, field: LanceField) -> _Opened:
        place = self._snapshot.index_place(metadata)
        try:
            segment = open_scalar_segment(place, metadata, self._session.cache, field)
        except (UnusableSegmentError, UnsupportedFeatureError) as error:
            return _Opened(_type_in_manifest(metadata), unused=str(error))
        except CorruptFileError:
            return _Opened(_type_in_manifest(metadata), unused=_DAMAGED)
        return _Opened(str(segment.kind), unused=self._why_skipped(metadata, field))

    def _opened_text(self, metadata: IndexMetadata, field: LanceField) -> _Opened:
        try:
            segment = open_text_segment_of(self._session, self._snapshot, metadata)
        except (UnusableSegmentError, UnsupportedFeatureError) as error:
            return _Opened(_type_in_manifest(metadata), unused=str(error))
        except CorruptFileError:
            return _Opened(_type_in_manifest(metadata), unused=_DAMAGED)
        reason = self._why_unsearched(metadata, field)
        return _Opened(_type_in_manifest(metadata), text=_text_sizes(segment), unused=reason)

    def _why_unsearched(self, metadata: IndexMetadata, field: LanceField) -> str | None:
        try:
            found = describe_text_segments(self._session, self._snapshot, field, self.live)
        except CorruptFileError:  # of another segment on the column, which says so itself
            return None
        of_uuid = (
            each.description.reason for each in found if each.description.uuid == metadata.uuid
        )
        return next(of_uuid)

    def _why_skipped(self, metadata: IndexMetadata, field: LanceField) -> str | None:
        try:
            skipped = self._scalars.skipped([field.id])
        except CorruptFileError:  # of another segment on the column, which says so itself
            return None
        except UnsupportedFeatureError as error:  # nobody can tell where the rows are
            return str(error)
        return next((each.reason for each in skipped if each.uuid == metadata.uuid), None)


@dataclass(frozen=True, slots=True)
class _Opened:
    """What is known of a segment once it was tried to open it."""

    index_type: str
    metric: str | None = None
    partitions: PartitionSizes | None = None
    unused: str | None = None
    text: TextSizes | None = None


def _text_sizes(segment: TextSegment) -> TextSizes:
    return TextSizes(
        len(segment.partitions),
        segment.num_docs,
        sum(each.num_tokens for each in segment.partitions),
        segment.has_positions,
        any(each.documents.has_elements for each in segment.partitions),
        segment.parameters,
    )


def _sizes(segment: VectorSegment) -> PartitionSizes:
    lengths = segment.lengths
    return PartitionSizes(
        len(lengths), int((lengths == 0).sum()), segment.num_rows, int(lengths.max(initial=0))
    )


def _type_in_manifest(metadata: IndexMetadata) -> str:
    kind = classify(metadata)
    if isinstance(kind, IndexKind) and kind not in {IndexKind.VECTOR, IndexKind.UNTOLD}:
        return str(kind)
    name = metadata.type_name.removesuffix("IndexDetails")
    if name != "Vector":
        return name.upper() if name != "" else UNKNOWN_TYPE
    try:
        return stored_parameters(metadata.details)[0]
    except UnusableSegmentError:
        return UNKNOWN_TYPE
