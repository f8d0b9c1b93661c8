"""Damaged table files give errors of our own tree, whatever the damage."""

from __future__ import annotations

import contextlib

import pyarrow as pa
from hypothesis import given, strategies as st
from pyroaring import BitMap

from lance_core.errors import LanceError
from lance_core.ids import FragmentId
from lance_core.proto import table_pb2
from lance_core.table.deletion import read_deleted_offsets
from lance_core.table.fragment import DeletionFile, DeletionFileType, Fragment
from lance_core.table.snapshot import open_snapshot
from tests.manifest_bytes import (
    dataset_of,
    fragment_message,
    manifest_file,
    manifest_message,
    scheduler_of,
)


def _whole_manifest() -> bytes:
    message = manifest_message()
    message.fragments.append(fragment_message(1))
    message.fragments[0].deletion_file.CopyFrom(
        table_pb2.DeletionFile(read_version=1, id=5, num_deleted_rows=2)
    )
    message.timestamp.seconds = 1_800_000_000
    index = table_pb2.IndexMetadata(
        uuid=table_pb2.UUID(uuid=bytes(16)), name="ix", fragment_bitmap=BitMap([0, 1]).serialize()
    )
    return manifest_file(message, indices=[index], transaction=b"transaction")


MANIFEST = _whole_manifest()


def _deletion_files() -> dict[DeletionFileType, bytes]:
    sink = pa.BufferOutputStream()
    table = pa.table({"row_id": pa.array(range(50), pa.uint32())})
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return {
        DeletionFileType.ARROW_ARRAY: sink.getvalue().to_pybytes(),
        DeletionFileType.BITMAP: BitMap(range(50)).serialize(),
    }


DELETIONS = _deletion_files()


@st.composite
def damaged(draw: st.DrawFn, data: bytes) -> bytes:
    """Draw ``data`` with some bytes changed, and perhaps cut."""
    changed = bytearray(data)
    for _ in range(draw(st.integers(0, 4))):
        changed[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(changed[: draw(st.integers(0, len(data)) | st.just(len(data)))])


@given(damaged(MANIFEST))
def test_a_damaged_manifest_is_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(LanceError):
        snapshot = open_snapshot(dataset_of(data))
        _ = snapshot.schema, snapshot.fragments, snapshot.indices, snapshot.manifest.timestamp


@given(st.data(), st.sampled_from(DeletionFileType))
def test_a_damaged_deletion_file_is_read_or_refused(
    data: st.DataObject, kind: DeletionFileType
) -> None:
    fragment = Fragment(FragmentId(0), 100, (), DeletionFile(kind, 0, 0, 50, None))
    spoiled = data.draw(damaged(DELETIONS[kind]))
    scheduler = scheduler_of({f"_deletions/0-0-0.{kind.value}": spoiled})
    with contextlib.suppress(LanceError):
        assert len(read_deleted_offsets(scheduler, fragment)) == 50
