"""Streams into a dataset: each row once, whatever failed; read by pylance."""

from __future__ import annotations

from datetime import timedelta

import lance
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException

from lance_core.dataset import open_dataset
from lance_core.errors import InvalidRequestError, LanceError, TypeMismatchError
from pipeline import register
from pipeline.stream_files import FileStream
from pipeline.streaming import foreach_batch_writer, run_file_stream
from tests.stream_sinks import DIMENSION, FailingSink, fail_if_told
from tests.verified import verified

NUM_FILES, ROWS = 4, 30


@pytest.fixture
def folder(tmp_path):
    """Files of rows; each is an epoch."""
    folder = tmp_path / "source"
    folder.mkdir()
    for number in range(NUM_FILES):
        ids = np.arange(ROWS) + number * ROWS
        vectors = pa.array([[float(i)] * DIMENSION for i in ids], pa.list_(pa.float32()))
        pq.write_table(pa.table({"id": ids, "vector": vectors}), folder / f"{number}.parquet")
    return folder


@pytest.fixture
def source(spark, folder):
    register(spark)
    spark.dataSource.register(FailingSink)
    stream = spark.readStream.schema("id long, vector array<float>")
    return stream.option("maxFilesPerTrigger", 1).parquet(str(folder))


@pytest.fixture
def target(tmp_path):
    return tmp_path / "a.lance"


def sink(source, target, checkpoint="checkpoint", **options):
    """Start a query of the sink that ends when it has seen all files."""
    writer = source.writeStream.format("failing_lance").trigger(availableNow=True)
    known = {
        "checkpointLocation": target.parent / checkpoint,
        "failAfter": target.parent / "fail",
        "vectors": f"vector={DIMENSION}",
        **options,
    }
    return writer.options(**known).start(str(target))


def batches(source, target, checkpoint="checkpoint", **options):
    """Start a query of the function for micro-batches."""
    write = foreach_batch_writer(str(target), vectors={"vector": DIMENSION}, **options)

    def write_and_fail(rows, number):
        write(rows, number)
        fail_if_told(target.parent / "fail", number)

    writer = source.writeStream.foreachBatch(write_and_fail).trigger(availableNow=True)
    return writer.option("checkpointLocation", target.parent / checkpoint).start()


def ids(target):
    return sorted(lance.dataset(str(target)).to_table(columns=["id"])["id"].to_pylist())


@pytest.mark.parametrize("start", [sink, batches])
@pytest.mark.parametrize("cleans_up", [False, True])
def test_a_commit_that_fails_after_its_effect_leaves_each_row_once(
    source, target, start, cleans_up
):
    (target.parent / "fail").write_text("1")
    with pytest.raises(StreamingQueryException, match="the answer was lost"):
        start(source, target).awaitTermination()
    assert len(set(ids(target))) == len(ids(target)) == 2 * ROWS
    if cleans_up:
        open_dataset(target).cleanup(older_than=timedelta(0), delete_unverified=True)
    query = start(source, target)
    query.awaitTermination()
    assert ids(target) == list(range(NUM_FILES * ROWS))
    assert verified(target) == []
    assert properties_of(target) == {
        "pipeline.kind": "stream-ingest",
        "pipeline.item_count": "1",
        "pipeline.stream.query_id": query.id,
        "pipeline.stream.epoch": str(NUM_FILES - 1),
        "pipeline.stream.checkpoint": str(target.parent / "checkpoint") if start is sink else "",
    }
    nearest = {"column": "vector", "q": [17.0] * DIMENSION, "k": 1}
    assert lance.dataset(str(target)).to_table(nearest=nearest)["id"].to_pylist() == [17]


def properties_of(target):
    """Return what pylance reads of the newest version's transaction."""
    dataset = lance.dataset(str(target))
    transaction = dataset.read_transaction(dataset.version)
    assert transaction is not None
    return transaction.transaction_properties


