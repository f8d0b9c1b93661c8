"""Tables, namespaces and indices with names that are not letters only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lance
import lancedb
import pyarrow as pa
import pytest
from lance.namespace import RestNamespace
from lance_namespace import DescribeTableIndexStatsRequest, DescribeTableRequest

from service.api.callers import Caller, Rights
from service.catalog.names import Namespace, TableName
from tests.live_server import live_server
from tests.service_client import Contract, ServiceClient, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

pytestmark = pytest.mark.interop

INDICES = ["my idx", "a+b", "a/b c", "ümläut%20"]
TABLES = ["plain", "odd name", "a+b", "x$y", "ümläut", "a'b"]
CLIENTS = ("plain",)
"""Names that LanceDB's clients know."""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("odd")
    for name in TABLES:
        lance.write_dataset(pa.table({"id": range(10)}), str(folder / f"{name}.lance"))
    for name in INDICES:
        plain = lance.dataset(str(folder / "plain.lance"))
        plain.create_scalar_index("id", "BTREE", name=name, replace=False)
    lance.dataset(str(folder / "plain.lance")).create_branch("dev")
    nested = folder / "in it" / "n$x"
    nested.mkdir(parents=True)
    lance.write_dataset(pa.table({"id": [1]}), str(nested / "deep.lance"))
    return folder


@pytest.fixture
async def client(root: Path, contract: Contract) -> AsyncIterator[ServiceClient]:
    async with serving(root, contract=contract) as client:
        await client.wait_until_ready()
        yield client


@pytest.fixture(scope="module")
def url(root: Path) -> Iterator[Any]:
    with live_server(root) as url:
        yield url


@pytest.mark.parametrize("name", INDICES)
def test_clients_find_an_index_of_any_name(url: str, name: str) -> None:
    db = lancedb.connect("db://x", api_key="k", region="r", host_override=url)
    table = db.open_table("plain")
    stats: Any = table.index_stats(name)
    assert stats.num_indexed_rows == 10
    described = RestNamespace(uri=url).describe_table_index_stats(
        DescribeTableIndexStatsRequest(id=["plain"], index_name=name)
    )
    assert described.num_indexed_rows == 10


@pytest.mark.parametrize("name", [each for each in TABLES if "$" not in each])
def test_a_namespace_client_finds_a_table_of_any_name(url: str, name: str) -> None:
    found = RestNamespace(uri=url).describe_table(DescribeTableRequest(id=[name]))
    assert found.version is not None


def test_one_odd_name_does_not_keep_others_from_being_listed(url: str) -> None:
    db = lancedb.connect("db://x", api_key="k", region="r", host_override=url)
    assert list(db.list_tables().tables) == list(CLIENTS)


async def test_what_is_listed_can_be_named(client: ServiceClient) -> None:
    listed = (await client.get("/v1/table")).json()["tables"]
    assert listed == sorted(each for each in TABLES if "$" not in each)
    for name in listed:
        answer = await client.post(f"/v1/table/{name.replace('+', '%2B')}/exists")
        assert answer.status_code == 200, name
        assert answer.headers["x-lancedb-version"] == ("5" if name == "plain" else "1")
    others = (await client.get("/v1/table?delimiter=@")).json()["tables"]
    assert others == sorted([*TABLES, "in it@n$x@deep"])
    assert (await client.post("/v1/table/in%20it@n$x@deep/exists?delimiter=@")).status_code == 200


@pytest.mark.parametrize("path", ["/v1/table", "/v1/namespace/$/list", "/v1/table/plain/exists"])
async def test_an_empty_delimiter_is_refused(client: ServiceClient, path: str) -> None:
    call = client.post if path.endswith("exists") else client.get
    answer = await call(f"{path}?delimiter=")
    assert (answer.status_code, "delimiter is empty" in answer.text) == (400, True)


@pytest.mark.parametrize("below", ["$_indices", "$tree", "$data", "$_versions", ""])
@pytest.mark.parametrize("what", ["list", "table/list"])
async def test_the_inside_of_a_table_is_no_namespace(
    client: ServiceClient, below: str, what: str
) -> None:
    answer = await client.get(f"/v1/namespace/plain.lance{below}/{what}")
    assert answer.status_code == 404


async def test_statistics_of_an_index_name_their_version_and_have_a_tag(
    client: ServiceClient,
) -> None:
    path = "/v1/table/plain/index/my%20idx/stats"
    answer = await client.post(path, {"version": 5})
    assert answer.headers["x-lancedb-version"] == "5"
    again = await client.post(
        path, {"version": 5}, headers={"if-none-match": answer.headers["etag"]}
    )
    assert again.status_code == 304


def test_rights_by_table_do_not_reach_names_that_read_like_others() -> None:
    caller = Caller.of("k", Rights.model_validate({"tables": ["ns$*", "a$b"]}))
    assert caller.may_read(None, TableName(Namespace(("ns",)), "x"))
    assert not caller.may_read(None, TableName(Namespace(), "ns$x"))
    assert not caller.may_read(None, TableName(Namespace(), "a$b"))
    assert not caller.may_enter(None, Namespace(("ns$y",)))
    assert Caller.of("k", Rights.model_validate({})).may_read(None, TableName(Namespace(), "ns$x"))
