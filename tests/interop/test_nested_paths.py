"""Parts of structs, named by a path, read as pylance reads them: nulls of every level count."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.file import LanceFileReader

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

PATHS = ["deep.inner.emb", "deep.inner.n", "deep.inner", "deep.l", "deep.t", "flat.all_valid"]
NUM_ROWS = 60


@pytest.fixture(params=["2.1", "2.2"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    vectors = np.random.default_rng(0).standard_normal((NUM_ROWS, 8)).astype(np.float32)
    emb = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 8)
    numbers = pa.array([None if i % 7 == 0 else i for i in range(NUM_ROWS)])
    inner = pa.StructArray.from_arrays(
        [emb, numbers], ["emb", "n"], mask=pa.array(np.arange(NUM_ROWS) % 4 == 0)
    )
    lists = pa.array([None if i % 6 == 0 else [i] * (i % 3) for i in range(NUM_ROWS)])
    texts = pa.array([f"t{i}" for i in range(NUM_ROWS)])
    deep = pa.StructArray.from_arrays(
        [inner, lists, texts], ["inner", "l", "t"], mask=pa.array(np.arange(NUM_ROWS) % 5 == 0)
    )
    flat = pa.StructArray.from_arrays([pa.array(range(NUM_ROWS))], ["all_valid"])
    table = pa.table({"id": range(NUM_ROWS), "deep": deep, "flat": flat})
    folder = tmp_path / "t.lance"
    lance.write_dataset(table, str(folder), data_storage_version=request.param)
    return folder


@pytest.mark.parametrize("path", PATHS)
def test_a_part_of_a_struct_reads_as_in_pylance(root: Path, path: str):
    ours = lance_core.open_dataset(str(root))
    theirs = lance.dataset(str(root)).to_table(columns=[path])[path].to_pylist()
    assert ours.scan([path]).read_all()[path].to_pylist() == theirs
    rows = [59, 0, 12, 31, 5]
    assert ours.take(rows, [path])[path].to_pylist() == [theirs[row] for row in rows]


def test_a_vector_inside_a_struct_with_nulls_is_searched(root: Path):
    query = np.ones(8, np.float32)
    ours = lance_core.open_dataset(str(root)).search(
        query, 100, column="deep.inner.emb", columns=["id"]
    )
    theirs = lance.dataset(str(root)).to_table(
        nearest={"column": "deep.inner.emb", "q": query, "k": 100}, columns=["id", "_distance"]
    )
    assert ours["id"].to_pylist() == theirs["id"].to_pylist()


def test_a_part_of_list_items_comes_as_lists_of_only_that_part(tmp_path: Path) -> None:
    rows = [[{"x": 1, "y": "a"}, {"x": 2, "y": "b"}], None, []]
    path = str(tmp_path / "t.lance")
    lance.write_dataset(pa.table({"s": [{"l": row} for row in rows]}), path)
    dataset = lance_core.open_dataset(path)
    found = dataset.scan(["s.l.item.x", "s.l.item"]).read_all().to_pydict()
    assert found == {"s.l.item.x": [[{"x": 1}, {"x": 2}], None, []], "s.l.item": rows}
    (file,) = (tmp_path / "t.lance" / "data").iterdir()
    reader = LanceFileReader.open_path(file)
    part, whole = (reader.target(name) for name in ("s.l.item.x", "s.l"))
    assert len(part.columns) == 1 < len(whole.columns)
    assert reader.take([part], np.array([2, 0]))[0].to_pylist() == [[], [{"x": 1}, {"x": 2}]]


def test_a_part_of_a_map_comes_as_the_map(tmp_path: Path) -> None:
    kind = pa.map_(pa.string(), pa.int64())
    table = pa.table({"m": pa.array([[("a", 1)], None], kind)})
    lance.write_dataset(table, str(tmp_path / "t.lance"), data_storage_version="2.2")
    dataset = lance_core.open_dataset(str(tmp_path / "t.lance"))
    assert dataset.scan(["m.entries.value"]).read_all().column(0).type == kind


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_a_part_of_a_packed_struct_is_read_out_of_the_column_that_all_parts_share(
    version: Literal["2.0", "2.1", "2.2"], tmp_path: Path
) -> None:
    structs = pa.StructArray.from_arrays(
        [pa.array(range(50)), pa.array([i / 2 for i in range(50)])], ["a", "b"]
    )
    field = pa.field("p", structs.type, metadata={"lance-encoding:packed": "true"})
    table = pa.table([structs], schema=pa.schema([field]))
    lance.write_dataset(table, str(tmp_path / "t.lance"), data_storage_version=version)
    dataset = lance_core.open_dataset(tmp_path / "t.lance")
    wanted = [i / 2 for i in range(50)]
    assert dataset.scan(["p.b"]).read_all()["p.b"].to_pylist() == wanted
    assert dataset.take([7, 3], ["p.b"])["p.b"].to_pylist() == [3.5, 1.5]
    (path,) = (tmp_path / "t.lance" / "data").iterdir()
    reader = LanceFileReader.open_path(path)
    assert reader.scan(["p.b"]).read_all()["p.b"].to_pylist() == wanted


def test_elements_of_lists_that_get_another_part_have_it_as_null(tmp_path: Path) -> None:
    lists = pa.array([[{"x": 1, "y": "a"}], [], None, [{"x": 2, "y": None}, None]] * 5)
    root = str(tmp_path / "t.lance")
    theirs = lance.write_dataset(pa.table({"l": lists}), root, data_storage_version="2.2")
    another = pa.list_(pa.struct([pa.field("z", pa.int32())]))
    theirs.add_columns(pa.schema([pa.field("l", another)]))
    theirs.drop_columns(["l.item.y"])
    wanted = lance.dataset(root).to_table()
    found = lance_core.open_dataset(root).scan().read_all()
    assert found.schema.types == wanted.schema.types
    assert found.to_pylist() == wanted.to_pylist()
    assert found["l"][3].as_py() == [{"x": 2, "z": None}, None]
