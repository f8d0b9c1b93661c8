"""Datasets that tests change by transactions of ours: fragments, fields and deletions for them."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from pyroaring import BitMap

from lance_core.io.mapped_store import MappedStore
from lance_core.io.scheduler import RangeScheduler
from lance_core.proto import table_pb2
from lance_core.schema.from_arrow import schema_from_arrow
from lance_core.schema.to_proto import field_messages
from lance_core.table.commit import commit
from lance_core.table.deletion import read_deleted_offsets
from lance_core.table.deletion_writer import write_deletion_file
from lance_core.table.naming import data_file_path
from lance_core.table.next_version import NewDataset
from lance_core.table.snapshot import Snapshot, open_snapshot
from lance_core.table.transaction import Append, Delete, Operation, Overwrite, Transaction
from tests.written_files import write_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    import pyarrow as pa

    from lance_core.io.store import ObjectStore
    from lance_core.schema.tree import LanceSchema

Fragment = table_pb2.DataFragment


def opened(root: Path | str, version: int | None = None) -> Snapshot:
    """Open a local dataset."""
    return open_snapshot(RangeScheduler(MappedStore(str(root))), version)


def new_fragment(
    store: ObjectStore, table: pa.Table, schema: LanceSchema | None = None, version: str = "2.2"
) -> Fragment:
    """Write a table to a data file, and return the fragment of it."""
    tree = schema_from_arrow(table.schema) if schema is None else schema
    return Fragment(files=[new_file(store, table, tree, version)], physical_rows=table.num_rows)


def new_file(
    store: ObjectStore, table: pa.Table, schema: LanceSchema, version: str = "2.2"
) -> table_pb2.DataFile:
    """Write a table to a data file; the ids of the schema's fields are kept."""
    name = f"{uuid.uuid4()}.lance"
    written = write_table(store, data_file_path(name), table, version, schema=schema)
    major, minor = map(int, version.split("."))
    return table_pb2.DataFile(
        path=name,
        fields=list(written.column_indices),
        column_indices=list(written.column_indices.values()),
        file_major_version=major,
        file_minor_version=minor,
        file_size_bytes=written.size,
    )


def create(root: Path | str, *tables: pa.Table, new: NewDataset | None = None) -> Snapshot:
    """Make a dataset of one fragment per table."""
    store = MappedStore(str(root))
    new = NewDataset() if new is None else new
    operation = Overwrite(
        tuple(new_fragment(store, table, version=new.file_version) for table in tables),
        tuple(field_messages(schema_from_arrow(tables[0].schema))),
    )
    return commit(RangeScheduler(store), Transaction(0, operation), new=new)


def apply(snapshot: Snapshot, operation: Operation) -> Snapshot:
    """Commit an operation that was computed from a version."""
    return commit(snapshot.scheduler, Transaction(snapshot.version, operation))


def append(snapshot: Snapshot, *tables: pa.Table) -> Snapshot:
    """Commit one new fragment per table."""
    store, version = snapshot.scheduler.store, snapshot.manifest.message.data_format.version
    fragments = [new_fragment(store, table, snapshot.schema, version) for table in tables]
    return apply(snapshot, Append(tuple(fragments)))


def delete(snapshot: Snapshot, rows: Mapping[int, Iterable[int]]) -> Snapshot:
    """Commit the deletion of rows, given as offsets by fragment."""
    return apply(snapshot, deletion(snapshot, rows))


def deletion(snapshot: Snapshot, rows: Mapping[int, Iterable[int]]) -> Delete:
    """Write deletion files, and return the operation that names them."""
    updated, removed = deleted_fragments(snapshot, rows)
    return Delete(updated, removed, "true")


def deleted_fragments(
    snapshot: Snapshot, rows: Mapping[int, Iterable[int]]
) -> tuple[tuple[Fragment, ...], tuple[int, ...]]:
    """Write deletion files; return the updated fragments, and those without a row left."""
    updated, removed = [], []
    messages = {each.id: each for each in snapshot.manifest.message.fragments}
    for fragment in snapshot.fragments:
        if fragment.id not in rows:
            continue
        deleted = read_deleted_offsets(snapshot.scheduler, fragment) | BitMap(rows[fragment.id])
        if len(deleted) == fragment.physical_rows:
            removed.append(int(fragment.id))
            continue
        message = Fragment()
        message.CopyFrom(messages[fragment.id])
        store, version = snapshot.scheduler.store, snapshot.version
        message.deletion_file.CopyFrom(write_deletion_file(store, fragment.id, version, deleted))
        updated.append(message)
    return tuple(updated), tuple(removed)
