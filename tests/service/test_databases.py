"""Several databases: which one a request is about, each with its own store and credentials."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lance
import lancedb
import pyarrow as pa
import pytest

from service.app import create_app
from service.settings import Place, Settings
from tests.aws_server import AwsServer, aws_server
from tests.fake_dataset import FakeDataset, FakeStore, make_table
from tests.live_server import live_server
from tests.pylance_dataset import LIVE, NUM_INDEXED, write_dataset
from tests.service_client import Contract, ServiceClient

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

HEADER = "x-lancedb-database"


@pytest.fixture
async def client(tmp_path: Path, contract: Contract) -> AsyncIterator[Any]:
    """Databases ``one`` (t1, a$t2) and ``two`` (t1, t3); datasets are in memory."""
    for folder in ("one/t1.lance", "one/a/t2.lance", "two/t1.lance", "two/t3.lance"):
        (tmp_path / folder).mkdir(parents=True)
    store = FakeStore(
        t1=FakeDataset(make_table()), t2=FakeDataset(make_table()), t3=FakeDataset(make_table())
    )
    places = {name: Place(root=str(tmp_path / name)) for name in ("one", "two")}
    app = create_app(Settings(databases=places), open_dataset=store, load_kernels=lambda: None)
    async with app.router.lifespan_context(app):
        client = ServiceClient(app, contract)
        async with client.http:
            yield client


async def listed(client: ServiceClient, path: str, database: str | None = None) -> Any:
    headers = {} if database is None else {HEADER: database}
    answer = (await client.get(path, headers=headers)).json()
    return answer.get("tables", answer.get("namespaces"))


async def test_databases_are_the_namespaces_of_the_root(client: ServiceClient) -> None:
    assert await listed(client, "/v1/namespace/$/list") == ["one", "two"]
    assert await listed(client, "/v1/namespace/$/list?limit=1") == ["one"]
    assert await listed(client, "/v1/namespace/$/list?page_token=one") == ["two"]
    assert await listed(client, "/v1/namespace/$/table/list") == []
    assert await listed(client, "/v1/namespace/one/list") == ["a"]
    assert await listed(client, "/v1/namespace/two/table/list") == ["t1", "t3"]
    for name in ("$", "one", "one$a"):
        assert (await client.post(f"/v1/namespace/{name}/describe")).status_code == 200
        assert (await client.post(f"/v1/namespace/{name}/exists")).status_code == 200


async def test_all_tables_are_listed_with_their_databases(client: ServiceClient) -> None:
    assert await listed(client, "/v1/table") == ["one$a$t2", "one$t1", "two$t1", "two$t3"]
    assert await listed(client, "/v1/table?delimiter=.") == [
        "one.a.t2",
        "one.t1",
        "two.t1",
        "two.t3",
    ]
    assert await listed(client, "/v1/table/") == []
    assert await listed(client, "/v1/table", "one") == ["a$t2", "t1"]
    assert await listed(client, "/v1/table/", "two") == ["t1", "t3"]


@pytest.mark.parametrize(
    ("table", "database"), [("t3", "two"), ("two$t3", None), ("a$t2", "one"), ("one$a$t2", None)]
)
async def test_a_table_is_found_by_header_or_first_part(
    client: ServiceClient, table: str, database: str | None
) -> None:
    headers = {} if database is None else {HEADER: database}
    described = (await client.post(f"/v1/table/{table}/describe", headers=headers)).json()
    assert [*described["namespace"], described["table"]] == table.split("$")
    found = "two/t3.lance" if "t3" in table else "one/a/t2.lance"
    assert described["location"].endswith(found)


async def test_the_log_tells_the_database(client: ServiceClient, caplog: Any) -> None:
    with caplog.at_level("INFO", logger="service.request"):
        await client.post("/v1/table/two$t1/describe")
        await client.post("/v1/table/a$t2/describe", headers={HEADER: "one"})
    told = [record.__dict__["fields"]["table"] for record in caplog.records]
    assert told == ["two$t1", "one$a$t2"]


async def test_tables_of_the_same_name_are_kept_apart(client: ServiceClient) -> None:
    places = {
        (await client.post(f"/v1/table/{name}$t1/describe")).json()["location"].split("/")[-2]
        for name in ("one", "two")
    }
    assert places == {"one", "two"}


@pytest.mark.parametrize(
    ("path", "database", "code"),
    [
        ("/v1/table/nope$t1/describe", None, 1),
        ("/v1/table/t1/describe", "nope", 1),
        ("/v1/table/t1/describe", None, 1),
        ("/v1/table/one$nope/describe", None, 4),
        ("/v1/table/one/describe", None, 13),
        ("/v1/table/$/describe", None, 1),
        ("/v1/namespace/nope/describe", None, 1),
        ("/v1/namespace/one$nope/exists", None, 1),
        ("/v1/table/%2e%2e/describe", "one", 15),
    ],
)
async def test_what_is_in_no_database_is_not_found(
    client: ServiceClient, path: str, database: str | None, code: int
) -> None:
    headers = {} if database is None else {HEADER: database}
    answer = await client.post(path, headers=headers)
    assert answer.json()["code"] == code
    assert answer.status_code == {1: 404, 4: 404, 13: 400, 15: 403}[code]


async def test_a_prefix_names_a_folder_of_the_database(client: ServiceClient) -> None:
    headers = {HEADER: "one", "x-lancedb-database-prefix": "a"}
    assert (await client.get("/v1/table/", headers=headers)).json()["tables"] == ["t2"]
    assert (await client.post("/v1/table/t2/describe", headers=headers)).status_code == 200


async def test_with_a_single_root_any_name_is_that_root(served: ServiceClient) -> None:
    for name in ("mydb", "another"):
        answer = await served.post("/v1/table/t1/count_rows", headers={HEADER: name})
        assert answer.json() == len(LIVE)


@pytest.fixture(scope="module")
def aws() -> Iterator[Any]:
    with aws_server() as server:
        yield server


@pytest.fixture(scope="module")
def url(aws: AwsServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A database in a folder and two in buckets, which are read with keys of their own."""
    root = tmp_path_factory.mktemp("local")
    write_dataset(root / "t1.lance")
    places = {"local": Place(root=str(root))}
    options = {k: v for k, v in aws.storage_options.items() if k != "dynamodb_endpoint"}
    for number, name in enumerate(("red", "blue"), 1):
        aws.create_bucket(name)
        table = pa.table({"id": range(10 * number), "name": [name] * 10 * number})
        lance.write_dataset(table, f"s3://{name}/data/t1.lance", storage_options=options)
        places[name] = Place(
            root=f"s3://{name}/data", storage_options={**options, "aws_access_key_id": f"K{name}"}
        )
    aws.key_ids.clear()
    with live_server(None, databases=places, load_kernels=lambda: None) as url:
        yield url


