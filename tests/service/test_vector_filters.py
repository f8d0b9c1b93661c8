"""Filters, rows to search by and graph options in the bodies of vector queries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.pylance_dataset import LIVE, NUM_INDEXED, VECTORS, nearest, write_dataset
from tests.service_client import Contract, ServiceClient, read_arrow, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


pytestmark = pytest.mark.interop

QUERY = "/v1/table/t1/query"
VECTOR = VECTORS[123].tolist()
JSON = {"accept": "application/json"}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("filtered")
    write_dataset(folder / "t1.lance")
    return folder


@pytest.fixture
async def client(root: Path, contract: Contract) -> AsyncIterator[Any]:
    async with serving(root, contract=contract) as client:
        await client.wait_until_ready()
        yield client


async def ids(client: ServiceClient, body: dict[str, Any]) -> list[int]:
    answer = await client.post(QUERY, {"columns": ["id"], **body})
    assert answer.status_code == 200, answer.json()
    found: list[int] = read_arrow(answer)["id"].to_pylist()
    return found


def of_kind(number: int) -> Any:
    kinds = LIVE % 5
    return LIVE[kinds == number]


@pytest.mark.parametrize("prefilter", [True, None])
async def test_only_rows_that_pass_are_ranked(client, prefilter):
    body = {"vector": VECTOR, "k": 12, "filter": "kind = 'kind 3' AND price >= 0"}
    if prefilter is not None:
        body["prefilter"] = prefilter
    for _ in range(2):  # at first the filter is evaluated where waiting is allowed
        assert await ids(client, body) == nearest(VECTOR, 12, of_kind(3))[0]


async def test_a_postfilter_leaves_fewer_rows(client):
    body = {"vector": VECTOR, "k": 12, "bypass_vector_index": True, "prefilter": False}
    expected = [each for each in nearest(VECTOR, 12)[0] if each % 5 == 3]
    assert await ids(client, {**body, "filter": "kind = 'kind 3'"}) == expected
    assert await ids(client, {**body, "filter": "_distance < 0.001"}) == [123]
    assert await ids(client, {**body, "filter": "id < 0"}) == []


async def test_the_answer_says_that_it_is_exact(client):
    body = {"vector": VECTOR, "k": 3, "filter": "id > 40"}
    answer = await client.post(QUERY, body, headers=JSON)
    stats = answer.json()["stats"]
    assert (stats["plan"], stats["exact"], stats["rows_left_out"]) == ("exact", True, 0)


async def test_offsets_and_batches_go_with_filters(client):
    vectors = [VECTOR, VECTORS[5].tolist()]
    body = {"vector": vectors, "k": 4, "offset": 2, "filter": "kind = 'kind 1'"}
    expected = [row for each in vectors for row in nearest(each, 6, of_kind(1))[0][2:]]
    assert await ids(client, body) == expected


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("kind = ", 13, "at character 8: the end comes where"),
        ("kind", 13, "at character 1: column kind is string"),
        ("id > 1 AND nope = 2", 12, 'unknown column "nope" in the filter at character 12'),
        ("id > 1 OR price = 'a'", 13, "at character 11: column price is double"),
        ("_distance < 1", 12, 'unknown column "_distance"'),
        ("", 13, "at character 1"),
    ],
)
async def test_a_filter_that_cannot_be_is_refused_with_its_place(client, text, code, said):
    body = {"vector": VECTOR, "filter": text}
    for action, given in {"query": body, "explain_plan": {"query": body}}.items():
        answer = await client.post(f"/v1/table/t1/{action}", given)
        assert (answer.status_code, answer.json()["code"]) == (400, code)
        assert said in answer.json()["error"]


async def test_neighbours_of_a_row_are_without_it(client):
    body: dict[str, Any] = {"row_id": 123, "k": 5, "bypass_vector_index": True}
    assert await ids(client, body) == nearest(VECTOR, 6)[0][1:]
    body |= {"filter": "kind = 'kind 3'"}
    expected = [each for each in nearest(VECTOR, 30, of_kind(3))[0] if each != 123][:5]
    assert await ids(client, body) == expected


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"row_id": 49}, "row 49 of fragment 0 is deleted"),
        ({"row_id": NUM_INDEXED}, "is asked for"),
        ({"row_id": 2**64 - 1}, "no row"),
        ({"row_id": -1}, "row_id: Input should be greater than or equal to 0"),
        ({"row_id": "1"}, "row_id: Input should be a valid integer"),
        ({"row_id": 1, "vector": VECTOR}, "either query vectors or ids of rows"),
    ],
)
async def test_a_row_that_cannot_be_searched_by_is_refused(client, body, said):
    answer = await client.post(QUERY, body, bad=True)
    assert (answer.status_code, answer.json()["code"]) == (400, 13)
    assert said in answer.json()["error"]


async def test_the_breadth_of_graph_searches_changes_nothing_without_a_graph(client):
    body = {"vector": VECTOR, "k": 5}
    assert await ids(client, {**body, "ef": 50}) == await ids(client, body)


async def test_plans_tell_how_a_filter_is_applied(client):
    query = {"vector": VECTOR, "filter": "id > 40"}
    plan = (await client.post("/v1/table/t1/explain_plan", {"query": query})).json()
    assert "Prefilter: filter=id > 40, rows=" in plan
    facts = (await client.post("/v1/table/t1/analyze_plan", query)).json()
    assert "ListedSearch" in facts


@pytest.mark.parametrize("vector", [[], {"single_vector": None}, None])
async def test_filters_of_plain_queries_are_not_served_yet(client, vector):
    answer = await client.post(QUERY, {"vector": vector, "filter": "id > 1"}, bad=True)
    assert answer.status_code in {400, 406}
