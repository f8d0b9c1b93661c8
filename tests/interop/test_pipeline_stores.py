"""Ingest from and to an object store, with its journal there too."""

from __future__ import annotations

import json

import lance
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lance_core.errors import StoreError, StoreUnavailableError
from lance_core.io.obstore_store import ObStore
from pipeline.errors import StageFailedError
from pipeline.ingest import Vectors, ingest_files
from pipeline.ingest_sources import Sources
from pipeline.ingest_target import Place
from pipeline.job import JobContext
from pipeline.journal import default_state_uri, open_jobs
from pipeline.progress import make_progress
from pipeline.source_input import SourceFile
from tests.aws_server import aws_server
from tests.pipeline_stages import LocalStages

BUCKET, DIM = "ingest", 4


@pytest.fixture(scope="module")
def server():
    with aws_server() as running:
        running.create_bucket(BUCKET)
        yield running


def put(server, name, data):
    server.client("s3").put_object(Bucket=BUCKET, Key=name, Body=data)


def rows(count, start):
    vectors = list(np.full((count, DIM), start, np.float32))
    return pa.table({"id": range(start, start + count), "v": vectors})


def parquet(table):
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, row_group_size=30)
    return sink.getvalue().to_pybytes()


def context_of(server, uri, job_id="job"):
    options = server.storage_options
    state = default_state_uri(uri)
    return JobContext(uri, options, job_id, state, LocalStages(), make_progress("none"))


def ingested(server, name, folder, **vectors):
    uri = f"s3://{BUCKET}/{name}.lance"
    context = context_of(server, uri)
    sources = Sources((f"s3://{BUCKET}/{folder}/",), server.storage_options)
    place = Place(uri, server.storage_options)
    return ingest_files(context, sources, place, vectors=Vectors(**vectors), task_rows=40)


def test_a_folder_of_a_bucket_is_ingested_and_the_job_found_done(server):
    put(server, "rows/a.parquet", parquet(rows(100, 0)))
    lines = "".join(json.dumps(row) + "\n" for row in rows(100, 100).to_pylist())
    put(server, "rows/b.jsonl", lines.encode())
    put(server, "rows/_SUCCESS", b"")
    put(server, "rows/notes.txt", b"x")
    assert ingested(server, "a", "rows", columns=("v",)) == 1
    assert ingested(server, "a", "rows", columns=("v",)) == 1
    uri = f"s3://{BUCKET}/a.lance"
    table = lance.dataset(uri, storage_options=server.storage_options).to_table()
    assert table["id"].to_pylist() == list(range(200))
    assert table["v"].type == pa.list_(pa.float32(), DIM)
    assert open_jobs(default_state_uri(uri), server.storage_options) == []


def test_a_store_that_fails_while_a_file_is_read_is_no_fault_of_the_file(server, monkeypatch):
    put(server, "more/a.parquet", parquet(rows(100, 0)))
    read, calls = ObStore.get_range, []

    def fails(self, path, start, end):
        if path.endswith("a.parquet"):
            calls.append(path)
            if len(calls) > 6:
                raise StoreUnavailableError("no answer")
        return read(self, path, start, end)

    monkeypatch.setattr(ObStore, "get_range", fails)
    with pytest.raises((StageFailedError, StoreError), match="no answer"):
        ingested(server, "b", "more")
    monkeypatch.setattr(ObStore, "get_range", read)
    assert ingested(server, "b", "more") == 1


@pytest.mark.parametrize("block", [1, 3, 1000])
def test_lines_are_found_wherever_blocks_end(server, monkeypatch, block):
    monkeypatch.setattr("pipeline.source_input._BLOCK_BYTES", block)
    put(server, "lines.csv", b"ab\n\ncdef\ng")
    file = SourceFile(f"s3://{BUCKET}/lines.csv", server.storage_options)
    assert [file.line_start(at) for at in range(11)] == [0, 3, 3, 3, 4, 9, 9, 9, 9, 9, 10]
    assert file.open(4, 9).read() == b"cdef\n"
