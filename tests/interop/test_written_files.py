"""pylance reads what we write: whole files, ranges and single rows, in every version."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from lance.file import LanceFileReader as PylanceReader

from lance_core.encodings.version import FileVersion
from lance_core.file.writer import LanceFileWriter
from lance_core.io.mapped_store import MappedStore
from tests.lance_columns import VERSIONS, not_written, sample_columns
from tests.written_files import FILE, write_table

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

# refused by the writer: pylance cannot read them beside another column
REFUSED = "lists of 3 structs"
# pylance misreads whatever stands beside a struct without children, in its own files too
MISREAD = "struct around one without children"
ALONE = "struct without children"
CASES = [
    pytest.param(name, version, id=f"{name}-{version}")
    for name in sample_columns()
    for version in VERSIONS
    if not not_written(name, version) and name not in {REFUSED, MISREAD}
]
HOW = {"whole": {}, "in pages": {"batch_rows": 701, "max_page_bytes": 4096}}


def sample_table(name: str) -> pa.Table:
    column, metadata = sample_columns()[name]
    field = pa.field("c", column.type, metadata=metadata)
    if name == ALONE:
        return pa.table([column], schema=pa.schema([field]))
    # a second column shows whether the readers of both agree about rows
    rows = pa.field("row", pa.int32(), nullable=False)
    numbers = pa.array(np.arange(len(column), dtype=np.int32))
    return pa.table([column, numbers], schema=pa.schema([field, rows]))


def plain(table: pa.Table) -> list[object]:
    return [column.to_pylist() for column in table.columns]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize(("name", "version"), CASES)
def test_pylance_reads_the_same_rows(name: str, version: str, how: str, tmp_path: Path) -> None:
    table = sample_table(name)
    write_table(MappedStore(tmp_path), FILE, table, version, **HOW[how])
    reader = PylanceReader(str(tmp_path / FILE))
    read = reader.read_all(batch_size=1024).to_table()
    if not pa.types.is_dictionary(table["c"].type):
        assert read["c"].type == table["c"].type
    assert plain(read) == plain(table)
    if table.num_rows > 800:
        assert plain(reader.read_range(333, 400).to_table()) == plain(table.slice(333, 400))
        rows = [0, 5, 700, 701, table.num_rows - 1]
        assert plain(reader.take_rows(rows).to_table()) == plain(table.take(rows))


@pytest.mark.parametrize("version", VERSIONS)
def test_pylance_reads_buffers_and_metadata(version: str, tmp_path: Path) -> None:
    table = pa.table({"a": [1, 2]}).replace_schema_metadata({"given": "before"})
    store = MappedStore(tmp_path)
    with LanceFileWriter(store, FILE, table.schema, version=FileVersion(version)) as writer:
        assert writer.add_global_buffer(b"first") == 1
        writer.write_batch(table)
        assert writer.add_global_buffer(np.arange(3, dtype=np.uint8)) == 2
        writer.add_schema_metadata("added", "later")
    reader = PylanceReader(str(tmp_path / FILE))
    assert reader.read_global_buffer(1) == b"first"
    assert reader.read_global_buffer(2) == b"\0\1\2"
    assert reader.metadata().schema.metadata == {b"given": b"before", b"added": b"later"}


def test_pages_of_long_text_agree_about_nulls_that_only_other_pages_hold(tmp_path: Path) -> None:
    kind = pa.struct({"a": pa.map_(pa.string(), pa.map_(pa.string(), pa.bool_()))})
    entries = [("k" * 300, [("x" * 300, True), ("y" * 300, False)]), ("l" * 300, [])]
    rows = [{"a": []}, {"a": entries[:1]}, {"a": entries}, {"a": []}, {"a": entries[1:]}]
    table = pa.table({"c": pa.array(rows, kind)})
    write_table(MappedStore(tmp_path), FILE, table, batch_rows=1, max_page_bytes=1)
    read = PylanceReader(str(tmp_path / FILE)).read_all(batch_size=1024).to_table()
    assert plain(read) == plain(table)
