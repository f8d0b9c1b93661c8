"""Files that our writer makes for tests, alone or as the one fragment of a dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING

import lance
import pyarrow as pa
from lance.fragment import DataFile, FragmentMetadata

from lance_core.encodings.version import FileVersion
from lance_core.file.reader import LanceFileReader
from lance_core.file.writer import LanceFileWriter
from lance_core.io.mapped_store import MappedStore
from lance_core.io.memory_store import MemoryStore
from lance_core.io.scheduler import RangeScheduler

if TYPE_CHECKING:
    from pathlib import Path

    from lance_core.file.writer import WrittenFile
    from lance_core.io.store import ObjectStore
    from lance_core.schema.tree import LanceSchema

FILE = "file.lance"


def write_table(
    store: ObjectStore,
    path: str,
    table: pa.Table,
    version: str = "2.2",
    *,
    schema: pa.Schema | LanceSchema | None = None,
    batch_rows: int | None = None,
    max_page_bytes: int = 8 << 20,
) -> WrittenFile:
    """Write a table in one batch, or in batches of ``batch_rows``."""
    with LanceFileWriter(
        store,
        path,
        table.schema if schema is None else schema,
        version=FileVersion(version),
        max_page_bytes=max_page_bytes,
    ) as writer:
        for batch in [table] if batch_rows is None else table.to_batches(batch_rows):
            writer.write_batch(batch)
        return writer.finish()


def read_back(store: ObjectStore, path: str = FILE) -> pa.Table:
    """Read all columns of a file by our own reader."""
    reader = LanceFileReader.open(RangeScheduler(store), path)
    targets = [reader.target(name) for name in reader.schema.names]
    columns = reader.read(targets, [(0, reader.num_rows)])
    return pa.table(dict(zip(reader.schema.names, columns, strict=True)))


def written_and_read(table: pa.Table, version: str = "2.2", **options: int) -> pa.Table:
    """Return what our reader makes of the file that our writer makes of a table."""
    store = MemoryStore()
    write_table(store, FILE, table, version, batch_rows=options.get("batch_rows"))
    return read_back(store)


def dataset_of(
    root: Path, table: pa.Table, version: str, *, batch_rows: int | None = None
) -> lance.LanceDataset:
    """Write a table and commit the file as the one fragment of a new dataset of pylance."""
    store = MappedStore(root / "data")
    written = write_table(
        store, FILE, table, version, batch_rows=batch_rows, max_page_bytes=64 << 10
    )
    fields = [int(field_id) for field_id in written.column_indices]
    columns = [int(column) for column in written.column_indices.values()]
    major, minor = map(int, version.split("."))
    file = DataFile(FILE, fields, columns, major, minor, written.size)
    fragment = FragmentMetadata(0, [file], written.num_rows, None, None)
    operation = lance.LanceOperation.Overwrite(table.schema, [fragment])
    return lance.LanceDataset.commit(str(root), operation)
