"""Roots with odd entries: links that lead elsewhere or nowhere, circles, names that are no text."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from service.catalog.confinement import Confinement
from tests.fake_dataset import FakeDataset, FakeStore, make_table
from tests.service_client import Contract, ServiceClient, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

LONG = "n" * 300


def make_folders(place: Path, *names: str) -> None:
    for name in names:
        (place / name).mkdir(parents=True)


@pytest.fixture
def root(tmp_path: Path) -> Any:
    make_folders(tmp_path / "root", "t1.lance", "a/t2.lance", "a/b/t3.lance")
    make_folders(tmp_path / "outside", "secret.lance", "deep/secret2.lance")
    make_folders(tmp_path / "shared", "s.lance", "deep/s2.lance")
    return tmp_path / "root"


@pytest.fixture
async def served(root: Path, contract: Contract) -> AsyncIterator[Any]:
    async with serving(
        root,
        contract=contract,
        open_dataset=FakeStore(t1=FakeDataset(make_table())),
        load_kernels=lambda: None,
        allowed_roots=(str(root.parent / "shared"),),
    ) as client:
        yield client


@pytest.fixture
async def real(root: Path, contract: Contract) -> AsyncIterator[Any]:
    """The same root, with real datasets behind it (there are none)."""
    async with serving(root, contract=contract, load_kernels=lambda: None) as client:
        yield client


async def everything(client: ServiceClient) -> Any:
    """All tables, after checking that the listings of the root answer too."""
    for path in ("/v1/table/", "/v1/namespace/$/list", "/v1/namespace/$/table/list"):
        assert (await client.get(path)).status_code == 200
    return (await client.get("/v1/table")).json()["tables"]


async def names(client: ServiceClient, path: str) -> Any:
    answer = (await client.get(path)).json()
    return answer.get("tables", answer.get("namespaces"))


async def test_links_that_lead_outside_are_neither_listed_nor_walked(
    served: ServiceClient, root: Path
) -> None:
    (root / "out").symlink_to(root.parent / "outside")
    (root / "a" / "out").symlink_to(root.parent / "outside" / "deep")
    (root / "out.lance").symlink_to(root.parent / "outside" / "secret.lance")
    assert await everything(served) == ["a$b$t3", "a$t2", "t1"]
    assert await names(served, "/v1/namespace/$/list") == ["a"]
    assert await names(served, "/v1/namespace/a/list") == ["b"]
    assert await names(served, "/v1/namespace/$/table/list") == ["t1"]


@pytest.mark.parametrize("name", ["out", "out$deep", "out$nothing", "a$out"])
async def test_asking_for_a_namespace_outside_gives_403(
    served: ServiceClient, root: Path, name: str
) -> None:
    (root / "out").symlink_to(root.parent / "outside")
    (root / "a" / "out").symlink_to(root.parent / "outside" / "deep")
    for method, action in (
        ("GET", "list"),
        ("GET", "table/list"),
        ("POST", "describe"),
        ("POST", "exists"),
    ):
        answer = await served.send(method, f"/v1/namespace/{name}/{action}")
        assert (answer.status_code, answer.json()["code"]) == (403, 15), action
        assert "secret" not in answer.text


async def test_the_database_prefix_does_not_lead_outside_either(
    served: ServiceClient, root: Path
) -> None:
    (root / "out").symlink_to(root.parent / "outside")
    headers = {"x-lancedb-database-prefix": "out"}
    for path in ("/v1/table", "/v1/table/", "/v1/namespace/$/list"):
        answer = await served.get(path, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (403, 15)


async def test_links_to_allowed_roots_are_listed_and_walked(
    served: ServiceClient, root: Path
) -> None:
    (root / "more").symlink_to(root.parent / "shared")
    assert await everything(served) == ["a$b$t3", "a$t2", "more$deep$s2", "more$s", "t1"]


async def test_a_folder_with_two_names_is_walked_once_by_its_own(
    served: ServiceClient, root: Path
) -> None:
    (root / "0alias").symlink_to(root / "a" / "b")
    assert await everything(served) == ["a$b$t3", "a$t2", "t1"]
    assert await names(served, "/v1/namespace/0alias/table/list") == ["t3"]


async def test_circles_are_cut(served: ServiceClient, root: Path) -> None:
    (root / "a" / "up").symlink_to(root)
    (root / "a" / "b" / "here").symlink_to(".")
    (root.parent / "shared" / "again").symlink_to(root.parent / "shared")
    (root / "more").symlink_to(root.parent / "shared")
    for number in range(12):
        (root / f"x{number}").mkdir()
        for other in range(12):
            (root / f"x{number}" / f"y{other}").symlink_to(root / f"x{other}")
    assert await everything(served) == ["a$b$t3", "a$t2", "more$deep$s2", "more$s", "t1"]


async def test_links_that_lead_nowhere_are_skipped(served: ServiceClient, root: Path) -> None:
    (root / "self").symlink_to("self")
    (root / "self.lance").symlink_to("self.lance")
    (root / "ping").symlink_to("pong")
    (root / "pong").symlink_to("ping")
    (root / "gone").symlink_to("nothing")
    (root / "through_a_file").symlink_to(root.parent / "outside" / "file" / "x")
    (root / "long").symlink_to(LONG)
    assert await everything(served) == ["a$b$t3", "a$t2", "t1"]
    assert await names(served, "/v1/namespace/$/list") == ["a"]


async def test_names_that_are_no_text_are_skipped(served: ServiceClient, root: Path) -> None:
    for name in (b"caf\xe9", b"caf\xe9.lance", b"a/\xff\xfe"):
        os.mkdir(os.fsencode(root) + b"/" + name)  # noqa: PTH102 - a Path is text
    with open(os.fsencode(root) + b"/file\xe9", "wb"):  # noqa: PTH123, ASYNC230 - same
        pass
    assert await everything(served) == ["a$b$t3", "a$t2", "t1"]
    assert await names(served, "/v1/namespace/$/list") == ["a"]


@pytest.mark.parametrize("name", ["self", "ping", LONG, f"a${LONG}", "$".join(["d"] * 3000)])
async def test_names_that_lead_nowhere_are_not_found(
    real: ServiceClient, root: Path, name: str
) -> None:
    for link, target in (("self", "self"), ("ping", "pong"), ("pong", "ping")):
        (root / link).symlink_to(target)
        (root / f"{link}.lance").symlink_to(f"{target}.lance")
    for action in ("describe", "exists", "count_rows", "version/list"):
        answer = await real.post(f"/v1/table/{name}/{action}")
        assert (answer.status_code, answer.json()["code"]) == (404, 4), action
    for method, action in (("POST", "describe"), ("GET", "list"), ("GET", "table/list")):
        answer = await real.send(method, f"/v1/namespace/{name}/{action}")
        assert (answer.status_code, answer.json()["code"]) == (404, 1), action


def test_a_remote_place_has_no_links() -> None:
    confinement = Confinement("s3://bucket/root", [])
    assert confinement.admits("s3://bucket/root/a")
    assert confinement.real_place("s3://bucket/root/a") == "s3://bucket/root/a"
