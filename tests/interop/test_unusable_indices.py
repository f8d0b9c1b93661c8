"""Indices of types that are not supported, or not trustworthy, cost time and never a row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.io.mapped_store import MappedStore
from lance_core.proto.frag_reuse_pb2 import FragmentReuseIndexDetails
from lance_core.query.request import VectorQuery
from lance_core.table.index_metadata import REUSE_INDEX_NAME
from lance_core.table.reuse_entry import write_reuse_entry
from lance_core.table.reuse_history import ReuseHistory
from tests.manifest_bytes import manifest_file
from tests.neighbour_checks import assert_same_neighbours, exact_distances, scale_of

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

pytestmark = pytest.mark.interop

DIMENSION = 16


def write(root: Path, num_rows: int = 900, **options: Any) -> lance.LanceDataset:
    vectors = np.random.default_rng(4).standard_normal((num_rows, DIMENSION)).astype(np.float32)
    table = pa.table(
        {
            "id": np.arange(num_rows),
            "vec": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIMENSION),
        }
    )
    return lance.write_dataset(table, str(root), max_rows_per_file=300, **options)


def exact_answer(
    dataset: lance_core.Dataset, query: NDArray[np.float32], metric: str, k: int
) -> pa.Table:
    stored = dataset.scan(["id", "vec"]).read_all()
    distances = exact_distances(np.array(stored["vec"].to_pylist(), np.float32), query, metric)
    nearest = np.argsort(distances, kind="stable")[:k]
    return pa.table(
        {
            "id": stored["id"].take(nearest),
            "_distance": pa.array(distances[nearest].astype(np.float32)),
        }
    )


def check_exact(root: Path, metric: str, reason: str) -> None:
    dataset = lance_core.open_dataset(str(root))
    query = np.random.default_rng(8).standard_normal(DIMENSION).astype(np.float32)
    expected = exact_answer(dataset, query, metric, 10)
    found = dataset.search(query, 10, columns=["id"])
    scale = scale_of(expected["_distance"].to_numpy(), query, metric)
    assert_same_neighbours(found, expected, scale=scale, tolerance=1e-6)
    plan = dataset.explain(VectorQuery(vectors=query[None]))
    assert "FlatSearch" in plan
    assert reason in plan


def test_an_index_of_a_later_version_is_left_out_and_its_rows_are_searched_exactly(
    tmp_path: Path,
):
    root = tmp_path / "t.lance"
    write(root).create_index("vec", "IVF_FLAT", metric="cosine", num_partitions=3)
    manifest = lance_core.open_dataset(str(root)).snapshot.manifest
    entries = list(manifest.index_section.indices)
    entries[0].index_version = 3
    (root / manifest.path).write_bytes(manifest_file(manifest.message, indices=entries))
    check_exact(root, "cosine", "index version 3 is newer")


@pytest.mark.parametrize("version", [0, 1])
def test_an_index_behind_a_tagged_reuse_index_is_left_out(version: int, tmp_path: Path):
    root = tmp_path / "t.lance"
    dataset = write(root)
    dataset.create_index("vec", "IVF_FLAT", num_partitions=3)
    dataset.delete("id % 5 = 0")
    dataset.optimize.compact_files(target_rows_per_fragment=10_000, defer_index_remap=True)
    manifest = lance_core.open_dataset(str(root)).snapshot.manifest
    entries = list(manifest.index_section.indices)
    (entry,) = [each for each in entries if each.name == REUSE_INDEX_NAME]
    details = FragmentReuseIndexDetails.FromString(entry.index_details.value)
    details.inline.transitions.append(b"")
    entry.index_details.value = details.SerializeToString()
    entry.index_version = version
    (root / manifest.path).write_bytes(manifest_file(manifest.message, indices=entries))
    check_exact(root, "l2", "tagged")


def test_an_index_of_stable_row_ids_behind_a_reuse_index_is_left_out(tmp_path: Path):
    root = tmp_path / "t.lance"
    dataset = write(root, enable_stable_row_ids=True)
    dataset.create_index("vec", "IVF_FLAT", num_partitions=3)
    manifest = lance_core.open_dataset(str(root)).snapshot.manifest
    entry = write_reuse_entry(
        MappedStore(str(root)), ReuseHistory(()), dataset_version=1, created_at_ms=0
    )
    entries = [*manifest.index_section.indices, entry]
    (root / manifest.path).write_bytes(manifest_file(manifest.message, indices=entries))
    check_exact(root, "l2", "stable row ids")


def test_scalar_indices_do_not_disturb_a_vector_search(tmp_path: Path):
    root = tmp_path / "t.lance"
    write(root).create_scalar_index("id", "BTREE")
    dataset = lance_core.open_dataset(str(root))
    query = np.ones(DIMENSION, np.float32)
    found = dataset.search(query, 5, columns=["id"])
    assert_same_neighbours(found, exact_answer(dataset, query, "l2", 5), scale=10)
