"""Binary of the fixed size 0: values of no bytes, which only nulls tell apart.

pylance 14.0.2 writes it in all versions, but what it wrote in 2.0 and 2.1 only our reader reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from lance.file import LanceFileReader as PylanceReader

from lance_core.errors import UnsupportedFeatureError
from lance_core.file import LanceFileReader, LanceFileWriter
from tests.lance_columns import VERSIONS, lance_table, open_bytes

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

EMPTY = pa.binary(0)
PAIR = pa.list_(EMPTY, 2)
STRUCT = pa.struct([("a", EMPTY), ("b", pa.int32())])
PACKED = {"lance-encoding:packed": "true"}
COLUMNS = {
    "values": pa.array([b""] * 5000, EMPTY),
    "nulls between": pa.array([b"", None, None, b"", b""] * 1000, EMPTY),
    "lists": pa.array([[b"", b""], [], [b""]] * 700, pa.list_(EMPTY)),
    "lists with nulls": pa.array([[b"", None], None, [], [b""]] * 700, pa.large_list(EMPTY)),
    "lists of lists": pa.array([[[b""], []], None, [], [[None], None]], pa.list_(pa.list_(EMPTY))),
    "structs": pa.array([{"a": b"", "b": 1}, {"a": b"", "b": 2}] * 9, STRUCT),
}
NEWEST = {
    "structs with nulls": pa.array([{"a": b"", "b": 1}, None, {"a": None, "b": 2}] * 9, STRUCT),
    "maps": pa.array([[("x", b"")], [("y", None)], None], pa.map_(pa.string(), EMPTY)),
    "keys": pa.array([[(b"", 1)], [], None], pa.map_(EMPTY, pa.int64())),
}
ONLY_NULLS = {
    "no rows": pa.array([], EMPTY),
    "nulls": pa.nulls(5000, EMPTY),
    "lists of nulls": pa.array([[None, None], [], [None]], pa.list_(EMPTY)),
}
PAIRS = {
    "pairs": pa.array([[b"", b""]] * 9, PAIR),
    "pairs with nulls": pa.array([[b"", None], None, [None, None], [b"", b""]] * 9, PAIR),
}


def table_of(column: pa.Array, metadata: dict[str, str] | None = None) -> pa.Table:
    """Return a column between two others, which shows when a reader loses count of buffers."""
    numbers = pa.array(range(len(column)), pa.int64())
    field = pa.field("c", column.type, metadata=metadata)
    schema = pa.schema([("before", pa.int64()), field, ("after", pa.string())])
    return pa.table([numbers, column, numbers.cast(pa.string())], schema=schema)


def check_reads(reader: LanceFileReader, table: pa.Table) -> None:
    """Compare a scan, a range and a take with the table."""
    last = table.num_rows
    assert reader.read_all().equals(table)
    assert reader.scan(["c"], [(last // 3, last)]).read_all()["c"] == table["c"][last // 3 :]
    rows = [row for row in (last - 1, 0, last // 2) if 0 <= row < last]
    taken = reader.take_table(rows, ["c"])["c"]
    assert taken.to_pylist() == table["c"].take(pa.array(rows, pa.int64())).to_pylist()


def written(table: pa.Table, version: str, path: Path) -> LanceFileReader:
    """Write a table in several pages with ours, let pylance read it, and open it with ours."""
    with LanceFileWriter.open_path(path, table.schema, version=version) as writer:
        half = table.num_rows // 2
        writer.write_batch(table[:half])
        writer.write_batch(table[half:])
    assert PylanceReader(str(path)).read_all().to_table().equals(table)
    return LanceFileReader.open_path(path)


@pytest.mark.parametrize("name", [*COLUMNS, *ONLY_NULLS, *PAIRS])
@pytest.mark.parametrize("version", VERSIONS)
def test_what_pylance_writes_is_read(version: str, name: str) -> None:
    table = table_of((COLUMNS | ONLY_NULLS | PAIRS)[name])
    for page_rows in (None, 1001):
        check_reads(open_bytes(lance_table(table, version, page_rows)), table)


@pytest.mark.parametrize("name", NEWEST)
def test_what_only_the_newest_version_holds_is_read(name: str) -> None:
    check_reads(open_bytes(lance_table(table_of(NEWEST[name]), "2.2")), table_of(NEWEST[name]))


@pytest.mark.parametrize("name", [*COLUMNS, *NEWEST, *ONLY_NULLS])
def test_what_we_write_is_read_by_both(name: str, tmp_path: Path) -> None:
    table = table_of((COLUMNS | NEWEST | ONLY_NULLS)[name])
    check_reads(written(table, "2.2", tmp_path / "a.lance"), table)


@pytest.mark.parametrize("name", ONLY_NULLS)
@pytest.mark.parametrize("version", ["2.0", "2.1"])
def test_older_versions_hold_only_nulls(version: str, name: str, tmp_path: Path) -> None:
    table = table_of(ONLY_NULLS[name])
    check_reads(written(table, version, tmp_path / "a.lance"), table)


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("version", ["2.0", "2.1"])
def test_values_in_older_versions_are_refused(version: str, name: str, tmp_path: Path) -> None:
    table = table_of(COLUMNS[name])
    with (
        pytest.raises(UnsupportedFeatureError, match=r"of no bytes .* write version 2\.2"),
        LanceFileWriter.open_path(tmp_path / "a.lance", table.schema, version=version) as writer,
    ):
        writer.write_batch(table)


@pytest.mark.parametrize("version", VERSIONS)
def test_fixed_size_lists_of_them_are_refused(version: str, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedFeatureError, match="column 'c': fixed-size lists of no bytes"):
        LanceFileWriter.open_path(tmp_path / "a.lance", pa.schema([("c", PAIR)]), version=version)


@pytest.mark.parametrize("version", VERSIONS)
def test_packed_structs_of_them_are_read(version: str) -> None:
    table = table_of(COLUMNS["structs"], PACKED)
    check_reads(open_bytes(lance_table(table, version)), table)


def test_packed_structs_of_2_0_hold_them(tmp_path: Path) -> None:
    table = table_of(COLUMNS["structs"], PACKED)
    check_reads(written(table, "2.0", tmp_path / "a.lance"), table)


@pytest.mark.parametrize("kind", [STRUCT, pa.struct([])])
@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_structs_that_pylance_cannot_unpack_are_refused(
    version: str, kind: pa.DataType, tmp_path: Path
) -> None:
    schema = pa.schema([pa.field("c", kind, metadata=PACKED)])
    with pytest.raises(UnsupportedFeatureError, match="cannot be packed"):
        LanceFileWriter.open_path(tmp_path / "a.lance", schema, version=version)
