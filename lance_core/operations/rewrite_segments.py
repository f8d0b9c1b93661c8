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
from lance_core.index.vector.build.same_model import same_model
from lance_core.index.vector.build.stored_model import stored_model
from lance_core.index.vector.segment import VectorSegment
from lance_core.operations.followed_segment import SEGMENT_CACHE_BYTES, followed_segment
from lance_core.operations.write_segment import MEMORY_BYTES, write_segment
from lance_core.operations.write_text_segment import stored_texts, write_text_segment
from lance_core.operations.write_vector_segment import CodedSegment, write_vector_segment
from lance_core.schema.arrow import arrow_type
from lance_core.table.index_metadata import index_from_proto

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance_core.index.segment_files import SegmentFiles
    from lance_core.index.vector.build.model import VectorModel
    from lance_core.operations.row_moves import RowMoves
    from lance_core.proto import table_pb2
    from lance_core.table.snapshot import Snapshot


def rewrite_segments(
    moves: RowMoves,
    segments: Sequence[table_pb2.IndexMetadata],
    memory_bytes: int = MEMORY_BYTES,
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
    memory_bytes
        About how much memory vectors may take; what does not fit is put on disk meanwhile.

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
    kind = classify(index_from_proto(segments[-1], moves.snapshot.manifest.path))
    if isinstance(kind, Unusable):
        raise UnusableSegmentError(kind.reason)
    last = segments[-1]
    covered = BitMap()
    for each in segments:
        covered |= moves.coverage(_stored_coverage(moves.snapshot, each))
    if kind is IndexKind.INVERTED:
        written = _rewritten_texts(moves, segments, covered, memory_bytes)
    elif kind is IndexKind.VECTOR or (kind is IndexKind.UNTOLD and _holds_vectors(moves, last)):
        written = _rewritten_vectors(moves, segments, covered, memory_bytes)
    else:
        written = _rewritten_scalars(moves, segments, covered)
    new = _in_place_of(last, written)
    new.dataset_version = min(each.dataset_version for each in segments)
    return new


def _holds_vectors(moves: RowMoves, segment: table_pb2.IndexMetadata) -> bool:
    column = arrow_type(moves.snapshot.schema.by_id(FieldId(segment.fields[0])))
    return bool(pa.types.is_fixed_size_list(column))  # old writers knew no lists of vectors


def _rewritten_scalars(
    moves: RowMoves, segments: Sequence[table_pb2.IndexMetadata], covered: BitMap
) -> table_pb2.IndexMetadata:
    snapshot, last = moves.snapshot, segments[-1]
    parts = _opened(moves, segments)

    def write(files: SegmentFiles) -> IndexDetails:
        merge_scalar_segments(parts, files)
        return _details(snapshot, segments, parts[-1])

    return write_segment(snapshot, last.name, last.fields[0], covered, write)


def _rewritten_vectors(
    moves: RowMoves,
    segments: Sequence[table_pb2.IndexMetadata],
    covered: BitMap,
    memory_bytes: int,
) -> table_pb2.IndexMetadata:
    """Write the coded rows of segments of one model; graphs are built anew."""
    snapshot, last = moves.snapshot, segments[-1]
    coded: list[CodedSegment] = []
    models: list[VectorModel] = []
    for each in segments:
        metadata = index_from_proto(each, snapshot.manifest.path)
        opened = VectorSegment.open(snapshot.index_place(metadata), metadata.uuid, metadata.files)
        route = moves.route(_stored_coverage(snapshot, each), "row_id")
        coded.append(CodedSegment(opened, route.follow))
        models.append(stored_model(opened))
    if not all(same_model(each, models[-1]) for each in models):
        raise InvalidRequestError(
            f"segments of index {last.name!r} have several models; build them by one that"
            " train_model returns, or let optimize_indices code their rows anew"
        )
    return write_vector_segment(
        snapshot,
        last.name,
        last.fields[0],
        covered,
        models[-1],
        asked=last.index_details.value,
        coded=coded,
        memory_bytes=memory_bytes,
    )


def _rewritten_texts(
    moves: RowMoves,
    segments: Sequence[table_pb2.IndexMetadata],
    covered: BitMap,
    memory_bytes: int,
) -> table_pb2.IndexMetadata:
    last = segments[-1]
    stored = [stored_texts(moves, each) for each in segments]
    return write_text_segment(
        moves.snapshot, last.name, last.fields[0], covered, stored, memory_bytes=memory_bytes
    )


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
    snapshot, cache = moves.snapshot, ByteCache(SEGMENT_CACHE_BYTES)
    parts: list[Routed] = []
    for entry in segments:
        metadata, stored = followed_segment(moves, entry)
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
