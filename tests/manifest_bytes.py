"""Builds manifest files byte by byte, so that tests need neither the oracle nor our own writer."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from lance_core.io.memory_store import MemoryStore
from lance_core.io.scheduler import RangeScheduler
from lance_core.proto import file_pb2, table_pb2
from lance_core.table.naming import NamingScheme, manifest_path

if TYPE_CHECKING:
    from collections.abc import Iterable

FOOTER_BYTES = 16


def int_field(field_id: int, name: str) -> file_pb2.Field:
    """Return a nullable top-level int64 field."""
    return file_pb2.Field(id=field_id, name=name, parent_id=-1, logical_type="int64", nullable=True)


def manifest_message(version: int = 1) -> table_pb2.Manifest:
    """Return the message of a small version: one column, one fragment of ten rows."""
    return table_pb2.Manifest(
        version=version,
        fields=[int_field(0, "id")],
        fragments=[fragment_message()],
        data_format=table_pb2.DataStorageFormat(file_format="lance", version="2.2"),
    )


def fragment_message(fragment_id: int = 0, physical_rows: int = 10) -> table_pb2.DataFragment:
    """Return a fragment with one data file that holds field 0."""
    return table_pb2.DataFragment(
        id=fragment_id,
        physical_rows=physical_rows,
        files=[
            table_pb2.DataFile(
                path=f"f{fragment_id}.lance",
                fields=[0],
                column_indices=[0],
                file_major_version=2,
                file_minor_version=2,
                file_size_bytes=100,
            )
        ],
    )


def manifest_file(
    message: table_pb2.Manifest,
    *,
    indices: Iterable[table_pb2.IndexMetadata] | None = None,
    transaction: bytes = b"",
) -> bytes:
    """Return the container: index section if any, transaction, manifest, footer."""
    body = b""
    message = _copy(message)
    if indices is not None:
        message.index_section = 0
        body += _section(table_pb2.IndexSection(indices=indices).SerializeToString())
    message.transaction_section = len(body)
    body += _section(transaction)
    position = len(body)
    body += _section(message.SerializeToString())
    return body + struct.pack("<qHH4s", position, 0, 2, b"LANC")


def scheduler_of(files: dict[str, bytes]) -> RangeScheduler:
    """Return a scheduler over a memory store that holds ``files``."""
    store = MemoryStore()
    for path, data in files.items():
        store.put(path, data)
    return RangeScheduler(store)


def dataset_of(*manifests: bytes, scheme: NamingScheme = NamingScheme.V2) -> RangeScheduler:
    """Return a scheduler over a dataset with versions 1, 2, ... and nothing but manifests."""
    return scheduler_of(
        {manifest_path(number, scheme): data for number, data in enumerate(manifests, 1)}
    )


def _section(data: bytes) -> bytes:
    return struct.pack("<I", len(data)) + data


def _copy(message: table_pb2.Manifest) -> table_pb2.Manifest:
    copy = table_pb2.Manifest()
    copy.CopyFrom(message)
    return copy
