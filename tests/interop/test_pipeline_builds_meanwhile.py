"""Indices built by tasks while others write: what stands of the work, and what is done again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import CommitConflictError
from lance_core.operations.new_index import NewIndex
from lance_core.schema.tree import LanceSchema
from lance_core.table.transaction import DataReplacement, Replacement
from pipeline.build import BuildIndex, BuildRequest
from pipeline.job import run_job
from tests.committed import apply, new_file
from tests.pipeline_stages import LocalStages, local_context
from tests.pipeline_tables import (
    Interrupted,
    coverage_of,
    exact,
    nearest,
    rows_of,
    theirs,
    vectors_of,
    write,
)

if TYPE_CHECKING:
    from pathlib import Path

    from lance_core.dataset import Dataset

pytestmark = pytest.mark.interop

NUM_ROWS = 3200
QUERIES = vectors_of(range(5000, 5020))
FLAT = NewIndex("v_idx", "v", "IVF_FLAT", {"num_partitions": 4})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Sixteen fragments of 200 rows."""
    write(tmp_path / "t.lance", range(NUM_ROWS), 200)
    return tmp_path / "t.lance"


def build(path: Path, index: NewIndex, stages: LocalStages, **how: Any) -> int:
    context = local_context(path, stages=stages)
    return run_job(context, BuildIndex(context, BuildRequest(index, **how)))


def opened(path: Path) -> Dataset:
    return lance_core.open_dataset(path)


def test_appends_and_deletes_go_on_meanwhile(path: Path) -> None:
    def others() -> None:
        write(path, range(NUM_ROWS, NUM_ROWS + 300), 150)
        opened(path).delete("id % 7 = 0 or id < 200")  # fragment 0 is gone

    stages = Interrupted(build_index=others)
    build(path, FLAT, stages, num_segments=4, merge_to_rows=1600)
    assert [name for name, _ in stages.ran] == ["build-index", "merge"]
    live = np.array([each for each in range(200, NUM_ROWS + 300) if each % 7 != 0])
    for query in QUERIES:
        assert nearest(path, query) == exact(live, query) == theirs(path, query)


def test_a_deferred_compaction_meanwhile_leaves_coverage_as_it_is(path: Path) -> None:
    opened(path).create_index("price", "BTREE")  # without any there is nothing to defer
    stages = Interrupted(build_index=lambda: compacted(path, "defer"))
    build(path, FLAT, stages, num_segments=4, merge_to_rows=0)
    assert stages.ran == [("build-index", 4)]
    assert [len(each) for each in coverage_of(path, "v_idx")] == [4, 4, 4, 4]
    assert opened(path).index_statistics("v_idx").num_unindexed_rows == 0
    for query in QUERIES:
        assert nearest(path, query) == exact(np.arange(NUM_ROWS), query) == theirs(path, query)


def test_graphs_whose_deleted_rows_a_compaction_left_out_are_built_again(path: Path) -> None:
    def others() -> None:
        opened(path).delete("id >= 100 and id < 150")
        opened(path).compact(indices="defer", target_rows_per_fragment=200, deletions_threshold=0.1)

    opened(path).create_index("price", "BTREE")
    graphs = NewIndex("v_idx", "v", "IVF_HNSW_FLAT", {"num_partitions": 1})
    stages = Interrupted(build_index=others)
    build(path, graphs, stages, num_segments=4)
    assert stages.ran == [("build-index", 4), ("build-index", 1)]
    live = np.array([*range(100), *range(150, NUM_ROWS)])
    found = [nearest(path, query) for query in QUERIES]
    assert np.mean([len({*f} & {*exact(live, q)}) for f, q in zip(found, QUERIES, strict=True)]) > 9
    assert [theirs(path, query) for query in QUERIES] == found


