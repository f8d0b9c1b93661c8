"""Filters, orders, expressions and parameters in the bodies of plain queries and counts."""

from __future__ import annotations

from typing import Any

import pytest

from tests.pylance_dataset import LIVE, VECTORS
from tests.service_client import ServiceClient, read_arrow

pytestmark = pytest.mark.interop

QUERY = "/v1/table/t1/query"
COUNT = "/v1/table/t1/count_rows"
JSON = {"accept": "application/json"}
UNLIMITED = 2**63 - 1


async def rows(served: ServiceClient, **body: Any) -> Any:
    answer = await served.post(QUERY, body)
    assert answer.status_code == 200, answer.json()
    return read_arrow(answer)


async def ids(served: ServiceClient, **body: Any) -> Any:
    found: list[int] = (await rows(served, columns=["id"], **body))["id"].to_pylist()
    return found


def live(test: Any) -> list[int]:
    return [each for each in LIVE.tolist() if test(each)]


async def test_only_rows_that_pass_are_returned(served):
    expected = live(lambda i: i % 5 == 3 and i > 500)
    found = await ids(served, filter="kind = 'kind 3' AND id > 500", k=UNLIMITED)
    assert found == expected
    assert await ids(served, filter="kind = 'kind 3' AND id > 500", k=4, offset=2) == expected[2:6]
    assert await ids(served, filter="kind = 'kind 3' AND id > 500", offset=1_000) == []


async def test_columns_of_a_filter_need_not_be_returned(served):
    found = await rows(served, columns=["vec"], filter="price = 20.0", with_row_id=True)
    assert found.schema.names == ["vec", "_rowid"]
    assert found["vec"].to_pylist() == [VECTORS[80].tolist()]


async def test_rows_are_ordered_by_columns_that_are_not_returned(served):
    order = [{"column_name": "kind", "ascending": False}, {"column_name": "price"}]
    expected = sorted(LIVE.tolist(), key=lambda i: (-(i % 5), i))
    assert await ids(served, order_by=order, k=7, offset=3) == expected[3:10]
    assert await ids(served, order_by=order, k=UNLIMITED) == expected
    few = await ids(served, order_by=order, k=5, filter="id < 20")
    assert few == [i for i in expected if i < 20][:5]


async def test_nulls_come_where_they_are_wanted_and_defaults_are_ascending_nulls_last(served):
    order: list[Any] = [{"column_name": "id", "ascending": None, "nulls_first": None}]
    assert await ids(served, order_by=order, k=3) == [0, 1, 2]
    order = [{"column_name": "id", "ascending": False, "nulls_first": True}]
    assert await ids(served, order_by=order, k=2) == LIVE[::-1][:2].tolist()


async def test_an_empty_order_is_that_of_the_table(served):
    assert await ids(served, order_by=[], k=3) == [0, 1, 2]


async def test_columns_are_computed_in_the_order_of_the_object(served):
    columns = {"twice": "price * 2", "id": "id", "named": "upper(kind)", "where": "_rowid"}
    found = await rows(served, columns=columns, filter="id = 7", with_row_id=True)
    assert found.schema.names == ["twice", "id", "named", "where", "_rowid"]
    assert found.to_pylist() == [
        {"twice": 3.5, "id": 7, "named": "KIND 2", "where": 7, "_rowid": 7}
    ]


async def test_both_namespace_forms_of_columns_are_understood(served):
    aliased = await rows(served, columns={"column_aliases": {"number": "id"}}, k=2)
    assert aliased.to_pydict() == {"number": [0, 1]}
    assert (await rows(served, columns={"column_names": ["id"]}, k=2)).to_pydict() == {"id": [0, 1]}


async def test_parameters_take_the_place_of_names(served):
    body = {"filter": "kind = $kind AND id IN ($ids)", "params": {"kind": "kind 1", "ids": [6, 7]}}
    assert await ids(served, **body) == [6]
    injected = {"filter": "kind = $kind", "params": {"kind": "x' OR true OR kind = 'x"}}
    assert await ids(served, **injected) == []
    computed = {"columns": {"more": "id + $by"}, "params": {"by": 5}, "k": 1}
    assert (await rows(served, **computed)).to_pydict() == {"more": [5]}


