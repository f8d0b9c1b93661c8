"""Vector indices over time: both writers in turn, deletions, compactions and crashes."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import StoreUnavailableError
from lance_core.index.vector.build.same_model import same_model
from lance_core.index.vector.build.stored_model import stored_model
from lance_core.operations.build_segment import build_segment
from lance_core.operations.commit_segments import commit_segments
from lance_core.operations.new_index import NewIndex
from tests.committed import opened
from tests.failing_store import fail_at
from tests.vector_matrix import KINDS
from tests.vector_upkeep import (
    NUM_MORE,
    NUM_ROWS,
    check,
    compact,
    coverage,
    create,
    draw,
    dtype_of,
    insert,
    live_ids,
    opened_segments,
    optimize,
    stored_ids,
    table,
)

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

METRICS = ("l2", "cosine", "dot")
SESSION = lance_core.Session()


def cases() -> list[tuple[str, str]]:
    """Every kind, each with one of the metrics that it takes."""
    return [
        (kind, "hamming" if kind.endswith("bytes") else METRICS[number % 3])
        for number, kind in enumerate(KINDS)
    ]


@pytest.mark.parametrize(("kind", "metric"), cases())
def test_pylance_goes_on_where_we_began(tmp_path: Path, kind: str, metric: str) -> None:
    path = tmp_path / "t"
    insert(path, 0, NUM_ROWS, dtype_of(kind))
    create(path, kind, metric)
    check(path, kind, metric)
    insert(path, 5000, NUM_MORE, dtype_of(kind))
    optimize(path, "ours" if kind == "IVF_HNSW_FLAT bytes" else "theirs")  # where pylance panics
    assert coverage(path) == [[0, 1, 2]]
    check(path, kind, metric)
    lance.dataset(str(path)).delete("id % 5 = 2")
    if kind == "IVF_HNSW_FLAT bytes":
        return
    compact(path)
    assert len(stored_ids(path)) == (NUM_ROWS + NUM_MORE) * 4 // 5
    check(path, kind, metric)


@pytest.mark.parametrize(("kind", "metric"), cases())
def test_we_go_on_where_pylance_began(tmp_path: Path, kind: str, metric: str) -> None:
    path = tmp_path / "t"
    insert(path, 0, NUM_ROWS, dtype_of(kind))
    create(path, kind, metric, "theirs")
    (before,) = opened_segments(path)
    lance.dataset(str(path)).delete("id % 5 = 2")
    insert(path, 5000, NUM_MORE, dtype_of(kind))
    optimize(path, "ours", 0)
    assert coverage(path) == [[0, 1], [2]]
    check(path, kind, metric)
    optimize(path, "ours", 5)
    assert coverage(path) == [[0, 1, 2]]
    assert stored_ids(path) == live_ids(path)
    (after,) = opened_segments(path)
    assert same_model(stored_model(before), stored_model(after))
    check(path, kind, metric)
    assert list(table(path).verify()) == []
    assert table(path).optimize_indices().version == table(path).version


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_PQ", "IVF_RQ 5 bit", "IVF_HNSW_SQ"])
def test_two_writers_make_an_index_in_halves(tmp_path: Path, kind: str, stable: bool) -> None:
    path = tmp_path / "t"
    insert(path, 0, NUM_ROWS, stable=stable)
    create(path, kind, "l2", "theirs")
    for number, writer in enumerate(["ours", "theirs", "ours"]):
        insert(path, 5000 + number * 1000, NUM_MORE, stable=stable)
        optimize(path, writer, 0)
    assert coverage(path) == [[0, 1], [2], [3], [4]]
    check(path, kind, "l2")
    models = [stored_model(each) for each in opened_segments(path)]
    assert same_model(models[1], models[0])
    assert same_model(models[3], models[2])  # pylance may have joined partitions
    optimize(path, "ours", 2)
    assert coverage(path) == [[0, 1], [2], [3, 4]]
    check(path, kind, "l2")
    optimize(path, "theirs", 3)
    assert coverage(path) == [[0, 1, 2, 3, 4]]
    assert stored_ids(path) == live_ids(path)
    check(path, kind, "l2")


@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_PQ 4 bit", "IVF_RQ 1 bit", "IVF_HNSW_SQ"])
def test_rows_that_deferred_compactions_moved_are_named_by_their_new_places(
    tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "t"
    insert(path, 0, NUM_ROWS)
    create(path, kind, "cosine")
    insert(path, 5000, NUM_MORE)
    optimize(path, "ours", 0)
    lance.dataset(str(path)).delete("id % 3 = 1")
    compact(path, defers=True)
    assert coverage(path) == [[], []]  # by fragments that the history leads on from
    optimize(path, "ours", 2)
    assert stored_ids(path) == live_ids(path)
    check(path, kind, "cosine")
    table(path).trim_reuse_index()
    assert [each.name for each in table(path).snapshot.indices] == ["v_idx"]
    check(path, kind, "cosine")


@pytest.mark.parametrize("kind", ["IVF_SQ", "IVF_HNSW_FLAT"])
def test_old_vectors_of_updated_rows_do_not_come_back(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "t"
    insert(path, 0, NUM_ROWS, stable=True)
    create(path, kind, "l2")
    theirs = lance.dataset(str(path))
    changed = theirs.to_table(filter="id % 4 = 1")
    moved = changed["v"].combine_chunks().values.to_numpy() + np.float32(50)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(moved), 32)
    update = pa.table({"id": changed["id"], "v": vectors})
    theirs.merge_insert("id").when_matched_update_all().execute(update)
    optimize(path, "ours")
    assert stored_ids(path) == live_ids(path) == list(range(NUM_ROWS))
    check(path, kind, "l2")
    found = table(path).search(moved[:32], 1, columns=["id"], nprobes=10)
    assert found["id"].to_pylist() == [1]
    assert found["_distance"][0].as_py() < 32


def test_segments_of_other_models_are_coded_anew_by_the_model_of_most_rows(tmp_path: Path) -> None:
    path = tmp_path / "t"
    insert(path, 0, NUM_ROWS)
    index = NewIndex("v_idx", "v", "IVF_SQ", {"num_partitions": 3})
    first = build_segment(SESSION.files, opened(path), index, [0])
    insert(path, 5000, NUM_MORE)
    others = [build_segment(SESSION.files, opened(path), index, [n]) for n in (1, 2)]
    commit_segments(opened(path), "v_idx", [others[1], first, others[0]])
    models = [stored_model(each) for each in opened_segments(path)]
    assert not same_model(models[0], models[1])
    check(path, "IVF_SQ", "l2")
    optimize(path, "ours", 3)
    (merged,) = opened_segments(path)
    assert same_model(stored_model(merged), models[1])
    assert coverage(path) == [[0, 1, 2]]
    assert stored_ids(path) == live_ids(path)
    check(path, "IVF_SQ", "l2")


def test_retraining_makes_as_many_partitions_as_the_rows_ask_for(tmp_path: Path) -> None:
    path = tmp_path / "t"
    insert(path, 0, NUM_ROWS)
    create(path, "IVF_SQ", "dot", target_partition_size=500, num_partitions=None)
    assert [each.num_partitions for each in opened_segments(path)] == [3]
    insert(path, 5000, NUM_ROWS)
    optimize(path, "ours")
    assert [each.num_partitions for each in opened_segments(path)] == [3]
    table(path).optimize_indices(["v_idx"], retrain=True)
    assert [each.num_partitions for each in opened_segments(path)] == [6]
    check(path, "IVF_SQ", "dot")


@pytest.mark.parametrize("kind", ["IVF_PQ", "IVF_HNSW_PQ"])
def test_too_few_rows_for_a_codebook_make_an_entry_without_files(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "t"
    insert(path, 0, 200)
    create(path, kind, "cosine")
    create(path, kind, "cosine", "theirs", name="theirs")
    assert list(path.glob("_indices/*/*")) == []
    for entry, name in zip(table(path).snapshot.indices, ["v_idx", "theirs"], strict=True):
        assert (entry.name, entry.files) == (name, ())
        assert entry.fragment_bitmap is not None
        assert len(entry.fragment_bitmap) == 0
    told = [each.details for each in lance.dataset(str(path)).describe_indices()]
    assert told[0]["compression"] == told[1]["compression"]
    assert told[0]["metric_type"] == told[1]["metric_type"] == "COSINE"
    assert table(path).search(draw(0, 1)[0], 5).num_rows == 5
    version = table(path).version
    assert table(path).optimize_indices().version == version
    insert(path, 5000, NUM_ROWS)
    optimize(path, "ours")
    assert coverage(path) == [[0, 1, 2], [0, 1, 2]]
    table(path).drop_index("theirs")
    check(path, kind, "cosine")


def test_an_entry_that_pylance_left_untrained_is_built(tmp_path: Path) -> None:
    path = tmp_path / "t"
    insert(path, 0, NUM_ROWS)
    create(path, "IVF_HNSW_SQ", "dot", "theirs", train=False, m=12, ef_construction=90)
    optimize(path, "ours")
    (segment,) = opened_segments(path)
    graph = stored_model(segment).graph
    assert graph is not None
    assert (graph.max_connections, graph.ef_construction) == (12, 90)
    check(path, "IVF_HNSW_SQ", "dot")


@pytest.mark.parametrize("at", range(4))
@pytest.mark.parametrize("step", ["create", "optimize"])
def test_a_crash_leaves_folders_that_no_version_names_and_a_cleanup_removes_them(
    tmp_path: Path, step: str, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t"
    insert(path, 0, 800)
    if step == "optimize":
        create(path, "IVF_SQ", "l2")
        insert(path, 5000, 100)
    dataset = table(path)
    kind = type(dataset.snapshot.scheduler.store)
    monkeypatch.setattr(kind, "delete", lambda *_: None)  # as if the process had died
    fail_at(monkeypatch, kind, at)
    with pytest.raises(StoreUnavailableError):
        dataset.create_index("v", "IVF_SQ", "w") if step == "create" else dataset.optimize_indices()
    monkeypatch.undo()
    assert table(path).version == dataset.version
    assert list(table(path).verify()) == []
    table(path).cleanup(older_than=timedelta(0), delete_unverified=True)
    named = {path / "_indices" / each.uuid for each in table(path).snapshot.indices}
    assert {each.parent for each in path.glob("_indices/*/*")} == named
    create(path, "IVF_SQ", "l2")
    check(path, "IVF_SQ", "l2")


def test_bringing_an_index_up_to_date_looks_at_what_others_did_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "t"
    insert(path, 0, NUM_ROWS)
    create(path, "IVF_SQ", "l2")
    insert(path, 5000, NUM_MORE)
    before = table(path)
    first = table(path).optimize_indices()
    assert before.optimize_indices().version == first.version
    insert(path, 6000, NUM_MORE)
    before = table(path)
    lance.dataset(str(path)).delete("id % 4 = 2")
    compact(path)
    before.optimize_indices()
    assert coverage(path) == [sorted(table(path).snapshot.fragments_by_id)]
    assert stored_ids(path) == live_ids(path)
    assert len({each.parent for each in path.glob("_indices/*/*")}) == 4  # three were replaced
    check(path, "IVF_SQ", "l2")


@pytest.mark.parametrize("kind", ["IVF_PQ", "IVF_HNSW_SQ"])
def test_old_values_of_changed_columns_do_not_come_back(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "t"
    insert(path, 0, NUM_ROWS)
    create(path, kind, "l2")
    dataset = lance.dataset(str(path))
    fragment = dataset.get_fragment(1)
    assert fragment is not None
    rows = fragment.to_table(columns=["v"], with_row_id=True)
    moved = rows["v"].combine_chunks().values.to_numpy() + np.float32(50)
    update = pa.table(
        {"_rowid": rows["_rowid"], "v": pa.FixedSizeListArray.from_arrays(pa.array(moved), 32)}
    )
    updated, fields = fragment.update_columns(update, left_on="_rowid", right_on="_rowid")
    operation = lance.LanceOperation.Update(
        updated_fragments=[updated], fields_modified=fields, update_mode="rewrite_columns"
    )
    lance.LanceDataset.commit(str(path), operation, read_version=dataset.version)
    assert coverage(path) == [[0]]
    optimize(path, "ours")
    assert coverage(path) == [[0, 1]]
    assert stored_ids(path) == live_ids(path)
    check(path, kind, "l2")
    found = table(path).search(moved[:32], 1, columns=["id", "v"], nprobes=10, refine_factor=20)
    np.testing.assert_array_equal(found["v"][0].values.to_numpy(), moved[:32])


@pytest.mark.parametrize("num_rows", [0, 600])
def test_a_column_without_any_vector_is_indexed_when_it_has_some(
    tmp_path: Path, num_rows: int
) -> None:
    path = tmp_path / "t"
    nothing = pa.nulls(num_rows, pa.list_(pa.float32(), 32))
    lance.write_dataset(pa.table({"id": np.arange(num_rows), "v": nothing}), str(path))
    create(path, "IVF_SQ", "dot")
    created = table(path)
    assert coverage(path) == [[]]
    assert created.optimize_indices(retrain=True).version == created.version
    insert(path, 5000, NUM_MORE)
    optimize(path, "ours")
    assert coverage(path) == [sorted(table(path).snapshot.fragments_by_id)]
    assert len(stored_ids(path)) == NUM_MORE
    table(path).delete("id >= 5000")
    kept = table(path)
    assert kept.optimize_indices(["v_idx"], retrain=True).version == kept.version