def test_other_compactions_meanwhile_let_only_their_groups_be_built_again(path: Path) -> None:
    def others() -> None:
        lance.dataset(str(path)).delete("id >= 400 and id < 500")  # half of fragment 2
        compacted(path, "remap", target_rows_per_fragment=200, deletions_threshold=0.1)

    stages = Interrupted(build_index=others)
    build(path, FLAT, stages, num_segments=4, merge_to_rows=0)
    assert stages.ran == [("build-index", 4), ("build-index", 1)]
    live = np.array([each for each in range(NUM_ROWS) if not 400 <= each < 500])
    assert opened(path).index_statistics("v_idx").num_unindexed_rows == 0
    for query in QUERIES:
        assert nearest(path, query) == exact(live, query) == theirs(path, query)


def test_columns_written_in_place_meanwhile_are_not_covered(path: Path) -> None:
    def others() -> None:
        fragment = lance.dataset(str(path)).get_fragments()[2]
        rows = rows_of(range(400, 600))
        new = pa.table({"id": rows["id"], "price": pa.array([500] * 200, pa.int32())})
        changed, fields = fragment.update_columns(new, left_on="id")
        operation = lance.LanceOperation.Update(
            updated_fragments=[changed], fields_modified=fields, update_mode="rewrite_columns"
        )
        lance.LanceDataset.commit(str(path), operation, read_version=1)

    index = NewIndex("p", "price", "BTREE")
    build(path, index, Interrupted(build_index=others), num_segments=2, merge_to_rows=0)
    assert coverage_of(path, "p") == [[0, 1, 3, 4, 5, 6, 7], [*range(8, 16)]]
    found = opened(path).scan(filter="price = 500", columns=["id"]).read_all()
    assert found["id"].to_pylist() == list(range(400, 600))


def test_values_replaced_meanwhile_let_only_their_group_be_built_again(path: Path) -> None:
    def others() -> None:
        snapshot = opened(path).snapshot
        price = LanceSchema((snapshot.schema.field("price"),), {})
        values = pa.table({"price": pa.array([500] * 200, pa.int32())})
        file = new_file(snapshot.scheduler.store, values, price)
        apply(snapshot, DataReplacement((Replacement(2, file),)))

    stages = Interrupted(build_index=others)
    build(path, NewIndex("p", "price", "BTREE"), stages, num_segments=4, merge_to_rows=0)
    assert stages.ran == [("build-index", 4), ("build-index", 1)]
    assert [len(each) for each in coverage_of(path, "p")] == [4, 4, 4, 4]
    found = lance.dataset(str(path)).to_table(filter="price = 500", columns=["id"])
    assert found["id"].to_pylist() == list(range(400, 600))


def test_all_is_built_again_where_nobody_can_tell_what_others_did(path: Path) -> None:
    def others() -> None:
        opened(path).add_columns(pa.field("more", pa.int32()))
        lance.dataset(str(path)).delete("id < 50")
        compacted(path, "remap", target_rows_per_fragment=200, deletions_threshold=0.1)

    stages = Interrupted(build_index=others)
    build(path, FLAT, stages, num_segments=4, merge_to_rows=0)
    assert stages.ran == [("build-index", 4), ("build-index", 4)]
    for query in QUERIES:
        assert nearest(path, query) == exact(np.arange(50, NUM_ROWS), query)


def test_an_index_that_others_make_again_and_again_is_a_conflict(path: Path) -> None:
    class Racing(LocalStages):
        def run(self, name: str, *given: Any, **options: Any) -> list[bytes]:
            results = super().run(name, *given, **options)
            dataset = opened(path)
            dataset.delete(f"id >= {dataset.version * 10} and id < {dataset.version * 10 + 9}")
            compacted(path, "remap", target_rows_per_fragment=200, deletions_threshold=0.001)
            return results

    with pytest.raises(CommitConflictError):
        build(path, NewIndex("p", "price", "BTREE"), Racing(), num_segments=2)


def compacted(path: Path, indices: Any, **options: Any) -> None:
    options = options or {"target_rows_per_fragment": 400}
    opened(path).compact(indices=indices, **options)
