"""Indices merged, refreshed and optimized by tasks."""

from __future__ import annotations

import io
import json
from itertools import chain
from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import IndexNotFoundError, InvalidRequestError
from lance_core.index.vector.build.same_model import same_model
from lance_core.index.vector.build.stored_model import stored_model
from lance_core.operations.index_state import index_states
from lance_core.operations.new_index import NewIndex
from pipeline.build import BuildIndex, BuildRequest
from pipeline.errors import StageFailedError
from pipeline.job import run_job
from pipeline.merge import MergeRequest, MergeSegments
from pipeline.optimize import OptimizeRequest, optimize_indices, refresh_indices
from pipeline.progress import make_progress
from pipeline.refresh import RefreshRequest
from pipeline.vector_details import training_of
from tests.pipeline_stages import LocalStages, local_context
from tests.pipeline_tables import (
    DIMENSION,
    Interrupted,
    coverage_of,
    exact,
    nearest,
    rows_of,
    theirs,
    vectors_of,
    write,
)
from tests.vector_upkeep import opened_segments
from tests.verified import verified

if TYPE_CHECKING:
    from pathlib import Path

    from lance_core.dataset import Dataset

pytestmark = pytest.mark.interop

NUM_ROWS = 2000
QUERIES = vectors_of(range(5000, 5015))
FLAT = NewIndex("v_idx", "v", "IVF_FLAT", {"num_partitions": 4})
BTREE = NewIndex("p", "price", "BTREE")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Ten fragments of 200 rows."""
    write(tmp_path / "t.lance", range(NUM_ROWS), 200)
    return tmp_path / "t.lance"


def opened(path: Path) -> Dataset:
    return lance_core.open_dataset(path)


def build(path: Path, index: NewIndex, **how: Any) -> int:
    context = local_context(path)
    return run_job(context, BuildIndex(context, BuildRequest(index, **{"merge_to_rows": 0, **how})))


def merge(path: Path, name: str, rows: int, *, stages: LocalStages | None = None) -> int:
    context = local_context(path, stages=stages)
    return run_job(context, MergeSegments(context, MergeRequest(name, rows)))


def refresh(path: Path, *names: str, stages: LocalStages | None = None, **how: Any) -> int:
    context = local_context(path, stages=stages)
    return refresh_indices(context, names or None, RefreshRequest("", **how))


def optimize(path: Path, *names: str, stages: LocalStages | None = None, **how: Any) -> int:
    context = local_context(path, stages=stages)
    return optimize_indices(context, names or None, OptimizeRequest(**how))


def check(path: Path, ids: Any) -> None:
    """Check that all rows are found, by both libraries."""
    for query in QUERIES:
        assert nearest(path, query) == exact(np.asarray(ids), query) == theirs(path, query)


def have_one_model(path: Path) -> bool:
    first, *others = [stored_model(each) for each in opened_segments(path)]
    return all(same_model(first, each) for each in others)


def test_committed_segments_are_merged(path: Path) -> None:
    build(path, FLAT, num_segments=5)
    before = opened(path).version
    stages = LocalStages()
    assert merge(path, "v_idx", 900, stages=stages) == before + 1
    assert stages.ran == [("merge", 2)]
    assert coverage_of(path, "v_idx") == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    check(path, range(NUM_ROWS))
    assert merge(path, "v_idx", 900) == before + 1  # nothing to do
    with pytest.raises(IndexNotFoundError):
        merge(path, "w_idx", 900)


def test_segments_of_several_models_are_not_merged(path: Path) -> None:
    build(path, FLAT, num_segments=2, is_independent=True)
    with pytest.raises(StageFailedError, match="have several models"):
        merge(path, "v_idx", NUM_ROWS)
    assert len(coverage_of(path, "v_idx")) == 2


def test_merging_goes_on_beside_others_and_is_planned_anew_where_it_must(path: Path) -> None:
    build(path, FLAT, num_segments=5)
    build(path, BTREE)

    def others() -> None:
        write(path, range(NUM_ROWS, NUM_ROWS + 100), 100)
        opened(path).delete("id < 100")
        refresh(path, "v_idx")
        opened(path).compact(indices="defer", target_rows_per_fragment=300)

    stages = Interrupted(merge=others)
    merge(path, "v_idx", 900, stages=stages)
    assert stages.ran == [("merge", 2)]
    check(path, range(100, NUM_ROWS + 100))
    assert opened(path).index_statistics("v_idx").num_unindexed_rows == 0

    def moving() -> None:
        lance.dataset(str(path)).delete("id >= 1500 and id < 1550")
        opened(path).compact(
            indices="remap", target_rows_per_fragment=200, deletions_threshold=0.05
        )

    again = Interrupted(merge=moving)
    merge(path, "v_idx", 10_000, stages=again)
    assert again.ran == [("merge", 1), ("merge", 1)]
    check(path, [*range(100, 1500), *range(1550, NUM_ROWS + 100)])


@pytest.mark.parametrize(
    ("index_type", "given"),
    [("IVF_PQ", {"num_sub_vectors": 8}), ("IVF_SQ", {}), ("IVF_RQ", {}), ("IVF_HNSW_SQ", {"m": 8})],
)
def test_new_fragments_are_covered_by_the_model_that_there_is(
    path: Path, index_type: str, given: dict[str, object]
) -> None:
    build(path, NewIndex("v_idx", "v", index_type, {"num_partitions": 1, **given}))
    stages = LocalStages()
    assert refresh(path, "v_idx", stages=stages) == 2  # all is covered
    assert stages.ran == []
    write(path, range(NUM_ROWS, NUM_ROWS + 500), 100)
    refresh(path, "v_idx", stages=stages, num_segments=2)
    assert stages.ran[0] == ("refresh-index", 2)
    assert list(chain(*coverage_of(path, "v_idx"))) == [*range(15)]
    assert have_one_model(path)
    shared = [len({*nearest(path, each)} & {*theirs(path, each)}) for each in QUERIES]
    assert np.mean(shared) >= 9.5


def test_all_indices_are_refreshed_each_by_a_commit(path: Path) -> None:
    build(path, BTREE)
    build(path, NewIndex("t", "text", "INVERTED"))
    build(path, NewIndex("z", "id", "ZONEMAP"))
    lance.dataset(str(path)).create_scalar_index("price", "BITMAP", name="b")
    write(path, range(NUM_ROWS, NUM_ROWS + 300), 100)
    before = opened(path).version
    assert refresh(path) == before + 4
    states = index_states(opened(path).snapshot)
    assert {name: len(each.uncovered) for name, each in states.items()} == dict.fromkeys("ptzb", 0)
    for filtered in ("price = 11", "id > 2250"):
        found = opened(path).scan(filter=filtered, columns=["id"]).read_all()
        expected = lance.dataset(str(path)).to_table(filter=filtered, columns=["id"])
        assert found["id"].to_pylist() == expected["id"].to_pylist()
    assert opened(path).search_text("n2299", 1)["id"].to_pylist() == [2299]
    assert refresh(path) == before + 4
    with pytest.raises(IndexNotFoundError):
        refresh(path, "none")


def test_an_index_that_waited_for_vectors_is_built_when_there_are_enough(tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    write(path, range(100), 50)
    build(path, NewIndex("v_idx", "v", "IVF_PQ", {"num_sub_vectors": 8}))
    assert refresh(path, "v_idx") == 2  # there are too few yet
    write(path, range(100, 600), 100)
    refresh(path, "v_idx")
    assert coverage_of(path, "v_idx") == [[*range(7)]]


def test_groups_that_were_moved_meanwhile_are_refreshed_again(path: Path) -> None:
    build(path, FLAT, num_segments=1)
    write(path, range(NUM_ROWS, NUM_ROWS + 600), 100)

    def others() -> None:
        lance.dataset(str(path)).delete(f"id = {NUM_ROWS}")
        opened(path).compact(
            indices="remap", target_rows_per_fragment=100, deletions_threshold=0.001
        )

    stages = Interrupted(refresh_index=others)
    refresh(path, "v_idx", num_segments=3, stages=stages)
    assert stages.ran == [("refresh-index", 3), ("refresh-index", 1), ("merge", 1)]
    assert opened(path).index_statistics("v_idx").num_unindexed_rows == 0
    check(path, [*range(NUM_ROWS), *range(NUM_ROWS + 1, NUM_ROWS + 600)])


def test_small_segments_are_joined_with_new_fragments_and_large_ones_stay(path: Path) -> None:
    build(path, FLAT, num_segments=1)
    for number in range(3):
        start = NUM_ROWS + 100 * number
        write(path, range(start, start + 100), 100)
        optimize(path, "v_idx", min_segment_rows=1000, retrain_if_growth=None)
        assert coverage_of(path, "v_idx") == [[*range(10)], [*range(10, 11 + number)]]
        assert have_one_model(path)
    check(path, range(NUM_ROWS + 300))
    version = opened(path).version
    assert optimize(path, "v_idx", min_segment_rows=1000, retrain_if_growth=None) == version


def test_there_are_no_more_segments_than_allowed(path: Path) -> None:
    build(path, FLAT, num_segments=6)
    optimize(path, "v_idx", max_segments=3, min_segment_rows=10)
    assert len(coverage_of(path, "v_idx")) == 3
    assert coverage_of(path, "v_idx")[0] == [0, 1]  # the oldest stay
    check(path, range(NUM_ROWS))


def test_an_optimised_index_needs_no_reuse_history(path: Path) -> None:
    build(path, FLAT, num_segments=2)
    build(path, BTREE)
    build(path, NewIndex("z", "id", "ZONEMAP"))
    opened(path).delete("id % 10 = 0")
    opened(path).compact(indices="defer", target_rows_per_fragment=1000)
    optimize(path)
    opened(path).trim_reuse_index()
    names = {each.name for each in opened(path).snapshot.indices}
    assert names == {"v_idx", "p", "z"}
    check(path, [each for each in range(NUM_ROWS) if each % 10 != 0])
    assert verified(path) == []
    found = opened(path).scan(filter="id > 1990", columns=["id"]).read_all()
    assert found["id"].to_pylist() == [*range(1991, 2000)]


def test_an_index_that_has_outgrown_its_model_is_trained_anew(path: Path) -> None:
    build(path, NewIndex("v_idx", "v", "IVF_FLAT", {"target_partition_size": 500}))
    assert trained_rows(path) == {NUM_ROWS}
    write(path, range(NUM_ROWS, 2 * NUM_ROWS), 1000)
    stages = LocalStages()
    optimize(path, "v_idx", stages=stages)
    assert stages.ran == [("optimize-index", 1)]
    assert trained_rows(path) == {NUM_ROWS}
    write(path, range(2 * NUM_ROWS, 3 * NUM_ROWS), 1000)
    optimize(path, "v_idx", stages=stages)
    assert stages.ran[1:] == [("build-index", 1)]
    assert trained_rows(path) == {3 * NUM_ROWS}
    assert opened(path).index_statistics("v_idx").num_partitions == 12
    check(path, range(3 * NUM_ROWS))


@pytest.mark.parametrize("index_type", ["IVF_FLAT", "IVF_HNSW_SQ"])
def test_an_index_whose_new_rows_are_far_from_its_centroids_is_trained_anew(
    path: Path, index_type: str
) -> None:
    build(path, NewIndex("v_idx", "v", index_type, {"target_partition_size": 100}))
    write(path, range(NUM_ROWS, NUM_ROWS + 300), 100)
    stages = LocalStages()
    optimize(path, "v_idx", stages=stages, min_segment_rows=10)
    assert stages.ran == [("optimize-index", 1)]  # they are as the others
    elsewhere = rows_of(range(3000, 3500))
    moved = np.random.default_rng(1).standard_normal((500, DIMENSION)).astype(np.float32) * 9
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(moved.ravel()), DIMENSION)
    lance_core.write_dataset(
        path, elsewhere.set_column(3, "v", vectors), mode="append", max_rows_per_file=500
    )
    optimize(path, "v_idx", stages=stages, retrain_if_error=None)
    assert trained_rows(path) == {NUM_ROWS}
    lance_core.write_dataset(path, elsewhere.set_column(3, "v", vectors), mode="append")
    optimize(path, "v_idx", stages=stages)
    assert stages.ran[-1][0] == "build-index"
    assert trained_rows(path) == {NUM_ROWS + 1300}
    assert opened(path).index_statistics("v_idx").num_unindexed_rows == 0


def test_indices_are_built_anew_when_asked_for(path: Path) -> None:
    build(path, NewIndex("v_idx", "v", "IVF_SQ", {"num_partitions": 2, "metric": "cosine"}))
    build(path, BTREE, num_segments=3)
    optimize(path, retrain=True)
    assert coverage_of(path, "v_idx") == coverage_of(path, "p") == [[*range(10)]]
    kinds = [(each.name, each.index_type) for each in opened(path).list_indices()]
    assert sorted(kinds) == [("p", "BTREE"), ("v_idx", "IVF_SQ")]
    assert opened(path).index_statistics("v_idx").metric == "cosine"


def test_indices_that_are_not_built_here_are_told_of_and_left(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(path, BTREE)
    monkeypatch.setattr("pipeline.refresh.index_work", refusing)
    monkeypatch.setattr("pipeline.optimize.index_work", refusing)
    write(path, range(NUM_ROWS, NUM_ROWS + 100), 100)
    told = io.StringIO()
    context = local_context(path, progress=make_progress("json", told))
    assert optimize_indices(context, None, OptimizeRequest()) == opened(path).version
    assert refresh_indices(context, None, RefreshRequest("")) == opened(path).version
    events = [json.loads(each) for each in told.getvalue().splitlines()]
    warnings = [each["message"] for each in events if each["event"] == "warning"]
    assert warnings == ["index 'p' is left as it is: of no kind"] * 2
    with pytest.raises(InvalidRequestError, match="of no kind"):
        optimize(path, "p", "p")


def test_indices_of_rows_with_stable_ids_are_built_refreshed_and_merged(tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    lance_core.write_dataset(
        path, rows_of(range(NUM_ROWS)), max_rows_per_file=200, stable_row_ids=True
    )

    def others() -> None:
        opened(path).update({"price": 1000}, where="id >= 300 and id < 330")
        lance.dataset(str(path)).delete("id >= 1900")
        compact_deleted(path, 200, 0.05)

    context = local_context(path, stages=Interrupted(build_index=others))
    run_job(context, BuildIndex(context, BuildRequest(FLAT, num_segments=5, merge_to_rows=0)))
    refresh(path, "v_idx")
    assert opened(path).index_statistics("v_idx").num_unindexed_rows == 0
    check(path, range(1900))
    merge(path, "v_idx", NUM_ROWS)
    assert len(coverage_of(path, "v_idx")) == 1
    check(path, range(1900))
    assert verified(path) == []


def test_indices_that_pylance_made_are_kept_in_shape(path: Path) -> None:
    peer = lance.dataset(str(path))
    peer.create_index("v", "IVF_PQ", name="v_idx", num_partitions=2, num_sub_vectors=8)
    peer.create_scalar_index("text", "INVERTED", name="t")
    peer.create_scalar_index("price", "BTREE", name="p")
    write(path, range(NUM_ROWS, NUM_ROWS + 400), 100)
    refresh(path)
    assert [coverage_of(path, name) for name in ("v_idx", "t", "p")] == [
        [[*range(10)], [*range(10, 14)]]
    ] * 3
    for name in ("v_idx", "t", "p"):  # those of vectors have the model that pylance trained
        merge(path, name, 2 * NUM_ROWS)
        assert coverage_of(path, name) == [[*range(14)]]
    optimize(path, "v_idx", retrain=True)
    for query in QUERIES:
        assert nearest(path, query) == theirs(path, query)
    words = lance.dataset(str(path)).to_table(full_text_query="n2399", columns=["id", "_score"])
    assert words["id"].to_pylist() == [2399]
    found = lance.dataset(str(path)).to_table(filter="price = 11", columns=["id"])
    assert found["id"].to_pylist() == [each for each in range(2400) if each % 97 == 11]
    assert verified(path) == []


def test_numbers_that_make_no_sense_are_refused() -> None:
    with pytest.raises(InvalidRequestError, match="max_segments is 0"):
        OptimizeRequest(max_segments=0)
    with pytest.raises(InvalidRequestError, match=r"retrain_if_growth is 0\.5; give more than 1"):
        OptimizeRequest(retrain_if_growth=0.5)
    with pytest.raises(InvalidRequestError, match="retrain_if_error is 1; give more than 1"):
        OptimizeRequest(retrain_if_error=1)


def refusing(*_: object, **__: object) -> None:
    raise InvalidRequestError("of no kind")


def trained_rows(path: Path) -> set[int | None]:
    found = [training_of(each) for each in opened(path).segments_of("v_idx")]
    return {None if each is None else each.num_rows for each in found}


def compact_deleted(path: Path, target: int, threshold: float) -> None:
    opened(path).compact(
        indices="remap", target_rows_per_fragment=target, deletions_threshold=threshold
    )
