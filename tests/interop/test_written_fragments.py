"""Files of ours as fragments of pylance's datasets: scans, filters, rows, vectors, blobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import lance
import numpy as np
import pyarrow as pa
import pytest

from tests.lance_columns import VERSIONS, with_nulls
from tests.written_files import dataset_of

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

NUM_ROWS = 3000
BLOB = {"lance-encoding:blob": "true"}
KILOBYTE, MEGABYTE = 1 << 10, 1 << 20


def mixed_table() -> pa.Table:
    rng = np.random.default_rng(0)
    vectors = pa.FixedSizeListArray.from_arrays(
        pa.array(rng.standard_normal(NUM_ROWS * 16).astype(np.float32)), 16
    )
    rows = range(NUM_ROWS)
    return pa.table(
        {
            "id": pa.array(rows, pa.int64()),
            "price": with_nulls(pa.array(rng.random(NUM_ROWS))),
            "name": pa.array([f"name {i % 500}" for i in rows]),
            "tags": pa.array([[f"t{j}" for j in range(i % 4)] if i % 9 else None for i in rows]),
            "place": pa.array([{"x": i, "y": str(i)} for i in rows]),
            "vector": vectors,
        }
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_a_dataset_answers_from_our_file(version: str, tmp_path: Path) -> None:
    table = mixed_table()
    dataset = dataset_of(tmp_path, table, version, batch_rows=777)
    assert dataset.data_storage_version == version
    assert dataset.to_table().to_pylist() == table.to_pylist()
    wanted = dataset.to_table(columns=["id", "place.y"], filter="price > 0.9 AND id < 2000")
    prices = table["price"].to_pylist()
    assert wanted["id"].to_pylist() == [
        i for i in range(2000) if prices[i] is not None and prices[i] > 0.9
    ]
    rows = [2999, 0, 1500, 777]
    assert dataset.take(rows).to_pylist() == table.take(rows).to_pylist()


@pytest.mark.parametrize("version", VERSIONS)
def test_vectors_are_found_in_our_file(version: str, tmp_path: Path) -> None:
    table = mixed_table()
    dataset = dataset_of(tmp_path, table, version)
    query = np.array(table["vector"][42].as_py(), np.float32)
    flat = dataset.to_table(columns=["id"], nearest={"column": "vector", "q": query, "k": 3})
    assert flat["id"][0].as_py() == 42
    dataset.create_index("vector", "IVF_PQ", num_partitions=2, num_sub_vectors=4)
    indexed = dataset.to_table(
        columns=["id"], nearest={"column": "vector", "q": query, "k": 3, "refine_factor": 10}
    )
    assert indexed["id"][0].as_py() == 42


def blob_table() -> tuple[pa.Table, list[bytes | None]]:
    sizes = [100, None, 0, 200 * KILOBYTE, 64 * KILOBYTE, 64 * KILOBYTE + 1, 4 * MEGABYTE]
    sizes += [4 * MEGABYTE + 1, 70 * KILOBYTE, None]
    blobs = [None if size is None else bytes([number]) * size for number, size in enumerate(sizes)]
    schema = pa.schema(
        [pa.field("id", pa.int32()), pa.field("b", pa.large_binary(), metadata=BLOB)]
    )
    columns = [pa.array(range(len(blobs)), pa.int32()), pa.array(blobs, pa.large_binary())]
    return pa.table(columns, schema=schema), blobs


@pytest.mark.parametrize("version", VERSIONS)
def test_blobs_are_read(version: str, tmp_path: Path) -> None:
    table, blobs = blob_table()
    dataset = dataset_of(tmp_path, table, version, batch_rows=3)
    assert dataset.scanner(blob_handling="all_binary").to_table()["b"].to_pylist() == blobs
    files = dataset.take_blobs("b", indices=[0, 3, 7])
    assert [file and file.readall() for file in files] == [blobs[0], blobs[3], blobs[7]]


def test_large_blobs_lie_beside_the_file_as_pylance_puts_them(tmp_path: Path) -> None:
    table, _ = blob_table()
    dataset = dataset_of(tmp_path / "ours", table, "2.2", batch_rows=4)
    of_pylance = lance.write_dataset(table, tmp_path / "theirs", data_storage_version="2.2")
    ours, theirs = dataset.to_table()["b"], of_pylance.to_table()["b"]
    for name in ("kind", "size", "blob_id"):
        assert field_of(ours, name) == field_of(theirs, name)
    assert sidecars(tmp_path / "ours") == sidecars(tmp_path / "theirs")


def field_of(blobs: pa.ChunkedArray, name: str) -> list[object]:
    return [None if blob is None else blob[name] for blob in blobs.to_pylist()]


def sidecars(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in root.rglob("*.blob")}


def test_blobs_may_be_given_as_tables_declare_them(tmp_path: Path) -> None:
    _, blobs = blob_table()
    declared = pa.struct([pa.field("data", pa.large_binary()), pa.field("uri", pa.string())])
    rows = [None if blob is None else {"data": blob, "uri": None} for blob in blobs]
    field = pa.field("b", declared, metadata={"ARROW:extension:name": "lance.blob.v2"})
    ids = pa.array(range(len(rows)), pa.int32())
    schema = pa.schema([field, pa.field("id", pa.int32())])
    dataset = dataset_of(tmp_path, pa.table([pa.array(rows, declared), ids], schema=schema), "2.2")
    assert dataset.scanner(blob_handling="all_binary").to_table()["b"].to_pylist() == blobs
    assert dataset.to_table()["id"].to_pylist() == list(range(len(rows)))


JSON_TEXTS = ['{"b":[1,2.5,null],"a":"é"}', None, "17", '"text"', "[]"]


@pytest.mark.parametrize("version", VERSIONS)
def test_json_text_is_read_as_text_and_queried(version: str, tmp_path: Path) -> None:
    texts = pa.array(JSON_TEXTS, pa.json_())
    dataset = dataset_of(tmp_path, pa.table({"j": texts, "id": range(5)}), version)
    read = dataset.to_table()["j"]
    assert read.type == pa.json_()
    expected = ['{"a":"é","b":[1,2.5,null]}', *JSON_TEXTS[1:]]
    assert read.cast(pa.string()).to_pylist() == expected
    found = dataset.to_table(columns=["id"], filter="json_get_string(j, 'a') = 'é'")
    assert found["id"].to_pylist() == [0]


@pytest.mark.parametrize("version", VERSIONS)
def test_extension_types_come_back_as_themselves(version: str, tmp_path: Path) -> None:
    table = pa.table(
        {
            "uuid": pa.array([bytes(range(16)), None], pa.uuid()),
            "tensor": pa.FixedShapeTensorArray.from_numpy_ndarray(
                np.arange(8, dtype=np.float32).reshape(2, 2, 2)
            ),
            "view": pa.array(["a", None], pa.string_view()),
        }
    )
    read = dataset_of(tmp_path, table, version).to_table()
    assert read.schema.types == [pa.uuid(), table.schema.field("tensor").type, pa.string()]
    assert read["uuid"].to_pylist() == table["uuid"].to_pylist()
    assert read["tensor"].to_pylist() == table["tensor"].to_pylist()
    assert read["view"].to_pylist() == ["a", None]
