"""Rows of every kind of column, through every operation that writes rows or columns."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lance_core.dataset import ColumnChange, Dataset, write_dataset

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

NEW = [50, 51, 53, 101, 104, 109]


def rows(first: int, *, null_structs: bool) -> pa.Table:
    structs = [{"x": 1, "y": {"z": "q"}}, None, {"x": None, "y": None}, {"x": 3, "y": {"z": None}}]
    lists = [[{"a": 1, "b": ["x"]}], None, [], [{"a": None, "b": None}]]
    return pa.table(
        {
            "id": pa.array(range(first, first + 4), pa.int64()),
            "uuid": pa.array([bytes([i]) * 16 for i in range(3)] + [None], pa.uuid()),
            "tensor": pa.FixedShapeTensorArray.from_numpy_ndarray(
                np.arange(16, dtype=np.float32).reshape(4, 2, 2)
            ),
            "bool8": pa.ExtensionArray.from_storage(pa.bool8(), pa.array([0, 1, None, 1], "int8")),
            "decimal": pa.array([Decimal("1.10"), None, Decimal("2.20"), Decimal("3.30")]),
            "time": pa.array([1, 2, None, 4], pa.timestamp("us", "Europe/Berlin")),
            "null": pa.nulls(4),
            "fixed": pa.array([b"ab", None, b"cd", b"ef"], pa.binary(2)),
            "large": pa.array(["a", "b", None, "d"], pa.large_string()),
            "dict": pa.array(["a", "b", None, "a"]).dictionary_encode(),
            "duration": pa.array([1, None, 2, 3], pa.duration("ms")),
            "view": pa.array(["a", None, "b", "c"], pa.string_view()),
            "json": pa.array(['{"a":1}', None, "[]", "1"], pa.json_()),
            "large_list": pa.array([[1], None, [2, 3], []], pa.large_list(pa.int32())),
            "half": pa.array([1.5, None, 2.5, 3.5], pa.float16()),
            "struct": pa.array(structs if null_structs else structs[:1] * 4),
            "lists": pa.array(lists if null_structs else lists[:1] * 4),
        }
    )


def theirs(dataset: Dataset) -> pa.Table:
    """Return what pylance sees, after making sure that we see the same and it is sound."""
    reader = lance.dataset(dataset.uri)
    reader.validate()
    assert list(dataset.verify()) == []
    table = stored(reader.to_table())
    assert stored(dataset.scan().read_all()).to_pylist() == table.to_pylist()
    return table


def stored(table: pa.Table) -> pa.Table:
    """Return what extension types are kept as."""
    for place, field in enumerate(table.schema):
        if isinstance(field.type, pa.BaseExtensionType):
            storage = field.type.storage_type
            chunks = [chunk.storage for chunk in table.column(place).chunks]
            table = table.set_column(place, field.name, pa.chunked_array(chunks, storage))
    return table


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_every_type_goes_through_every_operation(
    tmp_path: Path, version: str, stable: bool
) -> None:
    has_nulls = version != "2.0"
    first = rows(0, null_structs=has_nulls)
    dataset = write_dataset(
        str(tmp_path / "t"), first, data_storage_version=version, stable_row_ids=stable
    )
    dataset = dataset.append(rows(4, null_structs=has_nulls))
    dataset = dataset.append(renumbered(dataset.scan().read_all().slice(0, 2), 8))
    dataset = dataset.update({"id": lambda b: pc.add(b["id"], 100)}, where="id IN (1, 4, 9)")
    new = {
        "uuid": bytes(16),
        "bool8": 1,
        "decimal": Decimal("9.90"),
        "time": dt.datetime(2024, 1, 1, tzinfo=dt.UTC),
        "struct": {"x": 5, "y": {"z": "w"}},
        "lists": [{"a": 1, "b": []}],
        "large": "z",
        "view": "v",
        "half": 0.5,
        "null": None,
    }
    dataset = dataset.update(new, where="id = 0")
    dataset = dataset.merge_insert(rows(2, null_structs=has_nulls).slice(0, 2), "id")
    dataset = dataset.merge_insert(rows(50, null_structs=has_nulls), ["id", "uuid"])
    partial = pa.table({"id": [3], "large": pa.array(["m"], pa.large_string())})
    dataset = dataset.merge_insert(partial, "id").delete("large IS NULL")
    table = theirs(dataset)
    assert sorted(table["id"].to_pylist()) == [0, 2, 3, 5, 7, 8, *NEW]
    found = {row["id"]: row for row in table.to_pylist()}
    assert {name: found[0][name] for name in ("decimal", "struct", "lists", "large")} == {
        name: new[name] for name in ("decimal", "struct", "lists", "large")
    }
    before = {**stored(rows(2, null_structs=has_nulls)).to_pylist()[1], "large": "m"}
    assert found[3] == before
    dataset = dataset.add_columns(
        lambda b: pa.table({"u2": b["uuid"], "t2": b["tensor"], "s2": b["struct"], "d2": b["dict"]})
    )
    dataset = dataset.alter_columns(
        ColumnChange("dict", data_type=pa.string()),
        ColumnChange("large", data_type=pa.string()),
        ColumnChange("time", data_type=pa.timestamp("ns", "Europe/Berlin")),
    )
    dataset = dataset.drop_columns(["struct.y"])
    changed = theirs(dataset)
    assert changed["u2"].to_pylist() == table["uuid"].to_pylist()
    assert changed["s2"].to_pylist() == table["struct"].to_pylist()
    assert changed["large"].to_pylist() == table["large"].to_pylist()
    assert changed["dict"].to_pylist() == changed["d2"].to_pylist() == table["dict"].to_pylist()


def renumbered(table: pa.Table, first: int) -> pa.Table:
    ids = pa.array(range(first, first + table.num_rows), pa.int64())
    return table.set_column(0, "id", ids)