def test_two_queries_write_to_one_table(source, target):
    queries = [sink(source, target, "first"), batches(source, target, "second")]
    for query in queries:
        query.awaitTermination()
    assert ids(target) == sorted([*range(NUM_FILES * ROWS)] * 2)
    assert verified(target) == []


def test_a_query_that_is_complete_replaces_all_rows_each_time(source, target):
    counted = source.groupBy((source.id % 2).alias("id")).count()
    writer = (
        counted.writeStream.format("lance_py").outputMode("complete").trigger(availableNow=True)
    )
    query = writer.option("checkpointLocation", target.parent / "c").start(str(target))
    query.awaitTermination()
    half = NUM_FILES * ROWS // 2
    rows = lance.dataset(str(target)).to_table().sort_by("id")
    assert rows.to_pydict() == {"id": [0, 1], "count": [half, half]}
    assert lance.dataset(str(target)).count_rows() == 2


@pytest.mark.parametrize("mode", ["update", "complete"])
def test_rows_that_are_updated_or_replaced_are_not_appended(source, target, mode):
    counted = source.groupBy("id").count()
    write = foreach_batch_writer(str(target))
    writer = counted.writeStream.foreachBatch(write).outputMode(mode).trigger(availableNow=True)
    query = writer.option("checkpointLocation", target.parent / "c").start()
    with pytest.raises(StreamingQueryException, match=f"output mode is {mode}"):
        query.awaitTermination()
    assert not target.exists()


def test_two_queries_cannot_share_a_name(source, target):
    sink(source, target, "first", queryId="orders").awaitTermination()
    with pytest.raises(StreamingQueryException, match="two queries cannot share a queryId"):
        sink(source, target, "second", queryId="orders").awaitTermination()
    assert ids(target) == [*range(NUM_FILES * ROWS)]


def test_lines_of_files_are_streamed_and_errors_are_those_of_the_writer(spark, tmp_path, target):
    files = FileStream(str(tmp_path / "lines"), "json", str(tmp_path / "checkpoint"))
    with pytest.raises(InvalidRequestError, match="cannot be read as json"):
        run_file_stream(spark, files, foreach_batch_writer(str(target)))
    (tmp_path / "lines").mkdir()
    (tmp_path / "lines" / "a.json").write_text('{"id": 1}\n{"id": 2}\n')
    lance.write_dataset(pa.table({"id": [["a list"]]}), str(target))
    with pytest.raises(TypeMismatchError, match="'id' is list"):
        run_file_stream(spark, files, foreach_batch_writer(str(target)))
    lance.write_dataset(pa.table({"id": [0]}), str(target), mode="overwrite")
    for _ in range(2):
        run_file_stream(spark, files, foreach_batch_writer(str(target)))
    assert ids(target) == [0, 1, 2]


def test_rows_that_are_no_vectors_of_the_dimension_are_told_in_a_line(
    spark, folder, tmp_path, target
):
    files = FileStream(str(folder), "parquet", str(tmp_path / "checkpoint"))
    wrong = foreach_batch_writer(str(target), vectors={"vector": DIMENSION + 1})
    with pytest.raises(InvalidRequestError, match=f"a list has {DIMENSION} items") as told:
        run_file_stream(spark, files, wrong)
    assert "Traceback" not in str(told.value)
    with pytest.raises(InvalidRequestError, match="leave the dimension out, or write to another"):
        run_file_stream(
            spark, files, foreach_batch_writer(str(target), vectors={"vector": DIMENSION})
        )


def test_a_stream_that_cannot_begin_or_go_on_is_told_in_a_line(spark, folder, tmp_path, target):
    write = foreach_batch_writer(str(target))
    files = FileStream(str(folder), "parquet", str(tmp_path / "checkpoint"), "soon")
    with pytest.raises(InvalidRequestError, match="a trigger is written '1 minute'"):
        run_file_stream(spark, files, write)
    files = FileStream(str(folder), "json", str(tmp_path / "checkpoint"))
    with pytest.raises(LanceError) as told:
        run_file_stream(spark, files, write)
    assert "\n" not in str(told.value)
