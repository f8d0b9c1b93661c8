"""Zone maps of columns whose values have no order: they tell which rows are null."""

from __future__ import annotations

from typing import TYPE_CHECKING

import lance
import pyarrow as pa
import pytest
from lance.indices import IndexConfig

import lance_core
from lance_core.index.scalar.tree_map import decode_tree_map
from tests.index_contents import index_contents

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

NUM_ROWS = 90
PATTERN = pa.array([0, 1, None, 1, 2, None, 0, 0, 1] * 10, pa.int8())
TEXTS = pa.dictionary(pa.int8(), pa.string())
POINTS = pa.struct([("a", pa.int32())])


def _items(kind: pa.DataType) -> pa.Array:
    return pa.array([["a", "b"], None, []], pa.list_(pa.string())).take(PATTERN).cast(kind)


COLUMNS = {
    "texts": pa.DictionaryArray.from_arrays(PATTERN, pa.array(["x", None, "b"])),
    "numbers": pa.DictionaryArray.from_arrays(PATTERN, pa.array([7, 5, 9])),
    "floats": pa.DictionaryArray.from_arrays(PATTERN, pa.array([float("nan"), 5.0, 9.0])),
    "binaries": pa.DictionaryArray.from_arrays(PATTERN, pa.array([b"x", b"", b"b"])),
    "no_items": pa.DictionaryArray.from_arrays(pa.nulls(NUM_ROWS, pa.int8()), pa.array(["x"])),
    "lists": _items(pa.list_(pa.string())),
    "large_lists": _items(pa.large_list(pa.string())),
    "vectors": pa.array([[1.0, 2.0], None, [3.0, 4.0]], pa.list_(pa.float32(), 2)).take(PATTERN),
    "maps": pa.array([[("a", 1)], None, []], pa.map_(pa.string(), pa.int32())).take(PATTERN),
    "structs": pa.array([{"a": 1}, None, {"a": None}], POINTS).take(PATTERN),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three fragments with deletions, each column with an index of pylance's and one of ours."""
    folder = tmp_path_factory.mktemp("zones") / "t"
    table = pa.table({"id": range(NUM_ROWS), **COLUMNS})
    theirs = lance.write_dataset(
        table, str(folder), max_rows_per_file=40, data_storage_version="2.2"
    )
    theirs.delete("id % 11 = 3")
    for column in COLUMNS:
        config = IndexConfig("zonemap", {"rows_per_zone": 7})
        lance.dataset(str(folder)).create_scalar_index(column, config, name=f"theirs_{column}")
        lance_core.open_dataset(folder).create_index(
            column, "ZONEMAP", f"ours_{column}", rows_per_zone=7
        )
    return folder


@pytest.mark.parametrize("column", COLUMNS)
def test_zones_and_null_rows_are_those_of_pylance(folder: Path, column: str) -> None:
    expected, expected_metadata, expected_buffers = _file(folder, f"theirs_{column}")
    found, metadata, buffers = _file(folder, f"ours_{column}")
    assert metadata == expected_metadata
    assert [decode_tree_map(each, column) for each in buffers] == [
        decode_tree_map(each, column) for each in expected_buffers
    ]
    # pylance's bounds of a struct are a struct of a 0, whatever is in it: nobody asks for them
    compared = found.column_names[2:] if column == "structs" else found.column_names
    assert found.select(compared).equals(expected.select(compared))


@pytest.mark.parametrize("column", COLUMNS)
def test_both_find_null_rows_by_our_index(folder: Path, column: str, tmp_path: Path) -> None:
    own = tmp_path / "t"
    lance.write_dataset(lance.dataset(str(folder)).to_table(), str(own), data_storage_version="2.2")
    lance_core.open_dataset(own).create_index(column, "ZONEMAP", "i", rows_per_zone=7)
    theirs, ours = lance.dataset(str(own)), lance_core.open_dataset(own)
    for condition in (f"{column} IS NULL", f"{column} IS NOT NULL"):
        expected = theirs.scanner(["id"], filter=condition, use_scalar_index=False).to_table()
        assert theirs.to_table(["id"], filter=condition) == expected
        assert ours.scan(["id"], filter=condition).read_all() == expected
    plan = theirs.scanner(filter=f"{column} IS NULL").explain_plan()
    assert "ScalarIndexQuery" in plan


def test_all_rows_of_a_column_of_nulls_are_null(tmp_path: Path) -> None:
    lance.write_dataset(pa.table({"c": pa.nulls(50)}), str(tmp_path), data_storage_version="2.2")
    lance_core.open_dataset(tmp_path).create_index("c", "ZONEMAP")
    for condition, number in (("c IS NULL", 50), ("c IS NOT NULL", 0)):
        assert lance.dataset(str(tmp_path)).count_rows(condition) == number
        assert lance_core.open_dataset(tmp_path).count_rows(filter=condition) == number


def _file(folder: Path, name: str) -> tuple[pa.Table, dict[str, str], list[bytes]]:
    ((_, contents),) = index_contents(folder, name).items()
    return contents
