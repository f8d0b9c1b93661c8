"""What is counted of a table, and the tags by which callers are spared what they have."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import lance
import lancedb
import pytest

from tests.pylance_dataset import LIVE, rows, write_dataset
from tests.service_client import Contract, ServiceClient, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.interop

T1 = "/v1/table/t1"
READS = [("POST", "describe"), ("POST", "stats"), ("POST", "index/list"), ("GET", "coverage")]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_dataset(tmp_path / "t1.lance")
    return tmp_path


@pytest.fixture
async def client(root: Path, contract: Contract) -> AsyncIterator[Any]:
    async with serving(
        root, contract=contract, load_kernels=lambda: None, read_consistency_interval=0
    ) as client:
        yield client


async def coverage(client: ServiceClient) -> Any:
    return (await client.get(f"{T1}/coverage")).json()


async def test_figures_are_those_of_embedded_lancedb(client: ServiceClient, root: Path) -> None:
    expected = lancedb.connect(str(root)).open_table("t1").stats()
    for form in ("stats", "stats/"):
        assert (await client.post(f"{T1}/{form}")).json() == expected


async def test_figures_of_a_table_without_rows(client: ServiceClient, root: Path) -> None:
    lance.write_dataset(rows(0, 0), root / "empty.lance")
    figures = (await client.post("/v1/table/empty/stats")).json()
    assert (figures["num_rows"], figures["num_indices"]) == (0, 0)
    assert set(figures["fragment_stats"]["lengths"].values()) == {0}


async def test_coverage_tells_which_fragments_are_scanned_and_why(client: ServiceClient) -> None:
    found = await coverage(client)
    assert found["version"] == 4
    assert [tuple(each.values()) for each in found["fragments"]] == [
        (0, 300, 6), (1, 300, 6), (2, 20, 0)
    ]  # fmt: skip
    (index,) = found["indices"]
    assert (index["name"], index["covered"]) == ("vec_idx", [0, 1])
    assert [(each["type"], each["usable"]) for each in index["segments"]] == [("IVF_PQ", True)]
    assert index["gaps"] == [
        {"fragment": 2, "reason": "written after the index was built or extended"}
    ]
    live = sum(each["rows"] - each["deleted"] for each in found["fragments"])
    assert live == len(LIVE)


async def test_coverage_of_an_index_that_cannot_be_used(client: ServiceClient, root: Path) -> None:
    for folder in (root / "t1.lance" / "_indices").iterdir():
        shutil.rmtree(folder)
    (index,) = (await coverage(client))["indices"]
    (segment,) = index["segments"]
    assert (segment["usable"], index["covered"]) == (False, [])
    assert "damaged or missing" in segment["reason"]
    reasons = {each["fragment"]: each["reason"] for each in index["gaps"]}
    assert reasons[0] == reasons[1]
    assert segment["reason"] in reasons[0]
    assert "written after" in reasons[2]


async def test_coverage_after_a_column_was_changed(client: ServiceClient, root: Path) -> None:
    new = rows(0, 300).select(["id", "vec"])
    dataset = lance.dataset(str(root / "t1.lance"))
    dataset.merge_insert("id").when_matched_update_all().execute(new)
    (index,) = (await coverage(client))["indices"]
    known = {*index["covered"], *(each["fragment"] for each in index["gaps"])}
    assert known == {each["id"] for each in (await coverage(client))["fragments"]}


@pytest.mark.parametrize(("method", "action"), READS)
async def test_who_has_an_answer_is_spared_it_until_the_version_changes(
    client: ServiceClient, root: Path, method: str, action: str
) -> None:
    first = await client.send(method, f"{T1}/{action}")
    tag = first.headers["etag"]
    for given in (tag, f'"x", {tag}', tag.removeprefix("W/"), "*"):
        again = await client.send(method, f"{T1}/{action}", headers={"if-none-match": given})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["etag"] == tag
    other = await client.send(method, f"{T1}/{action}", headers={"if-none-match": '"x"'})
    assert (other.status_code, other.content) == (200, first.content)
    lance.write_dataset(rows(0, 5), root / "t1.lance", mode="append")
    changed = await client.send(method, f"{T1}/{action}", headers={"if-none-match": tag})
    assert changed.status_code == 200
    assert changed.headers["etag"] != tag


@pytest.mark.parametrize(("method", "action"), READS)
async def test_a_pinned_version_keeps_its_tag(
    client: ServiceClient, root: Path, method: str, action: str
) -> None:
    path = f"{T1}/{action}?version=3"
    tag = (await client.send(method, path)).headers["etag"]
    lance.write_dataset(rows(0, 5), root / "t1.lance", mode="append")
    again = await client.send(method, path, headers={"if-none-match": tag})
    assert again.status_code == 304


async def test_tags_tell_dialects_and_questions_apart(client: ServiceClient) -> None:
    asked = [
        ("describe", {}), ("describe/", {}), ("describe", {"load_detailed_metadata": False}),
        ("describe?version=4", {}), ("stats", {}), ("index/list", {}), ("index/list?limit=1", {}),
    ]  # fmt: skip
    tags = [(await client.post(f"{T1}/{path}", body)).headers["etag"] for path, body in asked]
    assert len(set(tags)) == len(asked)


async def test_a_table_made_anew_at_the_same_version_has_another_tag(
    client: ServiceClient, root: Path
) -> None:
    lance.write_dataset(rows(0, 5), root / "new.lance")
    path = "/v1/table/new/stats?version=1"
    tag = (await client.post(path)).headers["etag"]
    shutil.rmtree(root / "new.lance")
    lance.write_dataset(rows(0, 7), root / "new.lance")
    again = await client.post(path, headers={"if-none-match": tag})
    assert (again.status_code, again.json()["num_rows"]) == (200, 7)
