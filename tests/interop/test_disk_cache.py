"""Datasets in S3, read through the local disk by one process after another."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import lance
import numpy as np
import orjson
import pytest

from lance_core.dataset import open_dataset
from lance_core.dataset.face import Dataset
from lance_core.io.counting_store import CountingStore
from lance_core.io.disk_tier import DiskTier
from lance_core.query.session import Session
from lance_core.table.dataset_stores import KEPT_OBJECTS, open_dataset_store
from lance_core.table.snapshot import open_snapshot
from service.api.identifiers import to_table
from service.app import create_app
from service.catalog.freshness import Freshness
from service.catalog.pins import LATEST
from service.settings import Settings
from tests.aws_server import aws_server
from tests.filtered_tables import draw, rows, write_table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.aws_server import AwsServer

pytestmark = pytest.mark.interop

URI = "s3://bucket/a.lance"
QUERY = draw(3, 1)[0]
PROGRAM = """
import sys, orjson
from lance_core.dataset import open_dataset
from lance_core.query.session import Session
uri, options, folder, query = orjson.loads(sys.stdin.read())
dataset = open_dataset(uri, session=Session(disk_cache=folder), storage_options=options)
found = dataset.search(query, k=5, columns=["id"], nprobes=4)
ids = found["id"].to_pylist()
print(orjson.dumps([ids, dataset.session.disk_cache_stats.hits]).decode())
"""


@pytest.fixture(scope="module")
def server() -> Iterator[AwsServer]:
    with aws_server() as running:
        running.create_bucket("bucket")
        yield running


@pytest.fixture
def aws(server: AwsServer, tmp_path: Path) -> Iterator[AwsServer]:
    write_table(tmp_path / "a.lance", "two segments", "IVF_PQ", "l2")
    upload(server, tmp_path / "a.lance")
    yield server
    empty(server)


def upload(server: AwsServer, folder: Path) -> None:
    for file in folder.rglob("*"):
        if file.is_file():
            key = f"a.lance/{file.relative_to(folder)}"
            server.client("s3").put_object(Bucket="bucket", Key=key, Body=file.read_bytes())


def empty(server: AwsServer) -> None:
    client = server.client("s3")
    for page in client.get_paginator("list_objects_v2").paginate(Bucket="bucket"):
        for each in page.get("Contents", []):
            client.delete_object(Bucket="bucket", Key=each["Key"])


def ask(server: AwsServer, folder: Path) -> tuple[list[int], CountingStore]:
    """Answer a query as a process does that starts with nothing in memory."""
    session = Session()
    store = CountingStore(open_dataset_store(URI, server.storage_options))
    tiered = DiskTier(folder, 1 << 28, KEPT_OBJECTS).over(store)
    dataset = Dataset(session, open_snapshot(session.scheduler_for(tiered)))
    result = dataset.search(QUERY, k=5, columns=["id"], nprobes=4)
    assert dataset.take([0, 100, 2000], ["id", "share"]).num_rows == 3
    return result["id"].to_pylist(), store


def test_the_second_one_reads_nothing_of_the_store_but_the_listing(
    aws: AwsServer, tmp_path: Path
) -> None:
    first, cold = ask(aws, tmp_path / "disk")
    second, warm = ask(aws, tmp_path / "disk")
    assert first == second
    assert cold.num_requests > 10
    assert warm.bytes_read == 0
    assert warm.num_requests == 1


def test_another_process_finds_it_too(aws: AwsServer, tmp_path: Path) -> None:
    folder = str(tmp_path / "disk")
    given = orjson.dumps([URI, aws.storage_options, folder, QUERY.tolist()])
    answers = [
        orjson.loads(
            subprocess.run(  # noqa: S603 - our own interpreter
                [sys.executable, "-c", PROGRAM], input=given, capture_output=True, check=True
            ).stdout
        )
        for _ in range(2)
    ]
    assert answers[0][0] == answers[1][0]
    assert answers[1][1] > answers[0][1]


def test_the_service_reads_through_the_folder_that_its_settings_name(
    aws: AwsServer, tmp_path: Path
) -> None:
    options = {k: v for k, v in aws.storage_options.items() if k != "dynamodb_endpoint"}
    settings = Settings(
        root="s3://bucket", storage_options=options, disk_cache=str(tmp_path / "disk")
    )
    found, stats = [], []
    for _ in range(2):
        (database,) = create_app(settings).state.services.catalog.databases.values()
        dataset = database.open(to_table(("a",), ()), LATEST, Freshness())
        found.append(dataset.search(QUERY, k=5, columns=["id"], nprobes=4))
        stats.append(dataset.session.disk_cache_stats)
    assert found[0] == found[1]
    assert [each.budget_bytes for each in stats] == [settings.disk_cache_bytes] * 2
    assert (stats[1].misses, stats[1].hits > 10) == (0, True)


def test_later_versions_read_only_what_is_new(aws: AwsServer, tmp_path: Path) -> None:
    ask(aws, tmp_path / "disk")
    _, whole = ask(aws, tmp_path / "other")
    lance.write_dataset(rows(9_000, 9_050), URI, mode="append", storage_options=aws.storage_options)
    _, new = ask(aws, tmp_path / "disk")
    assert 0 < new.bytes_read < whole.bytes_read / 4
    folders = {path.partition("/")[0] for path, _, _ in new.ranges}
    assert folders <= {"_versions", "data"}


def test_a_dataset_made_anew_under_the_same_names_shares_nothing(
    server: AwsServer, tmp_path: Path
) -> None:
    lance.write_dataset(rows(0, 500), tmp_path / "one")
    lance.write_dataset(rows(7_000, 7_500), tmp_path / "other")
    rename_data(tmp_path / "other", tmp_path / "one")
    for folder in (tmp_path / "one", tmp_path / "other"):
        empty(server)
        upload(server, folder)
        dataset = open_dataset(
            URI,
            session=Session(disk_cache=tmp_path / "disk"),
            storage_options=server.storage_options,
        )
        expected = lance.dataset(str(folder)).to_table(columns=["id"])
        assert dataset.take(np.arange(500), ["id"]) == expected
    empty(server)


def rename_data(folder: Path, model: Path) -> None:
    """Give the data file of a dataset the name that another's has."""
    (file,), (named,) = (folder / "data").iterdir(), (model / "data").iterdir()
    (manifest,) = (folder / "_versions").glob("*.manifest")
    content = manifest.read_bytes()
    assert len(file.name) == len(named.name)
    assert file.name.encode() in content
    manifest.write_bytes(content.replace(file.name.encode(), named.name.encode()))
    file.rename(file.parent / named.name)
