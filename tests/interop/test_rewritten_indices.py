"""pylance searches index files that we wrote anew, and finds what it found in its own."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from lance_core.file import LanceFileReader, LanceFileWriter
from lance_core.io.mapped_store import MappedStore
from lance_core.io.scheduler import RangeScheduler
from lance_core.proto import table_pb2
from tests.manifest_bytes import manifest_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.interop

NUM_ROWS, DIMENSION = 2000, 16
VECTOR_KINDS = ("IVF_FLAT", "IVF_PQ", "IVF_SQ", "IVF_RQ", "IVF_HNSW_SQ", "IVF_HNSW_PQ")
PAGE_BYTES = 16 << 10  # several pages


def table_of_all() -> pa.Table:
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal(NUM_ROWS * DIMENSION).astype(np.float32)
    numbers = rng.integers(0, 200, NUM_ROWS)
    return pa.table(
        {
            "id": range(NUM_ROWS),
            "v": pa.FixedSizeListArray.from_arrays(pa.array(vectors), DIMENSION),
            "number": numbers,
            "labels": [[f"l{n % 7}", f"l{n % 11}"] for n in numbers.tolist()],
            "text": [f"word{n} and word{n % 13}" for n in numbers.tolist()],
        }
    )


def rewrite(path: Path) -> int:
    """Write a file anew with our writer, in its own version; return its size."""
    store = MappedStore(path.parent)
    reader = LanceFileReader.open(RangeScheduler(store), path.name)
    names = reader.schema.names
    columns = reader.read([reader.target(name) for name in names], [(0, reader.num_rows)])
    buffers = list(user_buffers(reader))
    with LanceFileWriter(
        store, path.name, reader.schema, version=reader.version, max_page_bytes=PAGE_BYTES
    ) as writer:
        for buffer in buffers:
            writer.add_global_buffer(buffer)
        if reader.num_rows > 0:
            writer.write_batch(pa.table(dict(zip(names, columns, strict=True))))
        return writer.finish().size


def user_buffers(reader: LanceFileReader) -> Iterator[bytes]:
    for index in range(1, len(reader.metadata.buffers)):
        yield bytes(reader.global_buffer(index))


def rewrite_indices(root: Path) -> int:
    """Write all index files anew and record their sizes in the newest manifest."""
    sizes = {path.name: rewrite(path) for path in index_files(root)}
    manifest_path = min((root / "_versions").iterdir())  # versions are named downwards
    data = manifest_path.read_bytes()
    (position,) = struct.unpack_from("<Q", data, len(data) - 16)
    manifest = table_pb2.Manifest.FromString(section(data, position))
    indices = table_pb2.IndexSection.FromString(section(data, manifest.index_section)).indices
    for index in indices:
        for file in index.files:
            file.size_bytes = sizes[file.path.rpartition("/")[2]]
    transaction = section(data, manifest.transaction_section)
    manifest_path.write_bytes(manifest_file(manifest, indices=indices, transaction=transaction))
    return len(sizes)


def index_files(root: Path) -> list[Path]:
    return [path for path in (root / "_indices").rglob("*") if path.suffix in {".idx", ".lance"}]


def section(data: bytes, position: int) -> bytes:
    (length,) = struct.unpack_from("<I", data, position)
    return data[position + 4 : position + 4 + length]


def nearest(root: Path) -> list[list[dict[str, object]]]:
    dataset = lance.dataset(str(root))
    queries = np.random.default_rng(1).standard_normal((5, DIMENSION)).astype(np.float32)
    return [
        dataset.to_table(
            columns=["id", "_distance"],
            nearest={"column": "v", "q": query, "k": 10, "nprobes": 4},
        ).to_pylist()
        for query in queries
    ]


@pytest.mark.parametrize("version", ["2.0", "2.2"])
@pytest.mark.parametrize("kind", VECTOR_KINDS)
def test_vector_indices_find_the_same(kind: Any, version: Any, tmp_path: Path) -> None:
    dataset = lance.write_dataset(table_of_all(), tmp_path, data_storage_version=version)
    more: dict[str, Any] = {"num_sub_vectors": 4} if kind.endswith("PQ") else {}
    dataset.create_index("v", kind, num_partitions=4, **more)
    expected = nearest(tmp_path)
    assert rewrite_indices(tmp_path) == 2
    assert nearest(tmp_path) == expected


FILTERS = {
    "BTREE": ("number", "number < 20"),
    "BITMAP": ("number", "number = 7"),
    "ZONEMAP": ("number", "number > 190"),
    "LABEL_LIST": ("labels", "array_has_any(labels, ['l3'])"),
    "NGRAM": ("text", "contains(text, 'word19')"),
}


@pytest.mark.parametrize("version", ["2.0", "2.2"])
@pytest.mark.parametrize("kind", FILTERS)
def test_scalar_indices_find_the_same(kind: Any, version: Any, tmp_path: Path) -> None:
    column, condition = FILTERS[kind]
    dataset = lance.write_dataset(table_of_all(), tmp_path, data_storage_version=version)
    dataset.create_scalar_index(column, kind)
    expected = dataset.to_table(columns=["id"], filter=condition)["id"].to_pylist()
    assert len(expected) > 0
    assert rewrite_indices(tmp_path) > 0
    again = lance.dataset(str(tmp_path))
    assert "Index" in again.scanner(columns=["id"], filter=condition).explain_plan()
    assert again.to_table(columns=["id"], filter=condition)["id"].to_pylist() == expected


@pytest.mark.parametrize("version", ["2.0", "2.2"])
def test_full_text_indices_find_the_same(version: Any, tmp_path: Path) -> None:
    dataset = lance.write_dataset(table_of_all(), tmp_path, data_storage_version=version)
    dataset.create_scalar_index("text", "INVERTED")
    query: dict[str, Any] = {"columns": ["id", "_score"], "full_text_query": "word19", "limit": 20}
    expected = dataset.to_table(**query).to_pylist()
    assert len(expected) > 0
    assert rewrite_indices(tmp_path) > 0
    assert lance.dataset(str(tmp_path)).to_table(**query).to_pylist() == expected
