"""Searches over deferred compactions by pylance: the index is used and finds the right rows.

The judge is brute force over the rows that a scan returns, by an id column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.proto.frag_reuse_pb2 import FragmentReuseIndexDetails
from lance_core.query.column_search import ColumnSearch
from lance_core.query.request import VectorQuery
from lance_core.table.frag_reuse import load_frag_reuse
from tests.neighbour_checks import assert_same_neighbours, exact_distances

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from numpy.typing import NDArray

pytestmark = pytest.mark.interop

DIMENSION = 8
KINDS: dict[str, dict[str, Any]] = {"IVF_FLAT": {}, "IVF_PQ": {"num_sub_vectors": 4}}


VECTORS = np.random.default_rng(1).standard_normal((6000, DIMENSION)).astype(np.float32)


def vectors_of(ids: Iterable[int]) -> NDArray[np.float32]:
    """Return a vector for each id, which no other id has."""
    return VECTORS[list(ids)]


def rows(start: int, count: int) -> pa.Table:
    vectors = vectors_of(range(start, start + count))
    return pa.table(
        {
            "id": pa.array(range(start, start + count), pa.int64()),
            "vec": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIMENSION),
        }
    )


def write(root: Path, num_rows: int, rows_per_file: int) -> lance.LanceDataset:
    return lance.write_dataset(rows(0, num_rows), str(root), max_rows_per_file=rows_per_file)


def index(dataset: lance.LanceDataset, kind: str) -> lance.LanceDataset:
    dataset.create_index("vec", kind, num_partitions=3, metric="l2", **KINDS[kind])
    return dataset


def compact(dataset: lance.LanceDataset, target_rows: int) -> None:
    """Compact in deferred mode what has fewer rows, or deleted ones."""
    dataset.optimize.compact_files(
        target_rows_per_fragment=target_rows,
        materialize_deletions_threshold=0.0,
        defer_index_remap=True,
    )


def check(root: Path, *, uncovered: list[int] | None = None, seed: int = 0) -> lance_core.Dataset:
    """Check searches against brute force, and which fragments are scanned."""
    dataset = lance_core.open_dataset(str(root))
    stored = dataset.scan(["id", "vec"]).read_all()
    ids = stored["id"].to_numpy()
    np.testing.assert_array_equal(
        np.sort(ids), np.sort(lance.dataset(str(root)).to_table(columns=["id"])["id"].to_numpy())
    )
    vectors = np.array(stored["vec"].to_pylist(), np.float32)
    np.testing.assert_array_equal(vectors, vectors_of(ids.tolist()))
    for query in np.random.default_rng(seed).standard_normal((4, DIMENSION)).astype(np.float32):
        distances = exact_distances(vectors, query, "l2").astype(np.float32)
        for k in (7, len(ids)):
            nearest = np.argsort(distances, kind="stable")[:k]
            expected = pa.table({"id": ids[nearest], "_distance": distances[nearest]})
            found = dataset.search(query, k, columns=["id"], nprobes=3, refine_factor=20)
            assert_same_neighbours(found, expected, scale=float(distances.max()))
    if uncovered is not None:
        assert "reuse" not in dataset.explain(VectorQuery(vectors=vectors[:1]))
        assert scanned(dataset) == uncovered
    return dataset


def scanned(dataset: lance_core.Dataset) -> list[int]:
    """Return the fragments that no usable segment answers for."""
    field = dataset.snapshot.schema.field("vec")
    column = ColumnSearch(dataset.session, dataset.snapshot, field)
    return list(column.choice(None, use_index=True).uncovered)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_found_where_several_groups_put_them(kind: str, tmp_path: Path) -> None:
    dataset = index(write(tmp_path, 1200, 200), kind)
    dataset.delete("id % 5 = 0")
    compact(dataset, 320)
    assert len(dataset.get_fragments()) == 3
    check(tmp_path, uncovered=[])
    dataset.update_config({"a": "b"})  # from now on the stored coverage names the new fragments
    check(tmp_path, uncovered=[])


@pytest.mark.parametrize("kind", KINDS)
def test_deletions_before_between_and_after_chained_compactions(kind: str, tmp_path: Path) -> None:
    dataset = index(write(tmp_path, 900, 100), kind)
    for step, target in enumerate((200, 350, 700, 2000)):
        dataset.delete(f"id % 11 = {step}")
        compact(dataset, target)
        check(tmp_path, uncovered=[], seed=step)
        dataset.delete(f"id % 13 = {step}")
        check(tmp_path, uncovered=[], seed=step)
    assert len(history_of(tmp_path)) == 4


@pytest.mark.parametrize("kind", KINDS)
def test_appended_rows_are_scanned_and_then_indexed(kind: str, tmp_path: Path) -> None:
    dataset = index(write(tmp_path, 600, 150), kind)
    compact(dataset, 300)
    lance.write_dataset(rows(600, 100), str(tmp_path), mode="append")
    check(tmp_path, uncovered=[6])
    dataset = lance.dataset(str(tmp_path))
    dataset.optimize.optimize_indices(num_indices_to_merge=0)
    check(tmp_path, uncovered=[])
    dataset.delete("id % 3 = 0")
    compact(dataset, 5000)
    found = check(tmp_path)
    # two segments, each of which covers a part of what was compacted, if that was one group
    assert set(scanned(found)) <= set(found.snapshot.fragments_by_id)


@pytest.mark.parametrize("kind", KINDS)
def test_merged_indices_hold_new_addresses(kind: str, tmp_path: Path) -> None:
    dataset = index(write(tmp_path, 600, 150), kind)
    dataset.delete("id < 40")
    compact(dataset, 300)
    lance.write_dataset(rows(600, 100), str(tmp_path), mode="append")
    dataset = lance.dataset(str(tmp_path))
    dataset.optimize.optimize_indices()
    check(tmp_path, uncovered=[])
    dataset.delete("id % 4 = 1")
    compact(dataset, 5000)
    check(tmp_path, uncovered=[])


@pytest.mark.parametrize("kind", KINDS)
def test_an_index_built_after_a_compaction_has_addresses_of_its_own(
    kind: str, tmp_path: Path
) -> None:
    dataset = index(write(tmp_path, 400, 100), kind)
    compact(dataset, 200)
    dataset.create_index("vec", kind, name="other", num_partitions=2, metric="l2", **KINDS[kind])
    dataset.delete("id % 7 = 3")
    compact(dataset, 1000)
    check(tmp_path, uncovered=[])
    dataset.drop_index("vec_idx")
    check(tmp_path, uncovered=[])


@pytest.mark.parametrize("kind", KINDS)
def test_values_that_were_replaced_are_not_found_by_an_old_index(kind: str, tmp_path: Path) -> None:
    dataset = index(write(tmp_path, 400, 100), kind)
    compact(dataset, 200)
    # two new fragments of 200 rows; the rows of the first get other vectors
    first = dataset.get_fragments()[0]
    ids = first.to_table(columns=["id"])["id"].to_pylist()
    stored = pa.table({"id": pa.array(ids, pa.int64()), "vec": rows(5000, 200)["vec"]})
    changed, fields = first.update_columns(stored, left_on="id", right_on="id")
    operation = lance.LanceOperation.Update(updated_fragments=[changed], fields_modified=fields)
    lance.LanceDataset.commit(str(tmp_path), operation, read_version=dataset.version)
    found = lance_core.open_dataset(str(tmp_path))
    assert scanned(found) == [first.fragment_id]
    (nearest,) = found.search(vectors_of([5007])[0], 1, columns=["id"], nprobes=3).to_pylist()
    assert (nearest["id"], nearest["_distance"]) == (ids[7], 0)
    asked = vectors_of([ids[7]])[0]
    assert found.search(asked, 1, columns=["id"], nprobes=3, refine_factor=5)["id"] != [[ids[7]]]


@pytest.mark.slow
def test_a_long_history_lies_in_a_file_of_its_own(tmp_path: Path) -> None:
    num_rows = 1_800_000
    is_indexed = np.arange(num_rows) % 1000 == 0
    values = pa.array(np.repeat(np.arange(num_rows, dtype=np.float32), 2))
    vectors = pa.FixedSizeListArray.from_arrays(values, 2, mask=pa.array(~is_indexed))
    table = pa.table({"id": np.arange(num_rows), "vec": vectors})
    dataset = lance.write_dataset(table, str(tmp_path), max_rows_per_file=600_000)
    dataset.create_index("vec", "IVF_FLAT", num_partitions=2)
    dataset.delete("id % 3 = 1")
    compact(dataset, 10_000_000)
    found = lance_core.open_dataset(str(tmp_path))
    (entry,) = [each for each in found.snapshot.indices if each.is_system]
    assert FragmentReuseIndexDetails.FromString(entry.details).HasField("external")
    assert scanned(found) == []
    for asked in (0, 3000, 1_797_000):
        answer = found.search(np.full(2, asked, np.float32), 2, columns=["id"], nprobes=2)
        assert answer["id"].to_pylist()[0] == asked


def test_partitions_are_mapped_once_and_versions_do_not_mix_in_the_cache(tmp_path: Path) -> None:
    dataset = index(write(tmp_path, 600, 100), "IVF_FLAT")
    session = lance_core.Session()
    versions = [dataset.version]
    for target in (200, 300, 1000):
        dataset.delete(f"id % 17 = {len(versions)}")
        compact(dataset, target)
        versions.append(dataset.version)
    asked = np.zeros(DIMENSION, np.float32)
    opened = {v: lance_core.open_dataset(str(tmp_path), v, session=session) for v in versions}
    for version in versions * 2:
        found = opened[version].search(asked, 1000, columns=["id"], nprobes=3)
        alone = lance_core.open_dataset(str(tmp_path), version)
        expected = alone.search(asked, 1000, columns=["id"], use_index=False)
        assert sorted(found["id"].to_pylist()) == sorted(expected["id"].to_pylist())
    before = session.cache_stats.misses
    opened[versions[0]].search(asked, 1000, columns=["id"], nprobes=3)
    assert session.cache_stats.misses == before


def history_of(root: Path) -> list[int]:
    dataset = lance_core.open_dataset(str(root))
    reuse = load_frag_reuse(dataset.session.cache, dataset.snapshot)
    assert reuse is not None
    return [version.dataset_version for version in reuse.history.versions]
