"""A table to be written to a Lance file, and the forms that our writer and pylance take it in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_core.encodings.version import FileVersion
from lance_core.file.writer import LanceFileWriter

if TYPE_CHECKING:
    from lance_core.file.writer import WrittenFile
    from lance_core.io.store import ObjectStore


@dataclass(frozen=True, slots=True)
class LanceCase:
    """A table, and how to write it.

    ``page_rows`` is the number of rows of a batch, each of which makes pages of its own; None
    writes all rows at once.
    """

    table: pa.Table
    version: str
    page_rows: int | None

    def batches(self) -> list[pa.RecordBatch]:
        """Return the table in the pieces that are written, slices of one another."""
        batches: list[pa.RecordBatch] = self.table.to_batches(max_chunksize=self.page_rows)
        return batches

    def batches_for_pylance(self) -> list[pa.RecordBatch]:
        """Return the pieces, as if each had been made by itself where pylance fails otherwise."""
        batches = self.batches()
        if any(_has_struct(field.type) for field in self.table.schema):
            return [unsliced(batch) for batch in batches]
        return batches


def write_case(case: LanceCase, store: ObjectStore, path: str) -> WrittenFile:
    """Write a case with our writer; where its pages are short, there are twenty or so."""
    some = max(case.table.nbytes // 20, 1)
    page_bytes = {} if case.page_rows is None else {"max_page_bytes": some}
    version = FileVersion(case.version)
    with LanceFileWriter(store, path, case.table.schema, version=version, **page_bytes) as writer:
        for batch in case.batches():
            writer.write_batch(batch)
        return writer.finish()


def children_of(kind: pa.DataType) -> list[pa.Field]:
    """Return the fields of a type, which only some of Arrow's types can be iterated for."""
    if pa.types.is_map(kind):
        return [kind.key_field, kind.item_field]
    return [kind.field(index) for index in range(kind.num_fields)]


def _has_struct(kind: pa.DataType) -> bool:
    is_struct: bool = pa.types.is_struct(kind) or pa.types.is_map(kind)
    return is_struct or any(_has_struct(child.type) for child in children_of(kind))


def is_list(kind: pa.DataType) -> bool:
    """Whether values have any number of elements, as those of maps do."""
    found: bool = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_map(kind)
    return found


def has_list(kind: pa.DataType) -> bool:
    """Whether the type is a list or has one anywhere in it."""
    return is_list(kind) or any(has_list(child.type) for child in children_of(kind))


def unsliced(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return equal rows as if they had been made by themselves: no array has an offset."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return pa.ipc.open_stream(sink.getvalue()).read_next_batch()
