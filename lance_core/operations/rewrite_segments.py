"""Making one segment of the rows of others, as their files hold them; nothing is committed.

With one segment, so an index follows compactions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyroaring import BitMap

from lance_core.cache.byte_cache import ByteCache
from lance_core.errors import InvalidRequestError
from lance_core.ids import FieldId
from lance_core.index.registry import IndexKind, Unusable, UnusableSegmentError, classify
from lance_core.index.scalar.open import open_scalar_segment
from lance_core.index.scalar.writers.merge import Routed, merge_scalar_segments
from lance_core.index.scalar.writers.segment_writer import segment_writer
from lance_core.index.segment_files import IndexDetails
from lance_core.index.vector.build.stored_model import stored_model
from lance_core.index.vector.segment import VectorSegment
from lance_core.operations.write_segment import MEMORY_BYTES, write_segment
from lance_core.operations.write_vector_segment import CodedSegment, write_vector_segment
from lance_core.schema.arrow import arrow_type
from lance_core.table.index_metadata import index_from_proto
from lance_core.table.index_upkeep import is_system

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance_core.index.segment_files import SegmentFiles
    from lance_core.operations.row_moves import RowMoves
    from lance_core.proto import table_pb2
    from lance_core.table.snapshot import Snapshot

_CACHE_BYTES = 32 << 20
"""Of segments that are read once, from front to back."""


def rewrite_segment(moves: RowMoves, segment: table_pb2.IndexMetadata) -> table_pb2.IndexMetadata:
    """Write a segment of any kind that has the rows of another one where they are now.

    Parameters and errors as `rewrite_scalar_segment`.
    """
    metadata = index_from_proto(segment, moves.snapshot.manifest.path)
    kind = classify(metadata)
    if isinstance(kind, Unusable):
        raise UnusableSegmentError(kind.reason)
    if kind is IndexKind.VECTOR:
        return rewrite_vector_segment(moves, segment)
    if kind is IndexKind.UNTOLD:
        column = arrow_type(moves.snapshot.schema.by_id(metadata.field_ids[0]))
        if pa.types.is_fixed_size_list(column):  # old writers knew no lists of vectors
            return rewrite_vector_segment(moves, segment)
    return rewrite_scalar_segment(moves, [segment])


def rewrite_scalar_segment(
    moves: RowMoves, segments: Sequence[table_pb2.IndexMetadata]
) -> table_pb2.IndexMetadata:
    """Write the files of a segment that has the rows of others where they are now.

    Rows that are gone are left out, as are those of fragments that a segment does not cover, which
    may have other values by now.

    Parameters
    ----------
    moves
        Where rows are.
    segments
        One or more of one index, of a kind that names rows one by one; the last one is the model.

    Returns
    -------
    table_pb2.IndexMetadata
        The new segment: as the last one, with files, name and coverage of its own, and the version
        of the oldest.

    Raises
    ------
    UnusableSegmentError
        The kind does not name rows, or files cannot be relied on: build the segment anew.
    InvalidRequestError
        The segments do not fit together.
    CorruptFileError
        What is read contradicts the format. No file is left.
    """
    snapshot, last = moves.snapshot, segments[-1]
    parts = _opened(moves, segments)
    covered = BitMap()
    for each in segments:
        covered |= moves.coverage(_stored_coverage(snapshot, each))

    def write(files: SegmentFiles) -> IndexDetails:
        merge_scalar_segments(parts, files)
        return _details(snapshot, segments, parts[-1])

    new = _in_place_of(last, write_segment(snapshot, last.name, last.fields[0], covered, write))
    new.dataset_version = min(each.dataset_version for each in segments)
    return new


def rewrite_vector_segment(
    moves: RowMoves, segment: table_pb2.IndexMetadata
) -> table_pb2.IndexMetadata:
    """Write a segment of a vector index that has the rows of another one where they are now.

    Codes stay as they are; graphs are built anew. Otherwise as `rewrite_scalar_segment`.
    """
    snapshot = moves.snapshot
    metadata = index_from_proto(segment, snapshot.manifest.path)
    stored = _stored_coverage(snapshot, segment)
    opened = VectorSegment.open(snapshot.index_place(metadata), metadata.uuid, metadata.files)
    written = write_vector_segment(
        snapshot,
        segment.name,
        segment.fields[0],
        moves.coverage(stored),
        stored_model(opened),
        asked=metadata.details,
        coded=[CodedSegment(opened, moves.route(stored, "row_id").follow)],
        memory_bytes=MEMORY_BYTES,
    )
    return _in_place_of(segment, written)


def _in_place_of(
    old: table_pb2.IndexMetadata, written: table_pb2.IndexMetadata
) -> table_pb2.IndexMetadata:
    """Return an entry for new files, in which what other writers put into the old one stays."""
    new = type(old)()
    new.CopyFrom(old)
    new.uuid.CopyFrom(written.uuid)
    new.fragment_bitmap = written.fragment_bitmap
    new.index_details.CopyFrom(written.index_details)
    new.index_version = written.index_version
    new.ClearField("base_id")
    del new.files[:]
    new.files.extend(written.files)
    return new


def _opened(moves: RowMoves, segments: Sequence[table_pb2.IndexMetadata]) -> list[Routed]:
    snapshot, cache = moves.snapshot, ByteCache(_CACHE_BYTES)
    parts: list[Routed] = []
    for entry in segments:
        metadata = index_from_proto(entry, snapshot.manifest.path)
        stored = metadata.fragment_bitmap
        if is_system(entry) or stored is None or len(metadata.field_ids) != 1:
            raise UnusableSegmentError("it is none of an index of one column with known coverage")
        field = snapshot.schema.by_id(metadata.field_ids[0])
        segment = open_scalar_segment(snapshot.index_place(metadata), metadata, cache, field)
        parts.append(Routed(segment, moves.route(stored, segment.names_rows_by)))
    ways = {each.segment.names_rows_by for each in parts}
    if len(ways) > 1 and snapshot.has_stable_row_ids:
        raise InvalidRequestError("segments that name rows by ids and by addresses cannot be one")
    return parts


def _stored_coverage(snapshot: Snapshot, entry: table_pb2.IndexMetadata) -> BitMap:
    return index_from_proto(entry, snapshot.manifest.path).fragment_bitmap or BitMap()


def _details(
    snapshot: Snapshot, segments: Sequence[table_pb2.IndexMetadata], last: Routed
) -> IndexDetails:
    """Return details as segments have them; where old writers left them out as they are today."""
    told = segments[-1].index_details
    version = min(each.index_version for each in segments)
    if told.type_url != "":
        return IndexDetails(told.type_url, told.value, version)
    column = snapshot.schema.by_id(FieldId(segments[-1].fields[0]))
    usual = segment_writer(
        last.segment.kind, arrow_type(column), {}, has_stable_row_ids=snapshot.has_stable_row_ids
    )
    return IndexDetails(usual.details.type_url, usual.details.value, version)
