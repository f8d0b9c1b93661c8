"""Writing deletion files."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_core.proto import table_pb2
from lance_core.row_set import bitmap_offsets
from lance_core.table.fragment import DeletionFileType
from lance_core.table.naming import deletion_file_path

if TYPE_CHECKING:
    from pyroaring import BitMap

    from lance_core.io.store import ObjectStore

_SMALLEST_BITMAP = 5000
"""Deleted rows from which on the reference writes a bitmap; it reads either at any number."""

_SCHEMA = pa.schema([pa.field("row_id", pa.uint32(), nullable=False)])
_FILE_TYPES = {
    DeletionFileType.ARROW_ARRAY: table_pb2.DeletionFile.ARROW_ARRAY,
    DeletionFileType.BITMAP: table_pb2.DeletionFile.BITMAP,
}


def write_deletion_file(
    store: ObjectStore, fragment_id: int, read_version: int, deleted: BitMap
) -> table_pb2.DeletionFile:
    """Write all deleted offsets of a fragment to a new file.

    Parameters
    ----------
    store
        Rooted at the dataset.
    fragment_id
        The fragment.
    read_version
        Version that the writer read; part of the file's name.
    deleted
        Every deleted offset, old and new, at least one and not all of the fragment's: a fragment
        without live rows leaves the manifest instead.

    Returns
    -------
    table_pb2.DeletionFile
        What the fragment says about the file.

    Notes
    -----
    Lance table format, section "Deletion files"; verified against pylance 14.0.2.
    """
    is_large = len(deleted) >= _SMALLEST_BITMAP
    file_type = DeletionFileType.BITMAP if is_large else DeletionFileType.ARROW_ARRAY
    file_id = secrets.randbits(64)
    path = deletion_file_path(fragment_id, read_version, file_id, file_type.value)
    store.put(path, _bitmap_bytes(deleted) if is_large else _arrow_bytes(deleted))
    return table_pb2.DeletionFile(
        file_type=_FILE_TYPES[file_type],
        read_version=read_version,
        id=file_id,
        num_deleted_rows=len(deleted),
    )


def _bitmap_bytes(deleted: BitMap) -> bytes:
    compact = deleted.copy()
    compact.run_optimize()
    data: bytes = compact.serialize()
    return data


def _arrow_bytes(deleted: BitMap) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, _SCHEMA) as file:
        offsets = pa.array(bitmap_offsets(deleted), pa.uint32())
        file.write_batch(pa.record_batch([offsets], schema=_SCHEMA))
    data: bytes = sink.getvalue().to_pybytes()
    return data
