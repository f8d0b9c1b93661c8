"""Index jobs on Spark: each once from end to end, with faults of tasks and of the driver."""

from __future__ import annotations

from typing import Any

import lance
import numpy as np
import pytest

import lance_core
from lance_core.operations.new_index import NewIndex
from pipeline.build import BuildIndex, BuildRequest
from pipeline.errors import StageFailedError
from pipeline.index_items import model_at
from pipeline.job import run_job
from pipeline.merge import MergeRequest, MergeSegments
from pipeline.optimize import OptimizeRequest, optimize_indices, refresh_indices
from pipeline.refresh import RefreshRequest
from pipeline.sample import TrainOptions
from pipeline.train import train_model
from tests.pipeline_tables import coverage_of, exact, nearest, theirs, vectors_of, write
from tests.pipeline_workers import faulty

NUM_ROWS = 16_000
QUERIES = vectors_of(range(50_000, 50_010))
PQ = NewIndex("v_idx", "v", "IVF_PQ", {"num_partitions": 8, "num_sub_vectors": 8})


@pytest.fixture
def path(tmp_path):
    """Sixteen fragments of a thousand rows."""
    write(tmp_path / "t.lance", range(NUM_ROWS), 1000)
    return tmp_path / "t.lance"


def test_an_index_is_trained_built_merged_refreshed_and_optimised(path, spark_context) -> None:
    trained = train_model(spark_context(path), PQ, options=TrainOptions(mode="distributed"))
    context = spark_context(path, job_id="build")
    job = BuildIndex(
        context,
        BuildRequest(PQ, model=trained.uri, num_segments=8, merge_to_rows=NUM_ROWS // 2),
    )
    assert run_job(context, job) == 2
    assert coverage_of(path, "v_idx") == [[*range(8)], [*range(8, 16)]]
    alone = write(path.with_name("alone.lance"), range(NUM_ROWS), 1000)
    built = alone.build_segment(PQ, model=model_at(trained.uri, None))
    alone.commit_segments("v_idx", [built])
    for query in QUERIES:
        found = nearest(path, query)
        assert found == nearest(path.with_name("alone.lance"), query) == theirs(path, query)

    write(path, range(NUM_ROWS, NUM_ROWS + 500), 250)
    context = spark_context(path)
    refresh_indices(context, ["v_idx"], RefreshRequest("", num_segments=2))
    context = spark_context(path)
    run_job(context, MergeSegments(context, MergeRequest("v_idx", 8500)))
    assert coverage_of(path, "v_idx") == [[*range(8)], [*range(8, 18)]]
    context = spark_context(path)
    optimize_indices(context, None, OptimizeRequest(max_segments=1))
    assert coverage_of(path, "v_idx") == [[*range(18)]]
    for query in QUERIES:
        assert nearest(path, query) == theirs(path, query)
        assert len({*nearest(path, query, refine_factor=20)} & {*exact(all_ids(500), query)}) >= 9


@pytest.mark.parametrize("index_type", ["BTREE", "INVERTED"])
def test_values_and_texts_are_indexed(path, spark_context, index_type) -> None:
    column = "price" if index_type == "BTREE" else "text"
    context = spark_context(path)
    index = NewIndex("i", column, index_type)
    run_job(context, BuildIndex(context, BuildRequest(index, num_segments=4, merge_to_rows=9000)))
    assert coverage_of(path, "i") == [[*range(8)], [*range(8, 16)]]
    dataset = lance_core.open_dataset(path)
    if index_type == "BTREE":
        found = lance.dataset(str(path)).to_table(filter="price = 11", columns=["id"])
        assert found["id"].to_pylist() == [each for each in range(NUM_ROWS) if each % 97 == 11]
    else:
        assert dataset.search_text("n15999", 1)["id"].to_pylist() == [15_999]


@pytest.mark.parametrize("fault", ["raise", "exit", "twice"])
def test_tasks_that_fail_leave_one_version_with_every_row_once(
    path, spark_context, tmp_path, monkeypatch, fault
) -> None:
    real = BuildIndex.worker
    marks = tmp_path / "marks"
    marks.mkdir()
    monkeypatch.setattr(BuildIndex, "worker", lambda job: faulty(real(job), str(marks), fault))
    context = spark_context(path)
    how: dict[str, Any] = {"num_segments": 4, "merge_to_rows": 0}
    assert run_job(context, BuildIndex(context, BuildRequest(PQ, **how))) == 2
    assert len(list(marks.iterdir())) == 4
    assert len(coverage_of(path, "v_idx")) == 4
    assert lance.dataset(str(path)).stats.index_stats("v_idx")["num_indexed_rows"] == NUM_ROWS
    assert nearest(path, QUERIES[0]) == theirs(path, QUERIES[0])


def test_a_job_of_which_a_task_failed_for_good_goes_on_later(
    path, spark_context, monkeypatch
) -> None:
    real = BuildIndex.worker
    monkeypatch.setattr(BuildIndex, "worker", lambda job: refuse_first)
    request = BuildRequest(PQ, num_segments=3, merge_to_rows=0)
    context = spark_context(path, job_id="j")
    with pytest.raises(StageFailedError, match=r"fragments 0 to 4.*told to fail"):
        run_job(context, BuildIndex(context, request))
    assert lance_core.open_dataset(path).version == 1
    monkeypatch.setattr(BuildIndex, "worker", real)
    context = spark_context(path, job_id="j")
    assert run_job(context, BuildIndex(context, request)) == 2
    assert sum(map(len, coverage_of(path, "v_idx"))) == 16


def refuse_first(item: bytes) -> bytes:
    raise RuntimeError("told to fail")


def all_ids(num_more):
    return np.arange(NUM_ROWS + num_more)
