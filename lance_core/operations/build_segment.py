"""Building a segment of a scalar index; nothing is committed."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from google.protobuf import any_pb2
from pyroaring import BitMap

from lance_core.errors import InvalidRequestError
from lance_core.ids import FragmentId
from lance_core.index.scalar.writers.indexed_rows import IndexedRows
from lance_core.index.scalar.writers.segment_writer import scalar_kind, segment_writer
from lance_core.index.segment_files import SegmentFiles
from lance_core.operations.append import file_version_of
from lance_core.operations.progress import no_progress
from lance_core.proto import table_pb2
from lance_core.scan.projection import (
    OWN_ADDRESS,
    ProjectedColumn,
    Projection,
    PseudoColumn,
    resolve_projection,
)
from lance_core.scan.rows import scan_rows
from lance_core.table.index_metadata import SYSTEM_PREFIX
from lance_core.table.index_upkeep import coverage_bytes
from lance_core.table.naming import INDICES_FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from lance_core.index.scalar.writers.segment_writer import SegmentWriter
    from lance_core.io.store import ObjectStore
    from lance_core.operations.progress import Progress
    from lance_core.table.files import TableFiles
    from lance_core.table.snapshot import Snapshot

MEMORY_BYTES = 256 << 20
"""About the memory that building a segment takes unless it is told otherwise."""

_NS_PER_MS = 1_000_000


@dataclass(frozen=True, slots=True)
class ScalarIndex:
    """A scalar index that is to be made.

    Parameters
    ----------
    name
        Name of the logical index.
    column
        The column, or the part of a struct.
    index_type
        ``BTREE``, ``BITMAP``, ``LABEL_LIST``, ``NGRAM``, ``ZONEMAP`` or ``BLOOMFILTER``.
    parameters
        As `segment_writer` takes them.
    """

    name: str
    column: str
    index_type: str
    parameters: Mapping[str, object] = field(default_factory=dict)


def build_segment(
    files: TableFiles,
    snapshot: Snapshot,
    index: ScalarIndex,
    fragment_ids: Iterable[int] | None = None,
    *,
    memory_bytes: int = MEMORY_BYTES,
    progress: Progress = no_progress,
) -> table_pb2.IndexMetadata:
    """Write the files of a segment over some fragments, for `commit_segments` to commit.

    Any number of segments may be built at the same time, on any machine that opens the version.

    Parameters
    ----------
    files
        Opened files.
    snapshot
        The version whose rows are read.
    index
        What to build.
    fragment_ids
        Fragments to cover; None = all.
    memory_bytes
        About how much memory sorting may take; what does not fit is put on disk meanwhile.
    progress
        Called with how many rows were read, and of how many.

    Returns
    -------
    table_pb2.IndexMetadata
        The segment as a manifest describes it; can be pickled. Its files are named by no version
        until it is committed.

    Raises
    ------
    InvalidRequestError
        The name is reserved, there is no such fragment, or the index does not take the column or
        a parameter.
    UnknownColumnError
        There is no such column.
    CorruptFileError, UnsupportedFeatureError
        Rows cannot be read. No file is left.
    """
    writer = writer_of(snapshot, index)
    covered = _checked_fragments(snapshot, fragment_ids)
    rows = _rows(files, snapshot, _projection(snapshot, index.column, writer), covered, progress)
    segment_uuid = uuid.uuid4()
    store, folder = snapshot.scheduler.store, f"{INDICES_FOLDER}/{segment_uuid}"
    out = SegmentFiles(store, folder, file_version_of(snapshot))
    try:
        writer.write(rows, out, memory_bytes)
    except BaseException:
        discard_folder(store, folder)
        raise
    details = writer.details
    return table_pb2.IndexMetadata(
        uuid=table_pb2.UUID(uuid=segment_uuid.bytes),
        fields=[snapshot.schema.field(index.column).id],
        name=index.name,
        dataset_version=snapshot.version,
        fragment_bitmap=coverage_bytes(covered),
        index_details=any_pb2.Any(type_url=details.type_url, value=details.value),
        index_version=details.index_version,
        created_at=time.time_ns() // _NS_PER_MS,
        files=[table_pb2.IndexFile(path=f.path, size_bytes=f.size) for f in out.finished],
    )


def writer_of(snapshot: Snapshot, index: ScalarIndex) -> SegmentWriter:
    """Return what writes segments of an index; errors as `build_segment`, reads nothing."""
    if index.name == "" or index.name.startswith(SYSTEM_PREFIX):
        raise InvalidRequestError(f"{index.name!r} is no name for an index; take another one")
    (column,) = resolve_projection(snapshot.schema, [index.column]).columns
    if isinstance(column.source, PseudoColumn):
        raise InvalidRequestError(f'column "{index.column}" is stored nowhere; take another one')
    return segment_writer(
        scalar_kind(index.index_type),
        column.arrow_field.type,
        index.parameters,
        has_stable_row_ids=snapshot.has_stable_row_ids,
    )


def discard_segment(store: ObjectStore, segment: table_pb2.IndexMetadata) -> None:
    """Delete the files of a segment that no version names."""
    discard_folder(store, f"{INDICES_FOLDER}/{uuid.UUID(bytes=segment.uuid.uuid)}")


def discard_folder(store: ObjectStore, folder: str) -> None:
    """Delete everything below a folder."""
    for each in list(store.list_tree(folder)):
        store.delete(each.path)


def _checked_fragments(snapshot: Snapshot, fragment_ids: Iterable[int] | None) -> BitMap:
    present = BitMap(snapshot.fragments_by_id)
    if fragment_ids is None:
        return present
    wanted = set(fragment_ids)
    missing = sorted(wanted - set(present))
    if len(missing) > 0:
        raise InvalidRequestError(f"version {snapshot.version} has no fragments {missing}")
    return BitMap(wanted)


def _projection(snapshot: Snapshot, column: str, writer: SegmentWriter) -> Projection:
    (values,) = resolve_projection(snapshot.schema, [column]).columns
    is_address = writer.names_rows_by == "address"
    name = PseudoColumn.ROW_ADDRESS if is_address else PseudoColumn.ROW_ID
    return Projection((values, ProjectedColumn(OWN_ADDRESS, name)))


def _rows(
    files: TableFiles,
    snapshot: Snapshot,
    projection: Projection,
    covered: BitMap,
    progress: Progress,
) -> Iterator[IndexedRows]:
    live = (
        files.num_live_rows(snapshot, each) for each in snapshot.fragments if each.id in covered
    )
    done, total = 0, sum(live)
    fragment_ids = frozenset(FragmentId(each) for each in covered)
    progress(0, total)
    for batch in scan_rows(files, snapshot, projection, fragment_ids=fragment_ids):
        values, names = batch.columns
        yield IndexedRows(values, names.to_numpy())
        done += batch.num_rows
        progress(done, total)