def connect(url: str, name: str) -> Any:
    return lancedb.connect(f"db://{name}", api_key="k", region="us-east-1", host_override=url)


@pytest.mark.interop
def test_each_store_is_read_with_the_keys_of_its_database(url: str, aws: AwsServer) -> None:
    for name, num_rows in [("red", 10), ("blue", 20)]:
        table = connect(url, name).open_table("t1")
        assert table.count_rows() == num_rows
        assert set(table.search().limit(50).to_arrow()["name"].to_pylist()) == {name}
        assert f"K{name}" in aws.key_ids
    assert aws.key_ids == {"Kred", "Kblue"}
    assert connect(url, "local").open_table("t1").count_rows() == len(LIVE)
    assert connect(url, "red").list_tables().tables == ["t1"]


@pytest.mark.interop
def test_a_catalog_lists_and_opens_databases(url: str) -> None:
    catalog = lancedb.connect_catalog(url, api_key="k")
    assert catalog.list_databases().databases == ["blue", "local", "red"]
    page = catalog.list_databases(limit=2)
    assert (page.databases, page.page_token) == (["blue", "local"], "local")
    table = catalog.connect_database("local").open_table("t1")
    table.checkout(1)
    assert table.count_rows() == NUM_INDEXED
    assert catalog.connect_database("blue").open_table("t1").count_rows() == 20
    with pytest.raises(Exception, match="nope"):
        catalog.connect_database("nope")
