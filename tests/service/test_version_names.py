"""Versions by branch and tag, and what names there are, against a dataset of pylance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lance
import pytest

from tests.pylance_dataset import LIVE, NUM_INDEXED, rows, write_dataset
from tests.service_client import Contract, ServiceClient, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.interop

T1 = "/v1/table/t1"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Versions 1 to 4, branch ``dev`` of version 2 with 10 rows more, tags on both."""
    root = tmp_path_factory.mktemp("named")
    write_dataset(root / "t1.lance")
    main = lance.dataset(str(root / "t1.lance"))
    dev = main.create_branch("dev", 2)
    dev = lance.write_dataset(rows(0, 10), dev, mode="append")
    main.create_branch("team/two", 4)
    main.tags.create("first", 1)
    main.tags.create("here", 4)
    main.tags.create("other", ("dev", dev.version))
    return root


@pytest.fixture
async def served(root: Path, contract: Contract) -> AsyncIterator[Any]:
    async with serving(root, contract=contract) as client:
        await client.wait_until_ready()
        yield client


async def count(client: ServiceClient, body: Any, beside: Any = "") -> Any:
    return (await client.post(f"{T1}/count_rows{beside}", body)).json()


@pytest.mark.parametrize(
    ("pin", "num_rows"),
    [
        ({}, len(LIVE)),
        ({"tag": "first"}, NUM_INDEXED),
        ({"tag": "here"}, len(LIVE)),
        ({"tag": "other"}, NUM_INDEXED + 10),
        ({"branch": "dev"}, NUM_INDEXED + 10),
        ({"branch": "dev", "version": 2}, NUM_INDEXED),
        ({"branch": "team/two"}, len(LIVE)),
        ({"branch": "main", "version": 1}, NUM_INDEXED),
    ],
    ids=repr,
)
async def test_versions_are_read_by_every_name(
    served: ServiceClient, pin: Any, num_rows: int
) -> None:
    assert await count(served, pin) == num_rows
    beside = "&".join(f"{name}={value}" for name, value in pin.items())
    assert await count(served, {}, f"?{beside}") == num_rows
    answer = await served.post(f"{T1}/query?format=json", {"k": 2**62, "columns": ["id"], **pin})
    assert answer.json()["num_rows"] == num_rows
    described = (await served.post(f"{T1}/describe", pin)).json()
    assert described["version"] == int(answer.headers["x-lancedb-version"])


async def test_what_the_body_names_wins_over_the_query(served: ServiceClient) -> None:
    assert await count(served, {"version": 1}, "?version=4") == NUM_INDEXED
    answer = await served.post(f"{T1}/count_rows?tag=first", {"version": 1})
    assert (answer.status_code, answer.json()["code"]) == (400, 13)


@pytest.mark.parametrize(
    ("pin", "status", "code"),
    [
        ({"tag": "nope"}, 404, 8),
        ({"branch": "nope"}, 404, 22),
        ({"branch": "dev", "version": 77}, 404, 11),
        ({"tag": "../x"}, 400, 13),
        ({"branch": "../../t1"}, 400, 13),
        ({"tag": ""}, 400, 13),
    ],
    ids=repr,
)
async def test_names_that_are_not_there(
    served: ServiceClient, pin: Any, status: int, code: int
) -> None:
    answer = await served.post(f"{T1}/count_rows", pin)
    assert (answer.status_code, answer.json()["code"]) == (status, code)


async def test_tags_are_listed_in_the_form_of_each_dialect(served: ServiceClient) -> None:
    bare = (await served.post(f"{T1}/tags/list/")).json()
    assert {name: (tag["branch"], tag["version"]) for name, tag in bare.items()} == {
        "first": (None, 1),
        "here": (None, 4),
        "other": ("dev", 3),
    }
    assert all(tag["manifestSize"] > 0 for tag in bare.values())
    assert (await served.post(f"{T1}/tags/list")).json() == {"tags": bare, "page_token": None}


async def test_tags_come_in_pages(served: ServiceClient) -> None:
    first = (await served.post(f"{T1}/tags/list?limit=2", {})).json()
    assert (list(first["tags"]), first["page_token"]) == (["first", "here"], "here")
    rest = (await served.post(f"{T1}/tags/list?limit=2&page_token=here", {})).json()
    assert (list(rest["tags"]), rest["page_token"]) == (["other"], None)


async def test_a_tag_tells_its_version(served: ServiceClient) -> None:
    for form in ("tags/version", "tags/version/"):
        answer = await served.post(f"{T1}/{form}", {"tag": "other"})
        assert answer.json() == {"version": 3, "branch": "dev"}
        missing = await served.post(f"{T1}/{form}", {"tag": "nope"})
        assert (missing.status_code, missing.json()["code"]) == (404, 8)
        unnamed = await served.post(f"{T1}/{form}", {}, bad=True)
        assert (unnamed.status_code, unnamed.json()["code"]) == (400, 13)


async def test_branches_are_listed(served: ServiceClient) -> None:
    for form in ("branches/list", "branches/list/"):
        branches = (await served.post(f"{T1}/{form}")).json()["branches"]
        assert {name: each["parentVersion"] for name, each in branches.items()} == {
            "dev": 2,
            "team/two": 4,
        }
        assert {each["parentBranch"] for each in branches.values()} == {None}
        assert all(each["createAt"] > 1_700_000_000 for each in branches.values())


@pytest.mark.parametrize("action", ["tags/list", "branches/list", "tags/version", "stats"])
async def test_of_a_table_that_is_not_there_nothing_is_listed(
    served: ServiceClient, action: str
) -> None:
    body = {"tag": "first"} if action == "tags/version" else {}
    answer = await served.post(f"/v1/table/nope/{action}", body)
    assert (answer.status_code, answer.json()["code"]) == (404, 4)


async def test_versions_of_a_branch_lie_in_its_folder(served: ServiceClient) -> None:
    listed = (await served.post(f"{T1}/version/list/?branch=dev")).json()["versions"]
    assert [each["version"] for each in listed] == [2, 3]
    assert {each["manifest_path"].rpartition("/")[0] for each in listed} == {
        "t1.lance/tree/dev/_versions"
    }


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("limit", [1, 2, 3, 4, 9])
async def test_pages_of_versions_put_together_are_all_of_them(
    served: ServiceClient, descending: Any, limit: int
) -> None:
    seen: list[int] = []
    token: Any = ""
    while token is not None:
        after = f"&page_token={token}" if token != "" else ""
        path = f"{T1}/version/list?limit={limit}&descending={str(descending).lower()}{after}"
        page = (await served.post(path)).json()
        assert 0 < len(page["versions"]) <= limit
        seen += [each["version"] for each in page["versions"]]
        token = page["page_token"]
    assert seen == ([4, 3, 2, 1] if descending else [1, 2, 3, 4])


async def test_a_branch_whose_folder_leads_outside_is_not_read(
    root: Path, tmp_path: Path, contract: Contract
) -> None:
    write_dataset(tmp_path / "in" / "t1.lance")
    inside = lance.dataset(str(tmp_path / "in" / "t1.lance"))
    inside.create_branch("dev", 2)
    inside.tags.create("other", ("dev", 2))
    folder = tmp_path / "in" / "t1.lance" / "tree" / "dev"
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    async with serving(tmp_path / "in", contract=contract, load_kernels=lambda: None) as client:
        for pin in ({"branch": "dev"}, {"tag": "other"}):
            answer = await client.post(f"{T1}/count_rows", pin)
            assert (answer.status_code, answer.json()["code"]) == (403, 15)
