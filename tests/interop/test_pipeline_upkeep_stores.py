"""All upkeep of a dataset in an object store, with journals and answers there too."""

from __future__ import annotations

from datetime import timedelta

import lance
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lance_core
from lance_core.operations.cleanup_plan import CleanupOptions
from lance_core.operations.compact_plan import CompactionOptions
from lance_core.operations.new_index import NewIndex
from pipeline.build import BuildIndex, BuildRequest
from pipeline.compact import compact
from pipeline.compact_plan import CompactionWish
from pipeline.gc import clean_up_dataset
from pipeline.job import JobContext, run_job
from pipeline.journal import default_state_uri, new_job_id
from pipeline.optimize import OptimizeRequest, optimize_indices, refresh_indices
from pipeline.progress import make_progress
from pipeline.refresh import RefreshRequest
from pipeline.search import QuerySource, batch_search
from pipeline.search_output import LanceOutput, ParquetOutput
from pipeline.search_work import BatchSearch
from pipeline.status import status_of
from pipeline.trim import trim_fri
from tests.aws_server import aws_server
from tests.pipeline_stages import LocalStages
from tests.pipeline_tables import exact, rows_of, vectors_of

pytestmark = pytest.mark.interop

BUCKET, NUM_ROWS, K = "upkeep", 800, 10
URI, SEARCHED = f"s3://{BUCKET}/t.lance", f"s3://{BUCKET}/searched.lance"
ANSWERS = f"s3://{BUCKET}/answers"
INDICES = [
    NewIndex("v_idx", "v", "IVF_FLAT", {"num_partitions": 4}),
    NewIndex("id_idx", "id", "BTREE"),
]
QUERIES = vectors_of(range(5000, 5005))


@pytest.fixture(scope="module")
def server():
    with aws_server() as running:
        running.create_bucket(BUCKET)
        yield running


def context_of(options, uri=URI):
    progress = make_progress("none")
    state = default_state_uri(uri)
    return JobContext(uri, options, new_job_id("t"), state, LocalStages(), progress)


def check(options, ids):
    ours = lance_core.open_dataset(URI, storage_options=options)
    theirs = lance.dataset(URI, storage_options=options)
    assert list(ours.verify()) == []
    for query in QUERIES:
        best = exact(np.asarray(ids), query)
        found = ours.search(query, K, column="v", columns=["id"], nprobes=4)
        wanted = {"column": "v", "q": query, "k": K, "nprobes": 4}
        peer = theirs.to_table(columns=["id", "_distance"], nearest=wanted)
        assert found["id"].to_pylist() == best == peer["id"].to_pylist()
    some = ids[7]
    assert ours.count_rows(f"id = {some}") == theirs.count_rows(f"id = {some}") == 1


def answered(options, output):
    lists = pa.array(QUERIES.tolist(), pa.list_(pa.float32()))
    source = QuerySource("some queries", lambda: [pa.record_batch({"q": lists})])
    search = BatchSearch(k=K, nprobes=4, columns=("id",))
    return batch_search(context_of(options, SEARCHED), search, source, output, plan="B")


def test_a_dataset_in_a_bucket_is_indexed_compacted_followed_searched_and_cleaned(server):
    options = server.storage_options
    dataset = lance_core.write_dataset(
        URI, rows_of(range(NUM_ROWS)), max_rows_per_file=100, storage_options=options
    )
    for index in INDICES:
        building = context_of(options)
        run_job(building, BuildIndex(building, BuildRequest(index, num_segments=2)))
    dataset = dataset.append(rows_of(range(NUM_ROWS, NUM_ROWS + 100)))
    dataset.delete("id < 50")
    live = list(range(50, NUM_ROWS + 100))
    refresh_indices(context_of(options), None, RefreshRequest(""))
    check(options, live)
    compact(context_of(options), CompactionWish(CompactionOptions(400, 0.1)))
    check(options, live)
    assert trim_fri(context_of(options), max_versions=0).num_after == 0
    optimize_indices(context_of(options), None, OptimizeRequest(max_segments=1))
    check(options, live)
    status = status_of(context_of(options))
    assert all(each.num_unindexed_rows == 0 for each in status.indices)
    assert all(job.state == "done" for job in status.jobs)
    cleaned = clean_up_dataset(
        context_of(options),
        CleanupOptions(older_than=timedelta(0)),
        forget_jobs_after=timedelta(0),
    )
    assert len(cleaned.report.versions) > 5
    assert len(cleaned.forgotten_jobs) == len(status.jobs)
    assert status_of(context_of(options)).jobs == ()
    check(options, live)


def test_answers_to_a_batch_of_queries_come_into_a_bucket(server):
    options = server.storage_options
    lance_core.write_dataset(
        SEARCHED, rows_of(range(NUM_ROWS)), max_rows_per_file=100, storage_options=options
    ).create_index("v", "IVF_FLAT", num_partitions=4)
    live = np.arange(NUM_ROWS)
    expected = [id_ for query in QUERIES for id_ in exact(live, query)]
    pairs = tuple(options.items())
    answered(options, LanceOutput(f"{ANSWERS}.lance", pairs))
    written = lance_core.open_dataset(f"{ANSWERS}.lance", storage_options=options)
    ordered = written.scan().read_all().sort_by([("query_id", "ascending"), ("rank", "ascending")])
    assert ordered["id"].to_pylist() == expected
    answered(options, ParquetOutput(ANSWERS, pairs))
    client = server.client("s3")
    listed = client.list_objects_v2(Bucket=BUCKET, Prefix="answers/")["Contents"]
    files = [each["Key"] for each in listed if each["Key"].endswith(".parquet")]
    bodies = [client.get_object(Bucket=BUCKET, Key=each)["Body"].read() for each in files]
    found = pa.concat_tables(pq.read_table(pa.BufferReader(body)) for body in bodies)
    assert found.sort_by([("query_id", "ascending"), ("rank", "ascending")])["id"] == ordered["id"]
