"""Columns that ask to be packed: structs are, and pylance says what it means for the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from lance.file import LanceFileReader as PylanceReader, LanceFileWriter as PylanceWriter

from lance_core.errors import UnsupportedFeatureError
from lance_core.file import LanceFileReader, LanceFileWriter
from tests.lance_columns import VERSIONS

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

PACKED = {"lance-encoding:packed": "true"}
NUMBERS = pa.struct([pa.field("x", pa.int64(), nullable=False)])
PLAIN = {
    "int64": pa.array([1, None, 3]),
    "string": pa.array(["a", None, "b"]),
    "vectors": pa.array([[1, 2], None, [3, 4]], pa.list_(pa.float32(), 2)),
    "dictionary": pa.array(["a", "b", None]).dictionary_encode(),
}
LISTS = {
    "list": pa.array([[1, 2], None, []], pa.list_(pa.int64())),
    "large list": pa.array([["a"], None, []], pa.large_list(pa.string())),
    "lists of lists": pa.array([[[1, 2], []], None, []], pa.list_(pa.list_(pa.int64()))),
}
CASES = [
    *((name, version) for name in PLAIN for version in VERSIONS),
    *((name, version) for name in LISTS for version in VERSIONS if version != "2.0"),
]
UNREADABLE = {
    "list": (LISTS["list"], "2.0"),
    "list of structs": (pa.array([[{"x": 1}], None, []], pa.list_(NUMBERS)), "2.2"),
    "map": (pa.array([[("a", 1)], None, []], pa.map_(pa.string(), pa.int64())), "2.2"),
    "empty struct": (pa.array([{}, {}, {}], pa.struct([])), "2.0"),
}


def table_of(column: pa.Array) -> pa.Table:
    """Return the column and one behind it, which a wrong count of columns would shift."""
    fields = [pa.field("c", column.type, metadata=PACKED), pa.field("z", pa.int64())]
    return pa.table([column, pa.array([7, 8, 9])], schema=pa.schema(fields))


@pytest.mark.parametrize(("name", "version"), CASES)
def test_what_cannot_be_packed_is_kept_as_without_the_key(
    name: str, version: str, tmp_path: Path
) -> None:
    table = table_of((PLAIN | LISTS)[name])
    with PylanceWriter(str(tmp_path / "p.lance"), table.schema, version=version) as theirs:
        theirs.write_batch(table)
    with LanceFileWriter.open_path(tmp_path / "o.lance", table.schema, version=version) as ours:
        ours.write_batch(table)
    for path in (tmp_path / "p.lance", tmp_path / "o.lance"):
        assert LanceFileReader.open_path(path).read_all().equals(table)
        found = PylanceReader(str(path)).read_all().to_table()
        assert found.to_pylist() == table.to_pylist()


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_pylance_could_not_read_is_refused(name: str, tmp_path: Path) -> None:
    column, version = UNREADABLE[name]
    with pytest.raises(UnsupportedFeatureError, match="drop lance-encoding:packed"):
        LanceFileWriter.open_path(tmp_path / "a", table_of(column).schema, version=version)
