"""Every mistake a caller can make gets the documented answer."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, Any

import pytest

from tests.service_client import Contract, ServiceClient, later_requests, serving

if TYPE_CHECKING:
    from pathlib import Path

    from tests.fake_dataset import FakeStore

QUERY = "/v1/table/t1/query"
COUNT = "/v1/table/t1/count_rows"
VECTOR = [1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (b"{", "JSON"),
        (b"[1, 2]", "object"),
        (b"null", "object"),
        (b'{"vector": [NaN, 1, 2, 3]}', "JSON"),
        (b'{"vector": [1e999, 1, 2, 3]}', "JSON"),
        ({"vector": [1e39, 1, 2, 3]}, "finite"),
        ({"vector": [1, 2, 3]}, "dimension"),
        ({"vector": [[1, 2, 3, 4], [1, 2]]}, "different lengths"),
        ({"vector": [[]]}, "shape"),
        ({"vector": ["1", "2", "3", "4"]}, "numbers"),
        ({"vector": [True, 1, 2, 3]}, "numbers"),
        ({"vector": [None, 1, 2, 3]}, "numbers"),
        ({"vector": [[1, 2, 3, 4], 5]}, "mixed"),
        ({"vector": "near"}, "list"),
        ({"vector": 7}, "list"),
        ({"vector": {"single": VECTOR}}, "single_vector"),
        ({"vector": VECTOR, "k": -1}, "k"),
        ({"vector": VECTOR, "k": "ten"}, "k"),
        ({"vector": VECTOR, "k": 2.5}, "k"),
        ({"vector": VECTOR, "k": True}, "k"),
        ({"vector": VECTOR, "k": 1_000_001}, "k is 1000001, the limit is 1000000 (setting max_k)"),
        ({"k": -1}, "k"),
        ({"vector": VECTOR, "offset": -1}, "offset"),
        ({"vector": VECTOR, "columns": "id"}, "columns"),
        ({"vector": VECTOR, "columns": [1]}, "columns"),
        ({"vector": VECTOR, "distance_type": "manhattan"}, "metric"),
        ({"vector": VECTOR, "refine_factor": 0}, "refine_factor"),
        ({"vector": VECTOR, "lower_bound": "0"}, "lower_bound"),
        ({"vector": VECTOR, "with_row_id": "yes"}, "with_row_id"),
        ({"vector": VECTOR, "version": "three"}, "version"),
        ({"vector": VECTOR, "id": ["t2"]}, "path"),
        ({"vector": [0, 0, 0, 0], "distance_type": "cosine"}, "zero"),
        ({"vector": VECTOR, "nprobes": 0}, "nprobes is 0; it must be at least 1"),
        ({"vector": VECTOR, "nprobes": 0, "minimum_nprobes": 2}, "nprobes is 0;"),
        ({"vector": VECTOR, "minimum_nprobes": 0}, "minimum_nprobes is 0;"),
        ({"vector": VECTOR, "nprobes": 9, "maximum_nprobes": 4}, "nprobes 9 is above maximum_"),
        ({"vector": VECTOR, "nprobes": 9, "minimum_nprobes": 10}, "minimum_nprobes 10 is above np"),
        (b'{"refine_factor": 100000000000000000000}', "refine_factor: Input should be an integer"),
        (b'{"version": -100000000000000000000}', "integer of at most 64 bits, not -1e+20"),
        ({"columns": [None]}, "columns[0]: Input should be a valid string, not null"),
        ({"columns": ["a", {"b": True}]}, 'columns[1]: Input should be a valid string, not {"b":'),
        ({"with_row_id": "yes"}, 'with_row_id: Input should be a valid boolean, not "yes"'),
        ({"k": [True, None]}, "k: Input should be a valid integer, not [true,null]"),
        ({"vector": [None, 1, True]}, "vector: must hold numbers only, not booleans, null"),
        ({"vector": [{}, 1]}, "vector: must hold numbers only, not objects"),
        ({"predicate": "id > 1"}, "predicate: in a query it is called filter"),
        ({"columns": {"a": 3}}, "columns.a: Input should be a valid string, not 3"),
        ({"vector": VECTOR, "order_by": [{"column_name": "id"}]}, "order_by: rows near a vector"),
        ({"order_by": [{"ascending": True}]}, "order_by[0].column_name: Field required"),
        ({"params": 3}, "params: Input should be an object, not 3"),
        ({"id": ["t2"]}, 'the id in the body is ["t2"], the path names ["t1"]'),
    ],
    ids=repr,
)
async def test_a_wrong_query_gives_400_and_says_what_is_wrong(
    client: ServiceClient, body: Any, word: str
) -> None:
    answer = await client.post(QUERY, body, bad=True)
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (400, 13)
    assert word in problem["error"]


@pytest.mark.parametrize("wrong", ["yes", 1, [True]], ids=repr)
async def test_wrong_types_in_other_bodies_give_400(client: ServiceClient, wrong: Any) -> None:
    body = {"load_detailed_metadata": wrong}
    answer = await client.post("/v1/table/t1/describe", body, bad=True)
    assert (answer.status_code, answer.json()["code"]) == (400, 13)


async def test_broken_json_gives_400_on_every_path_that_takes_a_body(client: ServiceClient) -> None:
    for action in ("describe", "count_rows", "explain_plan", "analyze_plan", "version/list"):
        answer = await client.post(f"/v1/table/t1/{action}", b'{"version": ', bad=True)
        assert (answer.status_code, answer.json()["code"]) == (400, 13), action


async def test_explaining_without_a_query_gives_400(client: ServiceClient) -> None:
    answer = await client.post("/v1/table/t1/explain_plan", {"verbose": True}, bad=True)
    assert (answer.status_code, answer.json()["code"]) == (400, 13)


@pytest.mark.parametrize("action", ["describe", "count_rows", "query", "version/list", "exists"])
async def test_an_unknown_table_gives_404_code_4(client: ServiceClient, action: str) -> None:
    answer = await client.post(f"/v1/table/nope/{action}", {"vector": VECTOR})
    assert (answer.status_code, answer.json()["code"]) == (404, 4)
    assert answer.json()["error"] == "table 'nope' not found"


@pytest.mark.parametrize("version", [0, 99, -1, 2**63, 2**64])
async def test_an_unknown_version_gives_404_code_11(client: ServiceClient, version: Any) -> None:
    for action in ("describe", "count_rows", "query"):
        body = {"version": version, "vector": VECTOR} if version < 2**64 else b'{"version": 1e30}'
        answer = await client.post(f"/v1/table/t1/{action}", body, bad=version >= 2**64)
        expected = (404, 11) if version < 2**64 else (400, 13)
        assert (answer.status_code, answer.json()["code"]) == expected


async def test_an_unknown_version_names_the_table_and_not_its_place(
    client: ServiceClient, tmp_path: Path
) -> None:
    for action in ("describe", "query", "version/list"):
        for version in (0, 99):
            body = {"version": version, "vector": VECTOR}
            error = (await client.post(f"/v1/table/t1/{action}", body)).json()["error"]
            assert error.startswith(f"table 't1': there is no version {version}")
            assert str(tmp_path) not in error


async def test_an_unknown_namespace_gives_404_code_1(client: ServiceClient) -> None:
    for method, action in [("GET", "table/list"), ("GET", "list"), ("POST", "exists")]:
        answer = await client.send(method, f"/v1/namespace/nope/{action}")
        assert (answer.status_code, answer.json()["code"]) == (404, 1)


@pytest.mark.parametrize("name", ["..", "%2e%2e", "a%2f..%2fb", ".", "a%5cb", "a$..", "%00"])
async def test_names_that_lead_elsewhere_give_403(client: ServiceClient, name: str) -> None:
    answer = await client.post(f"/v1/table/{name}%24t/describe")
    assert (answer.status_code, answer.json()["code"]) == (403, 15)


@pytest.mark.parametrize("name", ["a$$b", "$t", "t$", "%ff"])
async def test_identifiers_with_holes_give_400(client: ServiceClient, name: str) -> None:
    answer = await client.post(f"/v1/table/{name}/describe")
    assert (answer.status_code, answer.json()["code"]) == (400, 13)


@pytest.mark.parametrize(
    ("member", "status", "code"),
    [
        ({"tag": "v1"}, 404, 8),
        ({"branch": "dev"}, 404, 22),
        ({"version": 99}, 404, 11),
        ({"tag": "v1", "version": 3}, 400, 13),
        ({"tag": "v1", "branch": "main"}, 400, 13),
        ({"branch": "main"}, 200, None),
        ({"branch": "", "version": 3}, 200, None),
    ],
    ids=repr,
)
async def test_versions_are_named_in_the_same_way_everywhere(
    client: ServiceClient, member: dict[str, Any], status: int, code: int | None
) -> None:
    bodies = {
        "query": {"vector": VECTOR, **member},
        "analyze_plan": {"vector": VECTOR, **member},
        "explain_plan": {"query": {"vector": VECTOR, **member}},
        "count_rows": member,
        "describe": member,
        "version/list": member,
    }
    beside = "&".join(f"{name}={value}" for name, value in member.items())
    asked = list(bodies.items())
    asked += [
        ("explain_plan", {"query": {"vector": VECTOR}, **member}),
        (f"query?{beside}", {"vector": VECTOR}),
        (f"count_rows?{beside}", {}),
    ]
    for action, body in asked:
        answer = await client.post(f"/v1/table/t1/{action}", body)
        assert answer.status_code == status, action
        assert code is None or answer.json()["code"] == code


@pytest.mark.parametrize("member", [{"tag": "v1"}, {"branch": "dev"}], ids=repr)
async def test_of_a_table_that_is_not_there_no_tag_is_missed(
    client: ServiceClient, member: dict[str, Any]
) -> None:
    answer = await client.post("/v1/table/nope/count_rows", member)
    assert (answer.status_code, answer.json()["code"]) == (404, 4)


async def test_null_members_are_absent(client: ServiceClient) -> None:
    body = {"vector": VECTOR, "filter": None, "tag": None, "branch": "main"}
    assert (await client.post(QUERY, body)).status_code == 200


@pytest.mark.parametrize(("method", "path"), list(later_requests()))
async def test_paths_of_later_releases_give_406_in_both_slash_forms(
    client: ServiceClient, method: str, path: str
) -> None:
    for form in (path, path + "/"):
        answer = await client.send(method, form)
        assert (answer.status_code, answer.json()["code"]) == (406, 0)


@pytest.mark.parametrize("path", ["/v2/table", "/v1/table/t1/quarry", "/v1/table/t1", "/v1"])
async def test_unknown_paths_give_404_code_0(client: ServiceClient, path: str) -> None:
    answer = await client.post(path)
    assert (answer.status_code, answer.json()["code"]) == (404, 0)


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", QUERY, "POST"),
        ("DELETE", "/v1/table", "GET, HEAD"),
        ("POST", "/health", "GET, HEAD"),
        ("POST", "/", "GET, HEAD"),
    ],
)
async def test_wrong_methods_give_405_code_0(
    client: ServiceClient, method: str, path: str, allowed: Any
) -> None:
    for form in (path, path + "/"):
        answer = await client.send(method, form)
        assert (answer.status_code, answer.json()["code"]) == (405, 0)
        assert answer.headers["allow"] == allowed


@pytest.mark.parametrize("coding", ["gzip", "br", "gzip, identity"])
async def test_compressed_bodies_are_refused_as_such(client: ServiceClient, coding: str) -> None:
    body = gzip.compress(b"{}")
    answer = await client.send("POST", COUNT, body, bad=True, headers={"content-encoding": coding})
    assert (answer.status_code, answer.json()["code"]) == (400, 13)
    assert f"no body is taken as {coding};" in answer.json()["error"]
    answer = await client.send("POST", COUNT, b"{}", headers={"content-encoding": "Identity"})
    assert answer.status_code == 200


@pytest.mark.parametrize("parameter", ["limit=0", "limit=-1", "limit=many", "delimiter="])
async def test_wrong_query_parameters_give_400(client: ServiceClient, parameter: str) -> None:
    for method, path in [
        ("GET", "/v1/namespace/$/table/list"),
        ("POST", "/v1/table/t1/version/list"),
    ]:
        answer = await client.send(method, f"{path}?{parameter}")
        assert (answer.status_code, answer.json()["code"]) == (400, 13)


async def test_an_unknown_format_gives_400(client: ServiceClient) -> None:
    for wish in ("format=csv", "compression=gzip"):
        answer = await client.post(f"{QUERY}?{wish}", {"vector": VECTOR})
        assert (answer.status_code, answer.json()["code"]) == (400, 13)


async def test_a_timeout_header_that_is_no_number_gives_400(client: ServiceClient) -> None:
    headers = {"x-request-timeout-ms": "soon"}
    answer = await client.post(QUERY, {"vector": VECTOR}, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (400, 13)


async def test_a_body_beyond_the_limit_gives_413_with_the_limit(
    tmp_path: Path, contract: Contract, store: FakeStore
) -> None:
    async with serving(
        tmp_path,
        contract=contract,
        open_dataset=store,
        load_kernels=lambda: None,
        max_body_bytes=1000,
    ) as client:
        await client.wait_until_ready()
        answer = await client.post(QUERY, b" " * 1001, bad=True)
        assert (answer.status_code, answer.json()["code"]) == (413, 13)
        assert (
            "bytes in the body is 1001, the limit is 1000 (setting max_body_bytes)"
            in answer.json()["error"]
        )
        assert (await client.post(QUERY, {"vector": VECTOR})).status_code == 200


async def test_an_id_in_any_body_must_agree_with_the_path(client: ServiceClient) -> None:
    bodies = {
        "describe": {"id": ["t2"]},
        "explain_plan": {"id": ["t2"], "query": {"k": 1}},
        "analyze_plan": {"id": ["t2"], "k": 1},
    }
    for action, body in bodies.items():
        answer = await client.post(f"/v1/table/t1/{action}", body)
        assert (answer.status_code, answer.json()["code"]) == (400, 13), action
