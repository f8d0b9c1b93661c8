"""Plans as JSON, and why a row is not in an answer, over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.pylance_dataset import LIVE, VECTORS, nearest, write_dataset
from tests.service_client import Contract, ServiceClient, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.interop

EXPLAIN, ANALYZE = "/v1/table/t1/explain_plan", "/v1/table/t1/analyze_plan"
WHY_NOT = "/v1/table/t1/why_not"
VECTOR = VECTORS[123].tolist()
BODY = {"vector": VECTOR, "k": 5, "columns": ["id"], "refine_factor": 2, "filter": "price < 100"}
JSON = {"accept": "application/json"}
DELETED = 49


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served")
    write_dataset(folder / "t1.lance")
    return folder


@pytest.fixture
async def client(root: Path, contract: Contract) -> AsyncIterator[Any]:
    async with serving(root, contract=contract) as client:
        await client.wait_until_ready()
        yield client


def nodes(step: Any) -> list[Any]:
    return [step, *(each for below in step["inputs"] for each in nodes(below))]


@pytest.mark.parametrize(
    ("query", "headers"),
    [("?format=json", {}), ("", JSON)],
    ids=["by parameter", "by header"],
)
async def test_a_plan_can_be_had_as_json(
    client: ServiceClient, query: str, headers: dict[str, str]
) -> None:
    plan = (await client.post(EXPLAIN + query, {"query": BODY}, headers=headers)).json()
    run = (await client.post(ANALYZE + query, BODY, headers=headers)).json()
    names = [each["node"] for each in nodes(plan["plan"])]
    assert names[:2] == ["Take", "MergeByDistance"]
    assert names == [each["node"] for each in nodes(run["plan"])]
    assert "stats" not in plan
    assert run["stats"]["version"] == run["version"] == plan["version"]
    measured = {each["node"]: each["measured"] for each in nodes(run["plan"])}
    assert measured["Take"]["rows"] == 5


@pytest.mark.parametrize(
    "headers",
    [{}, {"accept": "*/*"}, {**JSON, "user-agent": "OpenAPI-Generator/1.0/python"}],
    ids=repr,
)
async def test_a_plan_is_text_unless_json_is_asked_for(
    client: ServiceClient, headers: dict[str, str]
) -> None:
    plan = (await client.post(EXPLAIN, {"query": BODY}, headers=headers)).json()
    assert plan.startswith("Take: ")
    assert "total: " in (await client.post(ANALYZE, BODY, headers=headers)).json()


async def test_an_unknown_format_is_refused(client: ServiceClient) -> None:
    answer = await client.post(f"{EXPLAIN}?format=xml", {"query": BODY})
    assert (answer.status_code, answer.json()["code"]) == (400, 13)


async def row_ids(client: ServiceClient) -> dict[int, int]:
    body = {"k": 1_000, "columns": ["id"], "with_row_id": True}
    rows = (await client.post("/v1/table/t1/query", body, headers=JSON)).json()["rows"]
    return {row["id"]: row["_rowid"] for row in rows}


async def test_a_row_is_told_why_it_is_not_there(client: ServiceClient) -> None:
    known = await row_ids(client)
    order, _ = nearest(VECTOR, None)
    body = {"vector": VECTOR, "k": 5, "nprobes": 50, "refine_factor": 100}
    reasons = {}
    for which in (order[0], order[400]):
        answer = (await client.post(WHY_NOT, {**body, "row": {"row_id": known[which]}})).json()
        reasons[which] = answer["reason"]
        assert answer["row_id"] == known[which]
        assert str(known[which]) in answer["text"]
        assert answer["detail"]["rank"] == order.index(which) + 1
    assert list(reasons.values()) == ["present", "beaten"]
    filtered = {**body, "filter": f"id != {order[0]}", "row": {"row_id": known[order[0]]}}
    assert (await client.post(WHY_NOT, filtered)).json()["reason"] == "filtered"
    assert DELETED not in LIVE
    deleted = {**body, "row": {"row_id": DELETED}}
    assert (await client.post(WHY_NOT, deleted)).json()["reason"] == "deleted"
    itself = {"row_id": known[3], "k": 5, "row": {"row_id": known[3]}}
    assert (await client.post(WHY_NOT, itself)).json()["reason"] == "itself"


@pytest.mark.parametrize(
    "body",
    [
        {"vector": VECTOR},
        {"vector": VECTOR, "row": 3},
        {"vector": VECTOR, "row": {"row_id": -1}},
        {"k": 5, "row": {"row_id": 3}},
        {"vector": [VECTOR, VECTOR], "row": {"row_id": 3}},
    ],
    ids=["no row", "row is a number", "negative", "no vector", "two vectors"],
)
async def test_a_question_that_makes_no_sense_is_refused(client: ServiceClient, body: Any) -> None:
    answer = await client.post(WHY_NOT, body, bad=True)
    assert (answer.status_code, answer.json()["code"]) == (400, 13)
