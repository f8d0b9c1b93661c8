"""Writing the files of a segment, and describing it as a manifest does; nothing is committed."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING

from google.protobuf import any_pb2

from lance_core.index.segment_files import SegmentFiles
from lance_core.io.store import KeepsFolders
from lance_core.operations.append import file_version_of
from lance_core.proto import table_pb2
from lance_core.table.index_upkeep import coverage_bytes
from lance_core.table.naming import INDICES_FOLDER

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyroaring import BitMap

    from lance_core.index.segment_files import IndexDetails
    from lance_core.io.store import ObjectStore
    from lance_core.table.snapshot import Snapshot

MEMORY_BYTES = 256 << 20
"""About the memory that making a segment takes unless it is told otherwise."""

_NS_PER_MS = 1_000_000


def write_segment(
    snapshot: Snapshot,
    name: str,
    field_id: int,
    covered: BitMap,
    write: Callable[[SegmentFiles], IndexDetails],
) -> table_pb2.IndexMetadata:
    """Write a segment into a folder of its own.

    Parameters
    ----------
    snapshot
        The version whose rows it has.
    name
        The index.
    field_id
        The field that it is on.
    covered
        Fragments that it covers.
    write
        Writes the files, or none, and says what the manifest is to tell of them.

    Returns
    -------
    table_pb2.IndexMetadata
        The segment as a manifest describes it; can be pickled. Its files are named by no version
        until it is committed.

    Raises
    ------
    LanceError
        What ``write`` raises; no file is left.
    """
    segment_uuid = uuid.uuid4()
    store, folder = snapshot.scheduler.store, f"{INDICES_FOLDER}/{segment_uuid}"
    out = SegmentFiles(store, folder, file_version_of(snapshot))
    try:
        details = write(out)
    except BaseException:
        discard_folder(store, folder)
        raise
    return table_pb2.IndexMetadata(
        uuid=table_pb2.UUID(uuid=segment_uuid.bytes),
        fields=[field_id],
        name=name,
        dataset_version=snapshot.version,
        fragment_bitmap=coverage_bytes(covered),
        index_details=any_pb2.Any(type_url=details.type_url, value=details.value),
        index_version=details.index_version,
        created_at=time.time_ns() // _NS_PER_MS,
        files=[table_pb2.IndexFile(path=f.path, size_bytes=f.size) for f in out.finished],
    )


def discard_segment(store: ObjectStore, segment: table_pb2.IndexMetadata) -> None:
    """Delete the files of a segment that no version names."""
    discard_folder(store, f"{INDICES_FOLDER}/{uuid.UUID(bytes=segment.uuid.uuid)}")


def discard_folder(store: ObjectStore, folder: str) -> None:
    """Delete a folder and everything below it."""
    for each in list(store.list_tree(folder)):
        store.delete(each.path)
    if isinstance(store, KeepsFolders):
        store.remove_folder(folder)
