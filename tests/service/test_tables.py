"""Describe, count, exists and versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.service_client import Contract, ServiceClient, serving

if TYPE_CHECKING:
    from pathlib import Path

    from tests.fake_dataset import FakeStore


async def test_describe_has_all_members(client: ServiceClient, tmp_path: Path) -> None:
    for path in ("/v1/table/t1/describe", "/v1/table/t1/describe/"):
        described = (await client.post(path)).json()
        assert described["table"] == "t1"
        assert described["namespace"] == []
        assert described["version"] == 3
        assert described["location"] == described["table_uri"] == f"{tmp_path}/t1.lance"
        assert described["stats"] == {"num_deleted_rows": 2, "num_fragments": 1}
        assert described["managed_versioning"] is False


async def test_the_slash_chooses_the_type_names(client: ServiceClient) -> None:
    by_slash = {}
    for slash in ("", "/"):
        fields = (await client.post(f"/v1/table/t1/describe{slash}")).json()["schema"]["fields"]
        vector = fields[2]["type"]
        by_slash[slash] = [fields[1]["type"]["type"], vector["fields"][0]["type"]["type"]]
    assert by_slash == {"": ["utf8", "float32"], "/": ["string", "float"]}


@pytest.mark.parametrize("where", ["body", "parameter"])
async def test_only_the_namespace_dialect_may_leave_out_the_schema(
    client: ServiceClient, where: Any
) -> None:
    body = {"load_detailed_metadata": False} if where == "body" else {}
    suffix = "" if where == "body" else "?load_detailed_metadata=false"
    short = (await client.post(f"/v1/table/t1/describe{suffix}", body)).json()
    assert (short["version"], short["schema"]) == (None, None)
    full = (await client.post(f"/v1/table/t1/describe/{suffix}", body)).json()
    assert full["version"] == 3


async def test_the_body_wins_over_the_parameter(client: ServiceClient) -> None:
    path = "/v1/table/t1/describe?load_detailed_metadata=false"
    described = (await client.post(path, {"load_detailed_metadata": True})).json()
    assert described["version"] == 3


async def test_count_is_a_bare_number_with_the_version(client: ServiceClient) -> None:
    for path in ("/v1/table/t1/count_rows", "/v1/table/t1/count_rows/"):
        for body in (b"", {}, {"version": None}, {"version": 3}, {"id": ["t1"]}):
            answer = await client.post(path, body)
            assert answer.content == b"20"
            assert answer.headers["x-lancedb-version"] == "3"


async def test_exists_has_an_empty_body(client: ServiceClient) -> None:
    answer = await client.post("/v1/table/t1/exists", {"id": ["t1"]})
    assert (answer.status_code, answer.content) == (200, b"")


async def test_versions_are_listed_with_all_members(client: ServiceClient) -> None:
    answer = (await client.post("/v1/table/t1/version/list/")).json()
    assert answer["page_token"] is None
    assert answer["versions"][0] == {
        "version": 1,
        "manifest_path": "t1.lance/_versions/1.manifest",
        "manifest_size": 101,
        "e_tag": None,
        "timestamp": "2026-11-27T21:08:01+00:00",
        "timestamp_millis": 1795813681000,
        "metadata": {},
    }


@pytest.mark.parametrize(
    ("parameters", "numbers", "token"),
    [
        ("", [1, 2, 3], None),
        ("?descending=true", [3, 2, 1], None),
        ("?limit=2", [1, 2], "2"),
        ("?limit=2&page_token=2", [3], None),
        ("?limit=3", [1, 2, 3], None),
        ("?limit=1&descending=true&page_token=3", [2], "2"),
    ],
)
async def test_pages_of_versions(
    client: ServiceClient, parameters: str, numbers: Any, token: Any
) -> None:
    answer = (await client.post(f"/v1/table/t1/version/list{parameters}")).json()
    assert [entry["version"] for entry in answer["versions"]] == numbers
    assert answer["page_token"] == token


@pytest.mark.parametrize("form", ["/v1/table/{}/describe", "/v1/table/{}/describe/"])
@pytest.mark.parametrize(
    ("identifier", "parameters"),
    [("a$b$t", ""), ("a%24b%24t", "?delimiter=%24"), ("a.b.t", "?delimiter=."), ("a%24b$t", "")],
)
async def test_identifiers_in_all_spellings(
    tmp_path: Path,
    contract: Contract,
    store: FakeStore,
    form: str,
    identifier: Any,
    parameters: str,
) -> None:
    store.datasets["t.lance"] = store.datasets["t1.lance"]
    async with serving(
        tmp_path, contract=contract, open_dataset=store, load_kernels=lambda: None
    ) as client:
        described = (await client.post(form.format(identifier) + parameters)).json()
    assert (described["namespace"], described["table"]) == (["a", "b"], "t")
    assert described["location"] == f"{tmp_path}/a/b/t.lance"


async def test_the_database_prefix_is_a_folder_below_the_root(
    client: ServiceClient, store: FakeStore, tmp_path: Path
) -> None:
    store.datasets["t.lance"] = store.datasets["t1.lance"]
    headers = {"x-lancedb-database": "mydb", "x-lancedb-database-prefix": "pre/fix"}
    described = (await client.post("/v1/table/t/describe/", headers=headers)).json()
    assert described["location"] == f"{tmp_path}/pre/fix/t.lance"
    assert described["namespace"] == []
