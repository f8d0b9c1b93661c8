"""Files of ours as fragments of pylance's datasets: scans, filters, rows, vectors, blobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

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


@pytest.mark.parametrize("version", ["2.0", "2.1"])
def test_blobs_of_the_first_form_are_read(version: str, tmp_path: Path) -> None:
    table, blobs = blob_table()
    dataset = dataset_of(tmp_path, table, version, batch_rows=3)
    assert dataset.scanner(blob_handling="all_binary").to_table()["b"].to_pylist() == blobs
    files = dataset.take_blobs("b", indices=[0, 3, 7])
    assert [file and file.readall() for file in files] == [blobs[0], blobs[3], blobs[7]]
