"""Ingest on Spark: the command, faults of workers, frames; all read back by pylance."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

import lance
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as f
from typer.testing import CliRunner

from lance_core.errors import InvalidRequestError, UnsupportedFeatureError
from pipeline.cli import common
from pipeline.cli.main import app
from pipeline.convert import OnBadVector
from pipeline.dataframes import arrow_schema_of, ingest_dataframe
from pipeline.errors import StageFailedError
from pipeline.ingest import Vectors, ingest_files
from pipeline.ingest_sources import Sources
from pipeline.ingest_target import Mode, Place
from tests.pipeline_workers import faulty

ROWS, DIM = 20_000, 32


@pytest.fixture
def files(tmp_path):
    folder = tmp_path / "rows"
    folder.mkdir()
    vectors = np.random.default_rng(0).random((ROWS, DIM), np.float32)
    table = pa.table({"id": range(ROWS), "v": list(vectors)})
    for number in range(4):
        piece = table.slice(number * 5000, 5000)
        pq.write_table(piece, folder / f"{number}.parquet", row_group_size=2500)
    return folder


@pytest.fixture
def command(spark, monkeypatch):
    """Return what runs a command in the session that is there."""
    monkeypatch.setattr(common, "make_session", lambda *_, **__: spark)
    monkeypatch.setattr(common, "stop_session", lambda _: None)
    return lambda *arguments: CliRunner().invoke(app, list(map(str, arguments)))


def test_the_command_writes_a_dataset_that_pylance_reads_and_says_what_it_does(
    command, files, tmp_path
):
    uri = tmp_path / "a.lance"
    given = ["ingest", files, "--uri", uri, "--vector-column", "v", "--task-rows", "2500"]
    done = command(*given, "--progress", "json", "--job-id", "first")
    assert done.exit_code == 0, done.stderr
    events = [json.loads(line) for line in done.stderr.splitlines()]
    names = [event["event"] for event in events if event["event"] != "progress"]
    assert names == ["phase_start", "phase_end", "written", "commit", "summary"]
    assert events[0]["items"] == 8
    assert events[0]["rows"] == ROWS
    dataset = lance.dataset(str(uri))
    table = dataset.to_table()
    assert table["id"].to_pylist() == list(range(ROWS))
    assert table["v"].type == pa.list_(pa.float32(), DIM)
    expected = pa.concat_tables(map(pq.read_table, sorted(files.iterdir())))
    assert table["v"].to_pylist() == expected["v"].to_pylist()
    assert command(*given, "--job-id", "first").exit_code == 0
    assert lance.dataset(str(uri)).version == 1


def test_the_command_ends_with_a_code_for_each_kind_of_failure(command, files, tmp_path):
    uri = tmp_path / "a.lance"
    pq.write_table(pa.table({"id": [1], "v": [[1.0]]}), files / "4.parquet")
    given = ["ingest", files, "--uri", uri, "--vector-column", "v", "--progress", "none"]
    failed = command(*given, "--task-rows", "5000")
    assert failed.exit_code == common.TASKS
    assert "4.parquet, row 0" in failed.stderr
    assert command(*given, "--type", "id").exit_code == common.USAGE
    assert command("ingest", files / "none.csv", "--uri", uri).exit_code == common.USAGE
    assert not (uri / "_versions").exists()


class Faulty:
    """Stages whose items have a fault the first time they are run."""

    def __init__(self, stages, folder, fault):
        self._stages, self._folder, self._fault = stages, str(folder), fault

    def run(self, name, items, worker, *, weights=None):
        wrapped = faulty(worker, self._folder, self._fault)
        return self._stages.run(name, items, wrapped, weights=weights)


@pytest.mark.parametrize("fault", ["raise", "exit", "twice"])
def test_workers_that_fail_die_or_lose_their_results_leave_each_row_once(
    spark_context, spark_stages, files, tmp_path, fault
):
    context = spark_context(tmp_path / "a.lance", stages=Faulty(spark_stages, tmp_path, fault))
    place = Place(context.uri)
    assert ingest_files(context, Sources((str(files),)), place, task_rows=10_000) == 1
    assert lance.dataset(context.uri).to_table()["id"].to_pylist() == list(range(ROWS))
    assert len(list((tmp_path / "a.lance" / "data").iterdir())) == (2 if fault == "raise" else 4)


def frame_of(spark, count=100):
    """Return ids, and vectors as lists and as bytes, in four partitions."""
    vectors = np.arange(count * 4, dtype=np.float32).reshape(count, 4)
    table = pa.table(
        {
            "id": range(count),
            "lists": list(vectors),
            "bytes": [row.tobytes() for row in vectors],
        }
    )
    return spark.createDataFrame(table).repartitionById(4, (f.col("id") / 25).cast("int"))


def test_partitions_of_a_frame_become_fragments_in_their_order(spark, tmp_path):
    place = Place(str(tmp_path / "a.lance"), stable_row_ids=True)
    frame = frame_of(spark).withColumn("lists", f.col("lists").alias("lists", metadata={"dim": 4}))
    vectors = Vectors(("bytes",))
    assert ingest_dataframe(frame, place, vectors=vectors, job_id="one") == 1
    assert ingest_dataframe(frame, place, vectors=vectors, job_id="one") == 1
    dataset = lance.dataset(place.uri)
    table = dataset.to_table()
    assert table["id"].to_pylist() == list(range(100))
    assert [each.count_rows() for each in dataset.get_fragments()] == [25] * 4
    assert table["lists"].type == table["bytes"].type == pa.list_(pa.float32(), 4)
    assert table["lists"].to_pylist() == table["bytes"].to_pylist()
    assert table["lists"][99].as_py() == [396.0, 397.0, 398.0, 399.0]
    committed = dataset.read_transaction(1)
    assert committed is not None
    assert committed.transaction_properties["pipeline.kind"] == "ingest-dataframe"  # type: ignore[index]


def test_a_frame_is_appended_by_the_types_of_the_table_and_clustered_if_asked(spark, tmp_path):
    place = Place(str(tmp_path / "a.lance"))
    ingest_dataframe(frame_of(spark).drop("bytes"), place, vectors=Vectors(("lists",)))
    more = frame_of(spark).select((f.lit(199) - f.col("id")).alias("id"), "lists")
    assert ingest_dataframe(more, place, cluster_by=["id"], task_rows=50) == 2
    dataset = lance.dataset(place.uri)
    assert dataset.to_table()["id"].to_pylist() == list(range(200))
    assert [each.count_rows() for each in dataset.get_fragments()][4:] == [50, 50]
    assert dataset.schema.field("lists").type == pa.list_(pa.float32(), 4)


def test_bad_vectors_of_a_frame_are_named_or_left_out(spark, tmp_path):
    place = Place(str(tmp_path / "a.lance"))
    rows = [(1, [1.0, 2.0]), (2, [1.0]), (3, None)]
    frame = spark.createDataFrame(rows, "id int, v array<float>").coalesce(1)
    with pytest.raises(StageFailedError, match=r'partition 0, row 1, column "v"'):
        ingest_dataframe(frame, place, vectors=Vectors(("v",)))
    ingest_dataframe(frame, place, vectors=Vectors(("v",), on_bad=OnBadVector.DROP))
    found = lance.dataset(place.uri).to_table().to_pylist()
    assert found == [{"id": 1, "v": [1.0, 2.0]}, {"id": 3, "v": None}]
    with pytest.raises(InvalidRequestError, match="holds no vector"):
        ingest_dataframe(
            frame.where("id = 3"), Place(place.uri, mode=Mode.OVERWRITE), vectors=Vectors(("v",))
        )


TYPES = {
    "boolean": True,
    "tinyint": 1,
    "smallint": 2,
    "int": 3,
    "bigint": 4,
    "float": 1.5,
    "double": 0.1,
    "string": "ü",
    "binary": b"\0x",
    "date": dt.date(2026, 11, 28),
    "timestamp": dt.datetime(2026, 11, 28, 1, 2, 3, tzinfo=dt.UTC),
    "timestamp_ntz": dt.datetime(2026, 11, 28, 1, 2, 3),  # noqa: DTZ001 - without a zone
    "interval day to second": dt.timedelta(days=1, seconds=2),
    "decimal(38,3)": Decimal("1.125"),
    "array<float>": [1.0, None],
    "array<array<string>>": [["a"], []],
    "struct<a:int,b:array<double>>": {"a": 1, "b": [2.0]},
    "map<string,int>": {"k": 1},
}
REFUSED = ("interval year to month", "interval", "variant", "array<struct<a: variant>>")


def test_each_type_of_a_frame_is_stored_or_refused(spark, tmp_path):
    schema = ", ".join(f"`c{number}` {kind}" for number, kind in enumerate(TYPES))
    frame = spark.createDataFrame([tuple(TYPES.values()), (None,) * len(TYPES)], schema).coalesce(1)
    place = Place(str(tmp_path / "a.lance"))
    ingest_dataframe(frame, place)
    table = lance.dataset(place.uri).to_table()
    assert table.schema.field("c14").type == pa.list_(pa.float32())
    first, second = table.to_pylist()
    expected = {**dict(zip(table.schema.names, TYPES.values(), strict=True)), "c17": [("k", 1)]}
    assert first == expected
    assert set(second.values()) == {None}
    assert not arrow_schema_of(frame).field("c3").metadata
    for kind in REFUSED:
        with pytest.raises(UnsupportedFeatureError, match="column"):
            arrow_schema_of(spark.sql(f"select cast(null as {kind}) as x"))
