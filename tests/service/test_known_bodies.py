"""Bodies decoded by what an earlier one said: the same queries, and the same mistakes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import orjson
import pytest

from service.api.bodies import load_object
from service.api.known_bodies import known_query
from service.api.query_bodies import parse_query
from service.limits import QueryLimits

if TYPE_CHECKING:
    from lance_core.query.engine import Request
    from tests.service_client import ServiceClient

LIMITS = QueryLimits(max_k=1000)
NEAR_ROW_2 = [8.0, 9.0, 10.0, 11.0]


def facts(query: Request) -> tuple[object, ...]:
    values = [getattr(query, name) for name in type(query).__slots__]
    return tuple(each.tolist() if isinstance(each, np.ndarray) else each for each in values)


def known(body: bytes) -> Request | None:
    query = known_query(body, limits=LIMITS)
    return None if query is None else query.request


def decoded(body: bytes) -> Request:
    return parse_query(load_object(body), limits=LIMITS).request


@pytest.mark.parametrize(
    "body",
    [
        b'{"vector":[1,2.5]}',
        b'{"vector": [1, 2.5], "k": 3, "columns": ["id"], "nprobes": 4, "refine_factor": null}',
        b'{"k":3,"filter":"id < 7","vector":[-0.25,1e-3],"distance_type":"COSINE","ef":20}',
        b' { "vector_column" : "vector" , "vector" \t:\n[ 1 , 2 ] , "params" : {"a": [1, true]} } ',
        b'{"vector":[1],"k":2,"k":5,"id":["t1"],"timeout_ms":20,"lower_bound":1}',
    ],
)
def test_a_known_body_gives_the_query_that_decoding_it_gives(body: bytes) -> None:
    for _ in range(2):
        query = known(body)
        assert query is not None
        assert facts(query) == facts(decoded(body))


def test_equal_values_of_other_types_are_other_bodies() -> None:
    first = known(b'{"vector":[1],"lower_bound":1,"fast_search":true}')
    assert first is not None
    assert known(b'{"vector":[1],"lower_bound":1,"fast_search":1}') is None
    third = known(b'{"vector":[1],"lower_bound":1.0,"fast_search":true}')
    assert third is not None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'{"vector":[1,2]',
        b'{"vector":[1,2',
        b'{"vector":[1,2]}}',
        b'{"vector":[1,"2"]}',
        b'{"vector":[]}',
        b'{"vector":[[1,2]]}',
        b'{"vector":[1,2],"vector":[]}',
        b'{"vector":[1,2],"\\u0076ector":[]}',
        b'{"vector":null,"query":{"vector":[1,2]}}',
        b'{"query":{"vector":[1,2]}}',
        b'{"vector":[1],"query":{"k":1}}',
        b'{"vector":{"single_vector":[1,2]}}',
        b'{"vector":[1,2],"k":"3"}',
        b'{"vector":[1,2],"row_id":3}',
        b'{"vector":[1,2],"k":1001}',
        b'{"vector":[1,2],"filter":"name = \\"a\\""}',
        b'{"filter":"\\"vector\\":[1]"}',
        b'{"vector":[1,2],"filter":"' + b"x" * 5000 + b'"}',
    ],
)
def test_what_is_unusual_or_wrong_is_decoded_as_a_whole(body: bytes) -> None:
    assert known(body) is None
    assert known(body) is None


@pytest.mark.parametrize("vector", [[1e39, 0, 0, 0], [1, 2]], ids=str)
@pytest.mark.parametrize("known_before", [False, True], ids=["first", "later"])
async def test_mistakes_in_the_vector_are_told_alike(
    client: ServiceClient, vector: list[float], known_before: bool
) -> None:
    rest = {"k": 3, "offset": int(known_before)}
    if known_before:
        await client.post("/v1/table/t1/query", {"vector": NEAR_ROW_2, **rest})
    answer = await client.post("/v1/table/t1/query", {"vector": vector, **rest})
    wrapped = {"vector": {"single_vector": vector}, **rest}
    expected = await client.post("/v1/table/t1/query", wrapped)
    told, whole = orjson.loads(answer.content), orjson.loads(expected.content)
    assert answer.status_code == expected.status_code == 400
    assert told["error"] == whole["error"]


async def test_a_zero_vector_has_no_cosine_distance_in_a_known_body_either(
    client: ServiceClient,
) -> None:
    body = {"k": 2, "distance_type": "cosine"}
    first = await client.post("/v1/table/t1/query", {"vector": NEAR_ROW_2, **body})
    second = await client.post("/v1/table/t1/query", {"vector": [0.0] * 4, **body})
    assert first.status_code == 200
    assert second.status_code == 400
    assert "zero query vector" in second.text
