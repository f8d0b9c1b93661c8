"""What is told of indices over HTTP."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

import lance
import pytest

from lance_core.query.index_statistics import IndexStatistics, SegmentStatistics
from service.api.index_answers import index_entry
from tests.pylance_dataset import NUM_APPENDED, NUM_INDEXED, write_dataset
from tests.service_client import Contract, ServiceClient, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.interop

LIST, STATS = "/v1/table/t1/index/list", "/v1/table/t1/index/{}/stats"
NUM_DELETED = NUM_INDEXED // 50
KINDS: dict[Any, str] = {
    "BTREE": "BTREE",
    "BITMAP": "BITMAP",
    "ZONEMAP": "ZONEMAP",
    "BLOOMFILTER": "BLOOM_FILTER",
    "NGRAM": "NGRAM",
    "INVERTED": "FTS",
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("indices")
    write_dataset(folder / "t1.lance")
    theirs = lance.dataset(str(folder / "t1.lance"))
    for kind in KINDS:
        column = "kind" if kind in {"NGRAM", "INVERTED"} else "id"
        theirs.create_scalar_index(column, kind, name=kind)
    return folder


@pytest.fixture
async def all_kinds(root: Path, contract: Contract) -> AsyncIterator[ServiceClient]:
    async with serving(root, contract=contract) as client:
        await client.wait_until_ready()
        yield client


@pytest.mark.parametrize("path", [LIST, f"{LIST}/"])
@pytest.mark.parametrize("body", [b"", {"version": 4}], ids=repr)
async def test_indices_are_listed(served: ServiceClient, path: str, body: object) -> None:
    answer = await served.post(path, body)
    assert answer.status_code == 200
    (index,) = answer.json()["indexes"]
    assert (index["index_name"], index["columns"]) == ("vec_idx", ["vec"])
    assert (index["index_type"], index["status"]) == ("IVF_PQ", "SUCCEEDED")
    assert index["num_indexed_rows"] == NUM_INDEXED - NUM_DELETED
    assert index["num_unindexed_rows"] == NUM_APPENDED
    assert index["type_url"] == "/lance.index.pb.VectorIndexDetails"
    assert (index["num_segments"], index["index_version"]) == (1, 1)
    assert datetime.fromisoformat(index["created_at"]).tzinfo is not None
    assert answer.json()["page_token"] is None


async def test_an_old_version_has_the_indices_that_it_had(served: ServiceClient) -> None:
    before = (await served.post(LIST, {"version": 1})).json()
    assert before["indexes"] == []
    fresh = (await served.post(STATS.format("vec_idx"), {"version": 2})).json()
    assert (fresh["num_indexed_rows"], fresh["num_unindexed_rows"]) == (NUM_INDEXED, 0)
    answer = await served.post(STATS.format("vec_idx"), {"version": 1})
    assert (answer.status_code, answer.json()["code"]) == (404, 6)


async def test_every_kind_has_the_name_that_clients_know(all_kinds: ServiceClient) -> None:
    listed = (await all_kinds.post(LIST)).json()["indexes"]
    found = {each["index_name"]: each["index_type"] for each in listed}
    assert found == {**KINDS, "vec_idx": "IVF_PQ"}
    for name, kind in found.items():
        stats = (await all_kinds.post(STATS.format(name))).json()
        assert stats["index_type"] == kind
        assert stats["distance_type"] == ("l2" if name == "vec_idx" else None)
        assert stats["num_indices"] == 1


async def test_an_index_of_texts_tells_clients_how_it_makes_tokens(
    root: Path, all_kinds: ServiceClient
) -> None:
    listed = (await all_kinds.post(LIST)).json()["indexes"]
    told = {each["index_name"]: json.loads(each["index_details"]) for each in listed}
    (expected,) = (
        each.details
        for each in lance.dataset(str(root / "t1.lance")).describe_indices()
        if each.name == "INVERTED"
    )
    assert told.pop("INVERTED") == {**expected, "lance_tokenizer": "text"}
    assert all(each == {} for each in told.values())


async def test_an_index_of_texts_is_loaded(all_kinds: ServiceClient) -> None:
    done = (await all_kinds.post("/v1/table/t1/index/INVERTED/prewarm")).json()
    assert (done["index"], done["is_complete"], done["skipped"]) == ("INVERTED", True, [])
    assert done["partitions"] == done["partitions_total"] > 0


async def test_a_list_comes_in_pages(all_kinds: ServiceClient) -> None:
    names: list[str] = []
    token = None
    while len(names) == 0 or token is not None:
        page = (await all_kinds.post(LIST, {"limit": 3, "page_token": token})).json()
        names += [each["index_name"] for each in page["indexes"]]
        token = page["page_token"]
    assert names == sorted([*KINDS, "vec_idx"])


async def test_an_index_that_is_not_there_is_not_found(served: ServiceClient) -> None:
    answer = await served.post(STATS.format("no_such"))
    assert (answer.status_code, answer.json()["code"]) == (404, 6)
    assert "vec_idx" in answer.json()["error"]


@pytest.mark.parametrize(("created", "told"), [(None, None), (1 << 62, None)])
def test_what_nobody_can_name_is_told_as_unknown(created: int | None, told: str | None) -> None:
    segment = SegmentStatistics("u", "FM", None, 1, 0, (), None, 0, None)
    index = IndexStatistics("a", ("c",), True, "FM", None, "", 0, created, 0, 0, (segment,))
    entry = index_entry(index)
    assert (entry["index_type"], entry["created_at"]) == ("Unknown", told)
