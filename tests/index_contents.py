"""What the files of an index hold, for comparison with those of another writer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

import lance_core
from lance_core.file.reader import LanceFileReader
from lance_core.io.open import open_store
from lance_core.io.scheduler import RangeScheduler

if TYPE_CHECKING:
    from pathlib import Path


def index_contents(
    folder: Path, name: str
) -> dict[str, tuple[pa.Table, dict[str, str], list[bytes]]]:
    """Return rows, metadata and buffers of all files of an index of one segment."""
    (segment,) = [
        each for each in lance_core.open_dataset(folder).snapshot.indices if each.name == name
    ]
    scheduler = RangeScheduler(open_store(str(folder / "_indices" / segment.uuid)))
    found = {}
    assert {each.path for each in segment.files} == {
        each.name for each in (folder / "_indices" / segment.uuid).iterdir()
    }
    for file in segment.files:
        found[file.path] = file_contents(scheduler, file.path, file.size)
    return found


def file_contents(
    scheduler: RangeScheduler, path: str, size: int | None
) -> tuple[pa.Table, dict[str, str], list[bytes]]:
    """Return rows, metadata and buffers of one file, however it is cut into pages."""
    reader = LanceFileReader.open(scheduler, path, size)
    fields = [reader.target(column) for column in reader.schema.names]
    arrays = reader.read(fields, [(0, reader.num_rows)])
    table = pa.table(arrays, names=list(reader.schema.names))
    nullable = [(each.name, each.nullable, dict(each.metadata)) for each in reader.schema.fields]
    buffers = [bytes(reader.global_buffer(n)) for n in range(1, len(reader.metadata.buffers))]
    return table, dict(reader.schema.metadata) | {"fields": str(nullable)}, buffers
