"""Datasets in S3 whose versions a DynamoDB table decides on, shared with pylance."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import lance
import pyarrow as pa
import pytest

from lance_core import open_dataset
from lance_core.dataset import write_dataset
from lance_core.errors import (
    CorruptFileError,
    DatasetNotFoundError,
    InvalidRequestError,
    StoreError,
    StoreUnavailableError,
)
from tests.aws_server import aws_server

pytestmark = pytest.mark.interop

URI = "s3+ddb://bucket/some/t.lance?ddbTableName=versions"
BASE = "some/t.lance"


@pytest.fixture(scope="module")
def server():
    with aws_server() as running:
        yield running


@pytest.fixture
def aws(server):
    server.create_bucket("bucket")
    server.create_manifest_table("versions")
    yield server
    for each in server.client("s3").list_objects_v2(Bucket="bucket").get("Contents", []):
        server.client("s3").delete_object(Bucket="bucket", Key=each["Key"])
    server.client("s3").delete_bucket(Bucket="bucket")
    server.client("dynamodb").delete_table(TableName="versions")


def ids(*values):
    return pa.table({"id": pa.array(values, pa.int64())})


def ours(aws):
    return open_dataset(URI, storage_options=aws.storage_options)


def theirs(aws):
    return lance.dataset(URI, storage_options=aws.storage_options)


def rows_of(table):
    return sorted(table["id"].to_pylist())


def stored_rows(aws):
    items = aws.client("dynamodb").scan(TableName="versions")["Items"]
    return {int(item["version"]["N"]): item["path"]["S"] for item in items}


def test_versions_of_both_follow_each_other(aws):
    options = aws.storage_options
    lance.write_dataset(ids(1, 2), URI, storage_options=options)
    ours(aws).append(ids(3))
    lance.write_dataset(ids(4), URI, mode="append", storage_options=options)
    ours(aws).delete("id = 1")
    assert rows_of(theirs(aws).to_table()) == rows_of(ours(aws).scan().read_all()) == [2, 3, 4]
    assert list(stored_rows(aws)) == [1, 2, 3, 4]
    assert all(path.endswith(".manifest") for path in stored_rows(aws).values())


def test_a_dataset_that_we_make_is_pylances_too(aws):
    write_dataset(URI, ids(1), storage_options=aws.storage_options)
    assert theirs(aws).to_table() == ids(1)
    assert stored_rows(aws)[1].startswith(f"{BASE}/_versions/")


def test_a_commit_that_stopped_half_way_is_finished_by_the_next_reader(aws):
    write_dataset(URI, ids(1), storage_options=aws.storage_options)
    final = stored_rows(aws)[1]
    staged = f"{final}-01234567-89ab-4def-8123-456789abcdef"
    s3 = aws.client("s3")
    s3.copy_object(Bucket="bucket", Key=staged, CopySource=f"bucket/{final}")
    s3.delete_object(Bucket="bucket", Key=final)
    aws.client("dynamodb").put_item(
        TableName="versions",
        Item={
            "base_uri": {"S": BASE},
            "version": {"N": "1"},
            "path": {"S": staged},
            "committer": {"S": "somebody"},
        },
    )
    assert ours(aws).count_rows() == 1
    assert stored_rows(aws) == {1: final}
    keys = [each["Key"] for each in s3.list_objects_v2(Bucket="bucket")["Contents"]]
    assert final in keys
    assert staged not in keys


def test_writers_at_the_same_time_lose_no_row(aws):
    write_dataset(URI, ids(), storage_options=aws.storage_options)

    def append(number):
        if number % 2 == 0:
            ours(aws).append(ids(number))
        else:
            lance.write_dataset(
                ids(number), URI, mode="append", storage_options=aws.storage_options
            )

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(append, range(12)))
    assert rows_of(ours(aws).scan().read_all()) == list(range(12))
    assert list(stored_rows(aws)) == list(range(1, 14))


def test_a_branch_has_versions_of_its_own_in_the_table(aws):
    main = write_dataset(URI, ids(1), storage_options=aws.storage_options)
    branch = main.create_branch("try")
    branch.append(ids(2))
    opened = open_dataset(URI, branch="try", storage_options=aws.storage_options)
    assert rows_of(opened.scan().read_all()) == [1, 2]
    assert rows_of(ours(aws).scan().read_all()) == [1]
    bases = {
        item["base_uri"]["S"] for item in aws.client("dynamodb").scan(TableName="versions")["Items"]
    }
    assert bases == {BASE, f"{BASE}/tree/try"}


def test_a_row_without_a_path_is_named_as_the_fault(aws):
    aws.client("dynamodb").put_item(
        TableName="versions", Item={"base_uri": {"S": BASE}, "version": {"N": "1"}}
    )
    with pytest.raises(CorruptFileError, match="DynamoDB table versions"):
        ours(aws)


def test_a_dataset_without_a_row_is_not_found(aws):
    with pytest.raises(DatasetNotFoundError):
        ours(aws)


def test_a_table_that_does_not_exist_is_told(aws):
    with pytest.raises(StoreError, match="nowhere"):
        open_dataset(URI.replace("versions", "nowhere"), storage_options=aws.storage_options)


def test_a_table_out_of_reach_is_a_passing_fault(aws, monkeypatch):
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    options = {**aws.storage_options, "dynamodb_endpoint": "http://127.0.0.1:1"}
    with pytest.raises(StoreUnavailableError, match="DynamoDB"):
        open_dataset(URI, storage_options=options)


@pytest.mark.parametrize(
    "uri",
    [
        "s3+ddb://bucket/t.lance",
        "s3+ddb://bucket/t.lance?table=x",
        "s3+ddb://bucket?ddbTableName=x",
        "s3+ddb://bucket/t.lance?ddbTableName=x&ddbTableName=y",
        "s3+ddb://",
    ],
)
def test_a_uri_that_names_no_table_or_no_folder_is_refused(uri):
    with pytest.raises(InvalidRequestError, match="ddbTableName=NAME"):
        open_dataset(uri)


def test_a_branch_lies_below_a_store_that_has_options(aws):
    uri = "s3://bucket/plain.lance"
    main = write_dataset(uri, ids(1), storage_options=aws.storage_options)
    main.create_branch("try").append(ids(2))
    opened = open_dataset(uri, branch="try", storage_options=aws.storage_options)
    assert rows_of(opened.scan().read_all()) == [1, 2]
