"""Compactions of ours in pylance's hands: rows, columns of every kind, indices, row ids."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance._arrow.bf16 import bfloat16_array
from pyroaring import BitMap

import lance_core
from lance_core.errors import CommitConflictError, InvalidRequestError, UnsupportedFeatureError
from lance_core.io.metering import metered
from lance_core.operations.compact_commit import commit_compaction
from lance_core.operations.compact_group import execute_group
from lance_core.operations.compact_indices import IndexTreatment
from lance_core.operations.compact_plan import CompactionOptions, plan_compaction
from lance_core.operations.compact_trim import trim_reuse_index
from lance_core.proto import table_pb2
from lance_core.table.deletion_writer import write_deletion_file
from lance_core.table.index_metadata import REUSE_INDEX_NAME
from lance_core.table.transaction import Delete
from tests.committed import append, apply, delete, opened
from tests.compacted import compacted
from tests.opened_table import open_table
from tests.verified import verified

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

pytestmark = pytest.mark.interop

DIMENSION = 4
VECTORS = np.random.default_rng(4).standard_normal((1000, DIMENSION)).astype(np.float32)


def rows(ids: Sequence[int]) -> pa.Table:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(VECTORS[list(ids)].ravel()), DIMENSION)
    return pa.table({"id": pa.array(list(ids), pa.int64()), "vec": vectors})


def written(root: Path, table: pa.Table, rows_per_file: int, **options: Any) -> Any:
    return lance.write_dataset(table, str(root), max_rows_per_file=rows_per_file, **options)


def ids_of(root: Path) -> list[int]:
    theirs: list[int] = lance.dataset(str(root)).to_table(columns=["id"])["id"].to_pylist()
    assert lance_core.open_dataset(root).scan(["id"]).read_all()["id"].to_pylist() == theirs
    return theirs


def files_below(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def test_rows_and_their_order_survive(tmp_path: Path) -> None:
    dataset = written(tmp_path, rows(range(100)), 10)
    dataset.delete("id % 7 = 0")
    expected = [i for i in range(100) if i % 7]
    snapshot = compacted(tmp_path, "remap", target_rows=40)
    assert ids_of(tmp_path) == expected
    assert [f.physical_rows for f in snapshot.fragments] == [40, 2, 40, 3]
    assert not any(fragment.deletion_file for fragment in snapshot.fragments)
    assert lance.dataset(str(tmp_path)).validate() is None
    # and pylance goes on from there
    lance.write_dataset(rows(range(100, 120)), str(tmp_path), mode="append")
    lance.dataset(str(tmp_path)).optimize.compact_files()
    assert ids_of(tmp_path) == [*expected, *range(100, 120)]
    compacted(tmp_path, "remap")
    assert ids_of(tmp_path) == [*expected, *range(100, 120)]


def test_nothing_to_gain_is_no_commit(tmp_path: Path) -> None:
    written(tmp_path, rows(range(20)), 20)
    before = files_below(tmp_path)
    assert compacted(tmp_path, target_rows=20).version == 1
    assert files_below(tmp_path) == before


def blob_table(version: str) -> pa.Table:
    values = [b"a" * 10, None, b"", b"c" * 100_000, b"d" * 70_000]
    if version == "2.2":
        field = lance.blob_field("blob")
        return pa.table(
            {"id": range(5), "blob": lance.blob_array(values)},
            schema=pa.schema([pa.field("id", pa.int64()), field]),
        )
    field = pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    return pa.table(
        [pa.array(range(5)), pa.array(values, pa.large_binary())],
        schema=pa.schema([pa.field("id", pa.int64()), field]),
    )


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_blobs_survive(tmp_path: Path, version: str) -> None:
    table = blob_table(version)
    written(tmp_path, table, 2, data_storage_version=version)
    lance.dataset(str(tmp_path)).delete("id = 0")
    compacted(tmp_path, "remap")
    dataset = lance.dataset(str(tmp_path))
    assert len(dataset.get_fragments()) == 1
    found = dataset.to_table(blob_handling="all_binary")
    assert found["id"].to_pylist() == [1, 2, 3, 4]
    assert found["blob"].to_pylist() == [None, b"", b"c" * 100_000, b"d" * 70_000]


def test_blobs_of_deleted_rows_are_not_read(tmp_path: Path) -> None:
    values = [bytes([i]) * 5_000_000 for i in range(12)]
    table = pa.table({"id": range(12)}).append_column(
        lance.blob_field("blob"), lance.blob_array(values)
    )
    written(tmp_path, table, 12)
    lance.dataset(str(tmp_path)).delete("id % 4 != 1")
    table = open_table(tmp_path)
    (task,) = plan_compaction(table.files, table.snapshot, CompactionOptions())
    with metered() as meter:
        result = execute_group(table.files, table.snapshot, task)
    assert meter.bytes_read < 3.1 * 5_000_000
    commit_compaction(table.snapshot, [result], IndexTreatment.REMAP)
    found = lance.dataset(str(tmp_path)).to_table(blob_handling="all_binary")
    assert found["blob"].to_pylist() == [values[1], values[5], values[9]]


def test_columns_of_many_kinds_survive(tmp_path: Path) -> None:
    texts = [None, '{"a": [1, 2.5]}', "[]", '"x"', "17", "null"] * 5
    table = pa.table(
        {
            "id": pa.array(range(30), pa.int64()),
            "json": pa.array(texts, pa.json_()),
            "label": pa.array([None, "a", "b"] * 10).dictionary_encode(),
            "list": pa.array([[{"x": i, "y": [str(i)] * (i % 3)}, None] for i in range(30)]),
            "map": pa.array([[("k", i)] for i in range(30)], pa.map_(pa.string(), pa.int32())),
            "none": pa.nulls(30),
        }
    )
    dataset = written(tmp_path, table, 4)
    dataset.delete("id in (3, 4, 5, 6, 7, 29)")
    dataset = lance.dataset(str(tmp_path))
    dataset.add_columns({"more": "id * 2"})
    lance.write_dataset(table.slice(0, 3), str(tmp_path), mode="append")
    before = lance.dataset(str(tmp_path)).to_table()
    compacted(tmp_path, "remap")
    dataset = lance.dataset(str(tmp_path))
    assert [len(fragment.data_files()) for fragment in dataset.get_fragments()] == [1]
    assert dataset.schema == lance.dataset(str(tmp_path), version=3).schema
    assert dataset.to_table().to_pylist() == before.to_pylist()


def test_json_inside_structs_and_bfloat16_survive(tmp_path: Path) -> None:
    inner = pa.array(['{"a": 1}', None, "[2]", "3"], pa.json_())
    struct = pa.StructArray.from_arrays([inner, pa.array(range(4))], names=["j", "n"])
    half = bfloat16_array([1.0, None, 2.5, 3.0])
    halves = bfloat16_array([float(i) for i in range(8)])
    vectors = pa.FixedSizeListArray.from_arrays(halves, 2)
    table = pa.table({"id": range(4), "s": struct, "half": half, "halves": vectors})
    written(tmp_path, table, 2)
    before = lance.dataset(str(tmp_path)).to_table()
    compacted(tmp_path, "remap")
    assert lance.dataset(str(tmp_path)).to_table().equals(before)


@pytest.mark.parametrize("version", ["2.0", "2.1"])
def test_new_files_have_the_version_of_the_dataset(tmp_path: Path, version: str) -> None:
    written(tmp_path, rows(range(20)), 5, data_storage_version=version)
    snapshot = compacted(tmp_path, "remap")
    (fragment,) = snapshot.fragments
    assert snapshot.manifest.message.data_format.version == version
    assert fragment.data_files[0].major_version, fragment.data_files[0].minor_version
    assert ids_of(tmp_path) == list(range(20))


def indexed(root: Path, num_rows: int = 400, kind: str = "IVF_FLAT", **options: Any) -> Any:
    dataset = written(root, rows(range(num_rows)), 100, **options)
    dataset.create_scalar_index("id", "BTREE")
    dataset.create_index("vec", kind, num_partitions=2)
    return lance.dataset(str(root))


def check_indices(root: Path, ids: Sequence[int]) -> None:
    dataset, ours = lance.dataset(str(root)), lance_core.open_dataset(root)
    for key in [*ids[::19], 3, 201]:
        found = dataset.to_table(columns=["id"], filter=f"id = {key}")["id"].to_pylist()
        assert found == ([key] if key in set(ids) else [])
    for key in ids[::37]:
        nearest = {"column": "vec", "q": VECTORS[key], "k": 1, "nprobes": 2}
        assert dataset.to_table(columns=["id"], nearest=nearest)["id"].to_pylist() == [key]
        assert ours.search(VECTORS[key], 1, columns=["id"], nprobes=2)["id"].to_pylist() == [key]
    everything = ours.search(VECTORS[0], 2000, columns=["id"], nprobes=2)["id"].to_pylist()
    assert sorted(everything) == sorted(ids)


@pytest.mark.parametrize("treatment", ["defer", "drop_coverage", "remap"])
def test_indices_find_the_rows_where_they_are_now(tmp_path: Path, treatment: str) -> None:
    indexed(tmp_path).delete("id in (3, 250) or (id >= 100 and id < 180)")
    ids = [i for i in range(400) if i not in {3, 250} and not 100 <= i < 180]
    compacted(tmp_path, treatment, target_rows=150)
    check_indices(tmp_path, ids)
    lance.write_dataset(rows(range(400, 440)), str(tmp_path), mode="append")
    lance.dataset(str(tmp_path)).delete("id = 5 or id = 410")
    ids = [i for i in [*ids, *range(400, 440)] if i not in {5, 410}]
    check_indices(tmp_path, ids)
    # once more, over what came out of the first
    compacted(tmp_path, treatment)
    check_indices(tmp_path, ids)
    lance.dataset(str(tmp_path)).optimize.optimize_indices()
    check_indices(tmp_path, ids)


def test_deferred_compactions_of_ours_and_of_pylance_form_one_chain(tmp_path: Path) -> None:
    indexed(tmp_path).delete("id % 10 = 0")
    ids = [i for i in range(400) if i % 10]
    for target in (120, 200, 300, 1000):
        compacted(tmp_path, target_rows=target)
        check_indices(tmp_path, ids)
        gone = ids.pop(len(ids) // 2)
        lance.dataset(str(tmp_path)).delete(f"id = {gone}")
        lance.dataset(str(tmp_path)).optimize.compact_files(
            target_rows_per_fragment=target + 1,
            materialize_deletions_threshold=0.0,
            defer_index_remap=True,
        )
        check_indices(tmp_path, ids)


def test_an_index_built_meanwhile_is_followed_by_a_deferred_compaction(tmp_path: Path) -> None:
    written(tmp_path, rows(range(200)), 50)
    table = open_table(tmp_path)
    tasks = plan_compaction(table.files, table.snapshot, CompactionOptions(100))
    results = [execute_group(table.files, table.snapshot, task) for task in tasks]
    lance.dataset(str(tmp_path)).create_scalar_index("id", "BTREE")
    commit_compaction(table.snapshot, results, IndexTreatment.DEFER)
    dataset = lance.dataset(str(tmp_path))
    assert dataset.to_table(filter="id = 60")["id"].to_pylist() == [60]
    assert ids_of(tmp_path) == list(range(200))


def test_deferring_is_refused_where_a_graph_covers_deleted_rows(tmp_path: Path) -> None:
    indexed(tmp_path, kind="IVF_HNSW_FLAT")
    compacted(tmp_path, target_rows=200)
    lance.dataset(str(tmp_path)).delete("id = 7")
    with pytest.raises(UnsupportedFeatureError, match=r"vec_idx.*graph"):
        compacted(tmp_path)
    compacted(tmp_path, "drop_coverage")
    nearest = {"column": "vec", "q": VECTORS[9], "k": 1}
    found = lance.dataset(str(tmp_path)).to_table(columns=["id"], nearest=nearest)
    assert found["id"].to_pylist() == [9]


def test_a_compaction_survives_pickling_between_its_steps(tmp_path: Path) -> None:
    written(tmp_path, rows(range(60)), 10)
    table = open_table(tmp_path)
    tasks = plan_compaction(table.files, table.snapshot, CompactionOptions(20))
    assert len(tasks) == 3
    results = []
    for task in tasks:
        worker = open_table(tmp_path, task.read_version)
        result = execute_group(worker.files, worker.snapshot, pickle.loads(pickle.dumps(task)))  # noqa: S301
        results.append(pickle.loads(pickle.dumps(result)))  # noqa: S301
    snapshot = commit_compaction(table.snapshot, results[:2], IndexTreatment.REMAP)
    assert [fragment.physical_rows for fragment in snapshot.fragments] == [10, 10, 20, 20]
    lance.dataset(str(tmp_path)).validate()
    with pytest.raises(InvalidRequestError, match="version"):
        commit_compaction(snapshot, results[2:], IndexTreatment.REMAP)
    with pytest.raises(InvalidRequestError, match="version"):
        execute_group(table.files, snapshot, tasks[2])


def test_rows_deleted_meanwhile_are_not_revived(tmp_path: Path) -> None:
    written(tmp_path, rows(range(60)), 10)
    table = open_table(tmp_path)
    tasks = plan_compaction(table.files, table.snapshot, CompactionOptions())
    results = [execute_group(table.files, table.snapshot, task) for task in tasks]
    delete(opened(tmp_path), {2: [5]})
    with pytest.raises(CommitConflictError):
        commit_compaction(table.snapshot, results, IndexTreatment.REMAP)
    named = {file.path for each in results for new in each.new_fragments for file in new.files}
    assert not any((tmp_path / "data" / path).exists() for path in named)
    compacted(tmp_path)
    assert ids_of(tmp_path) == [i for i in range(60) if i != 25]


def test_groups_that_nobody_changed_are_committed_all_the_same(tmp_path: Path) -> None:
    written(tmp_path, rows(range(80)), 10)
    table = open_table(tmp_path)
    tasks = plan_compaction(table.files, table.snapshot, CompactionOptions(20))
    results = [execute_group(table.files, table.snapshot, task) for task in tasks]
    delete(opened(tmp_path), {2: [5], 7: range(10)})
    lance.dataset(str(tmp_path)).create_scalar_index("id", "BTREE")
    snapshot = commit_compaction(table.snapshot, results, IndexTreatment.DROP_COVERAGE)
    assert [fragment.physical_rows for fragment in snapshot.fragments] == [10, 10, 10, 20, 20]
    assert ids_of(tmp_path) == [
        *range(20, 25),
        *range(26, 40),
        *range(60, 70),
        *range(20),
        *range(40, 60),
    ]
    assert verified(tmp_path) == []
    found = lance.dataset(str(tmp_path)).to_table(filter="id in (3, 25, 27)")["id"].to_pylist()
    assert sorted(found) == [3, 27]
    named = {file.path for each in snapshot.fragments for file in each.data_files}
    written_anew = {
        file.path for each in results for new in each.new_fragments for file in new.files
    }
    there = {path.name for path in (tmp_path / "data").iterdir()}
    assert len(written_anew & there) == 2
    assert written_anew & there <= named


def test_a_group_is_written_anew_when_columns_changed(tmp_path: Path) -> None:
    written(tmp_path, rows(range(40)), 10)
    table = open_table(tmp_path)
    tasks = plan_compaction(table.files, table.snapshot, CompactionOptions(20))
    results = [execute_group(table.files, table.snapshot, task) for task in tasks]
    lance.dataset(str(tmp_path)).delete("id = 3")
    lance.dataset(str(tmp_path)).drop_columns(["vec"])
    with pytest.raises(CommitConflictError):
        commit_compaction(table.snapshot, results, IndexTreatment.REMAP)
    compacted(tmp_path)
    assert lance.dataset(str(tmp_path)).to_table().num_columns == 1


def test_rows_appended_meanwhile_stay(tmp_path: Path) -> None:
    written(tmp_path, rows(range(60)), 10)
    table = open_table(tmp_path)
    tasks = plan_compaction(table.files, table.snapshot, CompactionOptions())
    results = [execute_group(table.files, table.snapshot, task) for task in tasks]
    append(opened(tmp_path), rows(range(60, 70)))
    snapshot = commit_compaction(table.snapshot, results, IndexTreatment.REMAP)
    assert sorted(ids_of(tmp_path)) == list(range(70))
    assert [fragment.id for fragment in snapshot.fragments] == sorted(snapshot.fragments_by_id)


def lineage(root: Path) -> list[dict[str, Any]]:
    columns = ["id", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
    rows: list[dict[str, Any]] = (
        lance.dataset(str(root)).to_table(columns=columns).sort_by("id").to_pylist()
    )
    return rows


@pytest.mark.parametrize("treatment", ["drop_coverage", "remap"])
def test_stable_row_ids_and_versions_are_carried(tmp_path: Path, treatment: str) -> None:
    dataset = written(tmp_path, rows(range(60)), 10, enable_stable_row_ids=True)
    dataset.create_index("vec", "IVF_FLAT", num_partitions=2)
    lance.dataset(str(tmp_path)).update({"id": "id + 1000"}, where="id % 4 = 0")
    lance.dataset(str(tmp_path)).delete("id = 13 or id = 1020")
    lance.write_dataset(rows(range(60, 75)), str(tmp_path), mode="append")
    before = lineage(tmp_path)
    snapshot = compacted(tmp_path, treatment)
    assert len(snapshot.fragments) < 7
    assert lineage(tmp_path) == before
    ours = lance_core.open_dataset(tmp_path)
    columns = ["id", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
    assert ours.scan(columns).read_all().sort_by("id").to_pylist() == before
    everything = ours.search(VECTORS[0], 2000, columns=["id"], nprobes=2)["id"].to_pylist()
    assert sorted(everything) == [row["id"] for row in before]
    nearest = {"column": "vec", "q": VECTORS[5], "k": 1, "nprobes": 2}
    assert lance.dataset(str(tmp_path)).to_table(nearest=nearest)["id"].to_pylist() == [5]
    lance.dataset(str(tmp_path)).delete("id = 17")
    lance.dataset(str(tmp_path)).optimize.compact_files(materialize_deletions_threshold=0.0)
    assert lineage(tmp_path) == [row for row in before if row["id"] != 17]


def test_deferring_is_refused_where_row_ids_are_stable(tmp_path: Path) -> None:
    written(tmp_path, rows(range(20)), 10, enable_stable_row_ids=True)
    with pytest.raises(UnsupportedFeatureError, match="stable ids"):
        compacted(tmp_path)


@pytest.mark.parametrize("treatment", ["drop_coverage", "remap"])
def test_an_index_of_addresses_beside_stable_row_ids_follows_or_loses_coverage(
    tmp_path: Path, treatment: str
) -> None:
    dataset = written(tmp_path, rows(range(60)), 10, enable_stable_row_ids=True)
    dataset.create_scalar_index("id", "BTREE")
    snapshot = compacted(tmp_path, treatment)
    covered = BitMap(snapshot.fragments_by_id) & (snapshot.indices[0].fragment_bitmap or BitMap())
    assert len(covered) == (1 if treatment == "remap" else 0)
    found = lance.dataset(str(tmp_path)).to_table(filter="id = 33")["id"].to_pylist()
    assert found == [33]


def test_a_failed_task_leaves_no_file(tmp_path: Path) -> None:
    written(tmp_path, rows(range(60)), 10)
    (last,) = opened(tmp_path).fragments[-1].data_files
    (tmp_path / "data" / last.path).unlink()
    before = files_below(tmp_path)
    with pytest.raises(lance_core.errors.CorruptFileError):
        compacted(tmp_path, "remap", target_rows=20)
    assert files_below(tmp_path) == before


def test_a_clone_is_compacted_into_its_own_files(tmp_path: Path) -> None:
    source, clone = tmp_path / "source", tmp_path / "clone"
    written(source, rows(range(40)), 10)
    lance.dataset(str(source)).shallow_clone(str(clone), 1)
    lance.dataset(str(clone)).delete("id = 11")
    before = files_below(source)
    dataset = lance_core.open_dataset(clone)
    tasks = plan_compaction(dataset.session.files, dataset.snapshot, CompactionOptions())
    results = [execute_group(dataset.session.files, dataset.snapshot, task) for task in tasks]
    commit_compaction(dataset.snapshot, results, IndexTreatment.REMAP)
    assert ids_of(clone) == [i for i in range(40) if i != 11]
    assert files_below(source) == before
    (fragment,) = opened(clone).fragments
    assert fragment.data_files[0].base_id is None


def test_a_history_that_no_index_needs_is_trimmed(tmp_path: Path) -> None:
    dataset = indexed(tmp_path)
    compacted(tmp_path, target_rows=200)
    assert trim_reuse_index(opened(tmp_path)).version == opened(tmp_path).version
    dataset = lance.dataset(str(tmp_path))
    dataset.create_index("vec", "IVF_FLAT", num_partitions=2, replace=True)
    dataset.create_scalar_index("id", "BTREE", replace=True)
    stale = opened(tmp_path)
    compacted(tmp_path)  # a trim computed before has to be computed anew
    snapshot = trim_reuse_index(stale)
    assert REUSE_INDEX_NAME in {entry.name for entry in snapshot.indices}
    check_indices(tmp_path, range(400))
    dataset = lance.dataset(str(tmp_path))
    dataset.create_index("vec", "IVF_FLAT", num_partitions=2, replace=True)
    dataset.create_scalar_index("id", "BTREE", replace=True)
    snapshot = trim_reuse_index(opened(tmp_path))
    assert REUSE_INDEX_NAME not in {entry.name for entry in snapshot.indices}
    check_indices(tmp_path, range(400))


def test_an_empty_dataset_is_left_alone(tmp_path: Path) -> None:
    lance.write_dataset(pa.table({"id": pa.array([], pa.int64())}), str(tmp_path))
    assert compacted(tmp_path).version == 1


@pytest.mark.parametrize(
    ("treatment", "stable_row_ids"),
    [("defer", False), ("drop_coverage", False), ("drop_coverage", True)],
)
def test_fragments_without_a_live_row_vanish(
    tmp_path: Path, treatment: str, stable_row_ids: bool
) -> None:
    """No writer leaves such fragments, but merging the deletions of two may."""
    dataset = written(tmp_path, rows(range(40)), 20, enable_stable_row_ids=stable_row_ids)
    dataset.create_scalar_index("id", "BTREE")
    snapshot = opened(tmp_path)
    message = table_pb2.DataFragment()
    message.CopyFrom(snapshot.manifest.message.fragments[0])
    store, version = snapshot.scheduler.store, snapshot.version
    message.deletion_file.CopyFrom(write_deletion_file(store, 0, version, BitMap(range(20))))
    apply(snapshot, Delete((message,), ()))
    snapshot = compacted(tmp_path, treatment, target_rows=20)
    assert [fragment.id for fragment in snapshot.fragments] == [1]
    assert ids_of(tmp_path) == list(range(20, 40))
    for key in (5, 25):
        found = lance.dataset(str(tmp_path)).to_table(filter=f"id = {key}")["id"].to_pylist()
        assert found == ([key] if key >= 20 else [])
    assert verified(tmp_path) == []
