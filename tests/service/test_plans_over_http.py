"""Plans as JSON, and why a row is not in an answer, over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.pylance_dataset import LIVE, VECTORS, nearest

if TYPE_CHECKING:
    from tests.service_client import ServiceClient

pytestmark = pytest.mark.interop

EXPLAIN, ANALYZE = "/v1/table/t1/explain_plan", "/v1/table/t1/analyze_plan"
WHY_NOT = "/v1/table/t1/why_not"
VECTOR = VECTORS[123].tolist()
BODY = {"vector": VECTOR, "k": 5, "columns": ["id"], "refine_factor": 2, "filter": "price < 100"}
JSON = {"accept": "application/json"}
DELETED = 49


def nodes(step: Any) -> list[Any]:
    return [step, *(each for below in step["inputs"] for each in nodes(below))]


async def test_a_plan_can_be_had_as_json(served: ServiceClient) -> None:
    plan = (await served.post(f"{EXPLAIN}?format=json", {"query": BODY})).json()
    run = (await served.post(f"{ANALYZE}?format=json", BODY)).json()
    names = [each["node"] for each in nodes(plan["plan"])]
    assert names[:2] == ["Take", "MergeByDistance"]
    assert names == [each["node"] for each in nodes(run["plan"])]
    assert "stats" not in plan
    assert run["stats"]["version"] == run["version"] == plan["version"]
    measured = {each["node"]: each["measured"] for each in nodes(run["plan"])}
    assert measured["Take"]["rows"] == 5


@pytest.mark.parametrize(
    "headers",
    [{}, {"accept": "*/*"}, JSON, {**JSON, "user-agent": "OpenAPI-Generator/1.0/python"}],
    ids=repr,
)
async def test_a_plan_is_text_unless_json_is_asked_for(
    served: ServiceClient, headers: dict[str, str]
) -> None:
    plan = (await served.post(EXPLAIN, {"query": BODY}, headers=headers)).json()
    assert plan.startswith("Take: ")
    assert "total: " in (await served.post(ANALYZE, BODY, headers=headers)).json()


@pytest.mark.parametrize("given", ["xml", "arrow"])
async def test_an_unknown_format_is_refused(served: ServiceClient, given: str) -> None:
    for path in (EXPLAIN, ANALYZE):
        answer = await served.post(f"{path}?format={given}", BODY)
        assert (answer.status_code, answer.json()["code"]) == (400, 13)
        assert answer.json()["error"].endswith("of a plan; use one of: text, json")
    as_text = await served.post(f"{EXPLAIN}?format=text", BODY, headers=JSON)
    assert as_text.json().startswith("Take: ")


async def test_a_query_is_understood_wrapped_and_as_the_body_itself(served: ServiceClient) -> None:
    plans = [(await served.post(EXPLAIN, each)).json() for each in (BODY, {"query": BODY})]
    assert plans[0] == plans[1]
    assert "Prefilter: " in plans[0]
    for body in (BODY, {"query": BODY}):
        assert "Prefilter: " in (await served.post(ANALYZE, body)).json()
    row = {"row": {"row_id": 3}}
    reasons = [await served.post(WHY_NOT, {**row, **each}) for each in (BODY, {"query": BODY})]
    assert reasons[0].status_code == 200
    assert reasons[0].json() == reasons[1].json()


@pytest.mark.parametrize("path", [EXPLAIN, ANALYZE, WHY_NOT])
@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"query": BODY, "k": 3}, "k: stands beside query; move it inside"),
        ({"query": 3}, "query: must be an object"),
        ({"query": [BODY]}, "query: must be an object"),
    ],
    ids=["beside", "number", "list"],
)
async def test_a_query_in_two_places_or_none_is_refused(
    served: ServiceClient, path: str, body: Any, said: str
) -> None:
    answer = await served.post(path, {**body, "row": {"row_id": 3}}, bad=True)
    assert (answer.status_code, answer.json()["code"]) == (400, 13)
    assert said in answer.json()["error"]


async def test_the_version_may_be_named_inside_of_a_query_too(served: ServiceClient) -> None:
    for path in (EXPLAIN, ANALYZE, WHY_NOT):
        body = {"query": {**BODY, "tag": "v1"}, "row": {"row_id": 3}}
        assert (await served.post(path, body)).status_code == 404


async def test_what_is_only_for_plans_is_no_query(served: ServiceClient) -> None:
    answer = await served.post("/v1/table/t1/query", {"query": BODY})
    assert (answer.status_code, answer.json()["code"]) == (400, 13)
    assert "in the body itself" in answer.json()["error"]


async def row_ids(served: ServiceClient) -> dict[int, int]:
    body = {"k": 1_000, "columns": ["id"], "with_row_id": True}
    rows = (await served.post("/v1/table/t1/query", body, headers=JSON)).json()["rows"]
    return {row["id"]: row["_rowid"] for row in rows}


async def test_a_row_is_told_why_it_is_not_there(served: ServiceClient) -> None:
    known = await row_ids(served)
    order, _ = nearest(VECTOR, None)
    body = {"vector": VECTOR, "k": 5, "nprobes": 50, "refine_factor": 100}
    reasons = {}
    for which in (order[0], order[400]):
        answer = (await served.post(WHY_NOT, {**body, "row": {"row_id": known[which]}})).json()
        reasons[which] = answer["reason"]
        assert answer["row_id"] == known[which]
        assert str(known[which]) in answer["text"]
        assert answer["detail"]["rank"] == order.index(which) + 1
    assert list(reasons.values()) == ["present", "beaten"]
    filtered = {**body, "filter": f"id != {order[0]}", "row": {"row_id": known[order[0]]}}
    assert (await served.post(WHY_NOT, filtered)).json()["reason"] == "filtered"
    assert DELETED not in LIVE
    deleted = {**body, "row": {"row_id": DELETED}}
    assert (await served.post(WHY_NOT, deleted)).json()["reason"] == "deleted"
    itself = {"row_id": known[3], "k": 5, "row": {"row_id": known[3]}}
    assert (await served.post(WHY_NOT, itself)).json()["reason"] == "itself"


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
async def test_a_question_that_makes_no_sense_is_refused(served: ServiceClient, body: Any) -> None:
    answer = await served.post(WHY_NOT, body, bad=True)
    assert (answer.status_code, answer.json()["code"]) == (400, 13)
