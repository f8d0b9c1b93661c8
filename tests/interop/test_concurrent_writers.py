"""Eight writers of one dataset: no row is lost or comes twice, and every version is whole."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import lance
import pytest

from lance_core.dataset import open_dataset, write_dataset
from tests.aws_server import aws_server
from tests.racing import Task, expected, raced, rows, rows_of
from tests.soak import race_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tests.aws_server import AwsServer
    from tests.racing import Done

pytestmark = [pytest.mark.interop, pytest.mark.slow]

LOG = logging.getLogger(__name__)
FIRST = rows(0, 2000)


@pytest.fixture(scope="module")
def aws() -> Iterator[AwsServer]:
    with aws_server() as running:
        running.create_bucket("bucket")
        running.create_manifest_table("versions")
        yield running


def tasks(uri: str, names: Sequence[str], options: dict[str, str] | None = None) -> list[Task]:
    return [Task(name, number, uri, race_seconds(), options) for number, name in enumerate(names)]


def report(done: Sequence[Done]) -> None:
    for each in done:
        LOG.info(
            "%s: committed %s, gave up %s, refused %s",
            each.name,
            dict(each.commits),
            dict(each.conflicts),
            dict(each.refused),
        )


def check(uri: str, done: Sequence[Done], options: dict[str, str] | None = None) -> None:
    """Compare what both libraries read with what the writers say, and look at all versions."""
    report(done)
    wanted = expected(FIRST, done)
    ours = open_dataset(uri, storage_options=options)
    theirs = lance.dataset(uri, storage_options=options)
    assert rows_of(ours.scan().read_all()) == wanted
    assert rows_of(theirs.to_table()) == wanted
    numbers = [each.version for each in ours.versions()]
    assert numbers == list(range(1, len(numbers) + 1))
    assert list(ours.verify()) == []
    theirs.validate()
    assert all(each.commits["append"] + each.commits["delete"] > 0 for each in done)


@pytest.mark.parametrize("indexed", [False, True])
def test_writers_of_both_libraries_share_a_local_dataset(tmp_path: Path, indexed: bool) -> None:
    uri = str(tmp_path / "t.lance")
    write_dataset(uri, FIRST, max_rows_per_file=200)
    if indexed:
        # pylance's eager compactions after deferred ones lose the rows of a B-tree, whoever else
        # writes (table format, section 9.4); those of a bitmap index they lead on rightly.
        lance.dataset(uri).create_scalar_index("check", "BITMAP")
    done = raced(tasks(uri, ["ours", "pylance"] * 4))
    check(uri, done)
    theirs = lance.dataset(uri)
    for version in theirs.versions():
        theirs.checkout_version(version["version"]).validate()
    for row in expected(FIRST, done)[::20]:
        assert theirs.to_table(filter=f"check = {row * 7}")["id"].to_pylist() == [row]


def test_writers_of_ours_share_a_dataset_in_s3(aws: AwsServer) -> None:
    uri, options = "s3://bucket/plain.lance", aws.storage_options
    write_dataset(uri, FIRST, max_rows_per_file=200, storage_options=options)
    check(uri, raced(tasks(uri, ["ours"] * 4, options)), options)


def test_writers_of_ours_share_a_dataset_of_a_dynamodb_table(aws: AwsServer) -> None:
    uri, options = "s3+ddb://bucket/t.lance?ddbTableName=versions", aws.storage_options
    write_dataset(uri, FIRST, max_rows_per_file=200, storage_options=options)
    check(uri, raced(tasks(uri, ["ours"] * 4, options)), options)
