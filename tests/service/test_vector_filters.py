"""Filters, rows to search by and graph options in the bodies of vector queries."""

from __future__ import annotations

from typing import Any

import pytest

from tests.pylance_dataset import LIVE, NUM_INDEXED, VECTORS, nearest
from tests.service_client import ServiceClient, read_arrow

pytestmark = pytest.mark.interop

QUERY = "/v1/table/t1/query"
VECTOR = VECTORS[123].tolist()
JSON = {"accept": "application/json"}


async def ids(served: ServiceClient, body: dict[str, Any]) -> list[int]:
    answer = await served.post(QUERY, {"columns": ["id"], **body})
    assert answer.status_code == 200, answer.json()
    found: list[int] = read_arrow(answer)["id"].to_pylist()
    return found


def of_kind(number: int) -> Any:
    kinds = LIVE % 5
    return LIVE[kinds == number]


@pytest.mark.parametrize("prefilter", [True, None])
async def test_only_rows_that_pass_are_ranked(served, prefilter):
    body = {"vector": VECTOR, "k": 12, "filter": "kind = 'kind 3' AND price >= 0"}
    if prefilter is not None:
        body["prefilter"] = prefilter
    for _ in range(2):  # at first the filter is evaluated where waiting is allowed
        assert await ids(served, body) == nearest(VECTOR, 12, of_kind(3))[0]


async def test_a_postfilter_leaves_fewer_rows(served):
    body = {"vector": VECTOR, "k": 12, "bypass_vector_index": True, "prefilter": False}
    expected = [each for each in nearest(VECTOR, 12)[0] if each % 5 == 3]
    assert await ids(served, {**body, "filter": "kind = 'kind 3'"}) == expected
    assert await ids(served, {**body, "filter": "_distance < 0.001"}) == [123]
    assert await ids(served, {**body, "filter": "id < 0"}) == []


async def test_the_answer_says_that_it_is_exact(served):
    body = {"vector": VECTOR, "k": 3, "filter": "id > 40"}
    answer = await served.post(QUERY, body, headers=JSON)
    stats = answer.json()["stats"]
    assert (stats["plan"], stats["exact"], stats["rows_left_out"]) == ("exact", True, 0)


async def test_offsets_and_batches_go_with_filters(served):
    vectors = [VECTOR, VECTORS[5].tolist()]
    body = {"vector": vectors, "k": 4, "offset": 2, "filter": "kind = 'kind 1'"}
    expected = [row for each in vectors for row in nearest(each, 6, of_kind(1))[0][2:]]
    assert await ids(served, body) == expected


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("kind = ", 13, "at character 8: expected a number"),
        ("kind", 13, "at character 1: column kind is string"),
        ("id > 1 AND nope = 2", 12, 'unknown column "nope" in the filter at character 12'),
        ("id > 1 OR price = 'a'", 13, "at character 11: column price is double"),
        ("_distance < 1", 12, 'unknown column "_distance"'),
        ("", 13, "at character 1"),
    ],
)
async def test_a_filter_that_cannot_be_is_refused_with_its_place(served, text, code, said):
    body = {"vector": VECTOR, "filter": text}
    for action, given in {"query": body, "explain_plan": {"query": body}}.items():
        answer = await served.post(f"/v1/table/t1/{action}", given)
        assert (answer.status_code, answer.json()["code"]) == (400, code)
        assert said in answer.json()["error"]


async def test_neighbours_of_a_row_are_without_it(served):
    body: dict[str, Any] = {"row_id": 123, "k": 5, "bypass_vector_index": True}
    assert await ids(served, body) == nearest(VECTOR, 6)[0][1:]
    body |= {"filter": "kind = 'kind 3'"}
    expected = [each for each in nearest(VECTOR, 30, of_kind(3))[0] if each != 123][:5]
    assert await ids(served, body) == expected


@pytest.mark.parametrize("row_ids", [[123], [123, 5, 123]], ids=["one", "several"])
async def test_neighbours_of_several_rows_are_a_batch(served, row_ids):
    body = {"row_ids": row_ids, "k": 5, "columns": ["id"], "filter": "id >= 0", "nprobes": 50}
    answer = read_arrow(await served.post(QUERY, {**body, "refine_factor": 100}))
    assert answer["query_index"].to_pylist() == [i for i in range(len(row_ids)) for _ in range(5)]
    expected = [row for each in row_ids for row in nearest(VECTORS[each].tolist(), 6)[0][1:]]
    assert answer["id"].to_pylist() == expected


@pytest.mark.parametrize("mode", ["normal", "fast", "accurate", None])
async def test_approximation_modes_are_heeded(served, mode):
    body = {"vector": VECTOR, "approx_mode": mode}
    assert len(await ids(served, body)) == 10
    plan = await served.post("/v1/table/t1/explain_plan", body)
    assert plan.status_code == 200


@pytest.mark.parametrize("mode", ["fastest", "", 3])
async def test_other_approximation_modes_are_refused(served, mode):
    answer = await served.post(QUERY, {"vector": VECTOR, "approx_mode": mode}, bad=True)
    assert (answer.status_code, answer.json()["code"]) == (400, 13)
    assert "approx_mode: Input should be 'normal', 'fast' or 'accurate'" in answer.json()["error"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"row_id": 49}, "row 49 of fragment 0 is deleted"),
        ({"row_id": NUM_INDEXED}, "is no row of version"),
        ({"row_id": 2**64 - 1}, "no row"),
        ({"row_id": -1}, "row_id: Input should be greater than or equal to 0"),
        ({"row_id": "1"}, "row_id: Input should be a valid integer"),
        ({"row_id": 1, "vector": VECTOR}, "either query vectors or ids of rows"),
        ({"row_ids": [1], "vector": VECTOR}, "either query vectors or ids of rows"),
        ({"row_ids": [1], "row_id": 1}, "row_id: give either this or row_ids"),
        ({"row_ids": []}, "give one or more ids of rows"),
        ({"row_ids": 1}, "row_ids: Input should be a valid list"),
        ({"row_ids": [1, -1]}, "row_ids[1]: Input should be greater than or equal to 0"),
        ({"row_ids": [49]}, "row 49 of fragment 0 is deleted"),
    ],
)
async def test_a_row_that_cannot_be_searched_by_is_refused(served, body, said):
    answer = await served.post(QUERY, body, bad=True)
    assert (answer.status_code, answer.json()["code"]) == (400, 13)
    assert said in answer.json()["error"]


async def test_the_breadth_of_graph_searches_changes_nothing_without_a_graph(served):
    body = {"vector": VECTOR, "k": 5}
    assert await ids(served, {**body, "ef": 50}) == await ids(served, body)


async def test_plans_tell_how_a_filter_is_applied(served):
    query = {"vector": VECTOR, "filter": "id > 40"}
    plan = (await served.post("/v1/table/t1/explain_plan", {"query": query})).json()
    assert "Prefilter: filter=id > 40, rows=" in plan
    facts = (await served.post("/v1/table/t1/analyze_plan", query)).json()
    assert "ListedSearch" in facts


@pytest.mark.parametrize("vector", [[], None, {}, {"single_vector": None}])
async def test_without_a_vector_a_filter_leaves_rows_in_table_order(served, vector):
    assert await ids(served, {"vector": vector, "filter": "id > 1", "k": 3}) == [2, 3, 4]