async def test_parameters_go_with_vectors_too(served):
    body = {"vector": VECTORS[3].tolist(), "k": 2, "filter": "id = $id"}
    for number in (3, 8, 3):
        assert await ids(served, **body, params={"id": number}) == [number]
    after = {**body, "prefilter": False, "k": 5, "params": {"id": 3}}
    assert await ids(served, **after) == [3]


async def test_rows_are_named_by_ids_and_offsets(served):
    assert await ids(served, filter="_rowid IN (1, 5)", k=UNLIMITED) == [1, 5]
    found = await rows(
        served, columns=["id", "_rowoffset"], filter="_rowoffset IN (48, 49)", k=UNLIMITED
    )
    assert found.to_pydict() == {"id": [48, 50], "_rowoffset": [48, 49]}


async def test_json_answers_hold_the_same(served):
    body = {"columns": {"n": "id"}, "filter": "id < 3", "order_by": [{"column_name": "id"}]}
    answer = await served.post(QUERY, body, headers=JSON)
    assert answer.json()["rows"] == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert answer.json()["stats"]["stop_reason"] == "no_more_rows"


@pytest.mark.parametrize("member", ["predicate", "filter"])
async def test_rows_that_pass_are_counted(served, member):
    answer = await served.post(COUNT, {member: "kind = 'kind 3' AND id > 500"})
    assert answer.json() == len(live(lambda i: i % 5 == 3 and i > 500))
    assert answer.headers["x-lancedb-version"] == "4"


async def test_counts_take_parameters_and_versions(served):
    body = {"predicate": "id >= $least", "params": {"least": 600}}
    assert (await served.post(COUNT, body)).json() == 20
    assert (await served.post(COUNT, {**body, "version": 1})).json() == 0


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        (QUERY, {"filter": "nope = 1"}, "nope"),
        (QUERY, {"filter": "id = 'a'"}, "id"),
        (QUERY, {"filter": "id ="}, "character"),
        (QUERY, {"filter": "id = $a"}, "$a"),
        (QUERY, {"filter": "id = 1; DROP TABLE t"}, "character"),
        (QUERY, {"columns": {"a": "nope"}}, "nope"),
        (QUERY, {"columns": {"a": "sum(id)"}}, "sum"),
        (QUERY, {"order_by": [{"column_name": "nope"}]}, "nope"),
        (QUERY, {"order_by": [{"column_name": "vec"}]}, 'column "vec" holds'),
        (COUNT, {"predicate": "nope = 1"}, "nope"),
        (COUNT, {"predicate": "id = 1", "filter": "id = 1"}, "stands beside predicate"),
    ],
    ids=repr,
)
async def test_what_does_not_fit_the_table_gives_400(served, path, body, said):
    answer = await served.post(path, body)
    assert (answer.status_code, answer.json()["code"]) in {(400, 12), (400, 13)}
    assert said in answer.json()["error"]


async def test_a_filter_that_takes_too_long_ends_with_408(served):
    answer = await served.post(QUERY, {"filter": "id < 0"}, headers={"x-request-timeout-ms": "0"})
    assert answer.status_code == 408
    answer = await served.post(COUNT, {"filter": "id < 0"}, headers={"x-request-timeout-ms": "0"})
    assert answer.status_code == 408


async def test_plans_show_filter_and_order(served):
    query = {"columns": ["id"], "filter": "price < 3", "order_by": [{"column_name": "price"}]}
    plan = (await served.post("/v1/table/t1/explain_plan", {"query": query})).json()
    assert plan.splitlines()[:5] == [
        "Take: columns=[id]",
        "  Limit: offset=0, limit=10",
        "    Order: by=[price ascending nulls last], keep=10",
        "      Filter: filter=price < 3",
        "        Scan: fragments=3, columns=[price]",
    ]
    report = (await served.post("/v1/table/t1/analyze_plan?format=json", query)).json()
    steps, step = {}, report["plan"]
    while True:
        steps[step["node"]] = step["measured"]
        if not step["inputs"]:
            break
        step = step["inputs"][0]
    counted = {name: steps[name]["rows"] for name in ("Take", "Order", "Filter", "Scan")}
    assert counted == {"Take": 10, "Order": 10, "Filter": 12, "Scan": len(LIVE)}
