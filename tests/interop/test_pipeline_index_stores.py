"""Index jobs on a dataset in an object store, with their journals and models there too."""

from __future__ import annotations

import lance
import numpy as np
import pytest

import lance_core
from lance_core.operations.new_index import NewIndex
from pipeline.build import BuildIndex, BuildRequest
from pipeline.job import JobContext, run_job
from pipeline.journal import Journal, default_state_uri, new_job_id
from pipeline.optimize import OptimizeRequest, optimize_indices
from pipeline.progress import make_progress
from pipeline.sample import TrainOptions
from tests.aws_server import aws_server
from tests.pipeline_stages import LocalStages
from tests.pipeline_tables import exact, rows_of, vectors_of

pytestmark = pytest.mark.interop

BUCKET, NUM_ROWS = "indices", 800
FLAT = NewIndex("v_idx", "v", "IVF_FLAT", {"num_partitions": 4})


@pytest.fixture(scope="module")
def server():
    with aws_server() as running:
        running.create_bucket(BUCKET)
        yield running


@pytest.mark.parametrize("name", ["a.lance", "b c 100%25.lance"])
def test_an_index_is_trained_built_and_optimised(server, name) -> None:
    uri, options = f"s3://{BUCKET}/{name}", server.storage_options
    dataset = lance_core.write_dataset(
        uri, rows_of(range(NUM_ROWS)), max_rows_per_file=200, storage_options=options
    )

    def context() -> JobContext:
        state = default_state_uri(uri)
        progress = make_progress("none")
        return JobContext(uri, options, new_job_id("t"), state, LocalStages(), progress)

    how = TrainOptions(mode="distributed")
    request = BuildRequest(FLAT, num_segments=4, merge_to_rows=NUM_ROWS // 2, train=how)
    building = context()
    assert run_job(building, BuildIndex(building, request)) == 2
    dataset.append(rows_of(range(NUM_ROWS, NUM_ROWS + 100)))
    assert optimize_indices(context(), None, OptimizeRequest(max_segments=1)) == 4
    model = Journal.of(building.state_uri, f"{building.job_id}.model", options)
    kept = [each for each in model.names() if "/" not in each and not each.startswith("lease")]
    assert sorted(kept) == ["commit.json", "model.bin", "model.json", "plan.json"]
    ours = lance_core.open_dataset(uri, storage_options=options)
    peer = lance.dataset(uri, storage_options=options) if "%" not in name else None
    assert len(ours.segments_of("v_idx")) == 1
    for query in vectors_of(range(5000, 5005)):
        best = exact(np.arange(NUM_ROWS + 100), query)
        found = ours.search(query, 10, column="v", columns=["id"], nprobes=4)
        assert found["id"].to_pylist() == best
        if peer is not None:
            wanted = {"column": "v", "q": query, "k": 10, "nprobes": 4}
            theirs = peer.to_table(columns=["id", "_distance"], nearest=wanted)
            assert theirs["id"].to_pylist() == best
