"""Vector and plain queries, and the forms of their answers."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pyarrow as pa
import pytest

from lance_core.errors import CorruptFileError
from tests.fake_dataset import FakeDataset, FakeStore, make_table
from tests.service_client import (
    ARROW_FILE,
    ARROW_STREAM,
    Contract,
    ServiceClient,
    read_arrow,
    serving,
)

if TYPE_CHECKING:
    from pathlib import Path

QUERY = "/v1/table/t1/query"
NEAR_ROW_2 = [8.0, 9.0, 10.0, 11.0]
JSON = {"accept": "application/json"}


async def test_the_default_answer_is_an_arrow_file_with_version_and_stats(
    client: ServiceClient,
) -> None:
    answer = await client.post(QUERY, {"vector": NEAR_ROW_2, "k": 3})
    table = read_arrow(answer)
    assert answer.headers["content-type"] == ARROW_FILE
    assert answer.headers["x-lancedb-version"] == "3"
    assert orjson.loads(answer.headers["x-lance-serve-stats"])["plan"] == "exact"
    assert table.schema.names == ["id", "text", "vec", "_distance"]
    assert table["id"].to_pylist()[0] == 2
    assert table["_distance"].to_pylist()[0] == 0


@pytest.mark.parametrize(
    "vector",
    [NEAR_ROW_2, {"single_vector": NEAR_ROW_2}, [8, 9, 10, 11]],
    ids=["plain", "namespace", "whole numbers"],
)
async def test_every_form_of_one_vector_gives_one_block(client: ServiceClient, vector: Any) -> None:
    table = read_arrow(await client.post(QUERY, {"vector": vector, "k": 1}))
    assert table["id"].to_pylist() == [2]
    assert "query_index" not in table.schema.names


@pytest.mark.parametrize("form", ["plain", "namespace"])
async def test_a_batch_gives_one_block_per_vector(client: ServiceClient, form: str) -> None:
    vectors = [NEAR_ROW_2, [0, 1, 2, 3]]
    body = {"vector": vectors if form == "plain" else {"multi_vector": vectors}, "k": 2}
    table = read_arrow(await client.post(QUERY, body))
    assert table["query_index"].to_pylist() == [0, 0, 1, 1]
    assert table["id"].to_pylist()[::2] == [2, 0]


@pytest.mark.parametrize(
    ("k", "num_rows"), [(None, 10), (0, 10), (3, 3), (2**62, 20), (2**63 - 1, 20), (500, 20)]
)
async def test_k_of_a_vector_query(client: ServiceClient, k: int | None, num_rows: int) -> None:
    table = read_arrow(await client.post(QUERY, {"vector": NEAR_ROW_2, "k": k}))
    assert table.num_rows == num_rows


@pytest.mark.parametrize(("k", "num_rows"), [(None, 10), (0, 0), (3, 3), (2**63 - 1, 20)])
async def test_k_of_a_plain_query(client: ServiceClient, k: int | None, num_rows: int) -> None:
    answer = await client.post(QUERY, {"vector": [], "k": k})
    table = read_arrow(answer)
    assert table.num_rows == num_rows
    assert table.schema.names == ["id", "text", "vec"]
    assert answer.headers["x-lancedb-version"] == "3"
    assert "x-lance-serve-stats" not in answer.headers


async def test_columns_in_the_namespace_form_are_a_list(client: ServiceClient) -> None:
    body = {"vector": NEAR_ROW_2, "k": 1, "columns": {"column_names": ["text"]}}
    assert read_arrow(await client.post(QUERY, body)).schema.names == ["text", "_distance"]


@pytest.mark.parametrize("body", [{"vector": NEAR_ROW_2, "k": 3}, {"k": 3}], ids=["near", "plain"])
async def test_json_rows_carry_stats(client: ServiceClient, body: Any) -> None:
    answer = await client.post(QUERY, {**body, "columns": ["id", "text"]}, headers=JSON)
    rows = answer.json()
    assert rows["version"] == 3
    assert rows["num_rows"] == len(rows["rows"]) == 3
    assert rows["rows"][0]["text"].startswith("row ")
    assert rows["stats"]["version"] == 3
    assert rows["columns"][:2] == ["id", "text"]


async def test_no_rows_in_json_are_an_empty_list(client: ServiceClient) -> None:
    rows = (await client.post(QUERY, {"k": 0}, headers=JSON)).json()
    assert (rows["rows"], rows["num_rows"], rows["stats"]["plan"]) == ([], 0, "scan")


@pytest.mark.parametrize(
    ("parameters", "headers", "media_type"),
    [
        ("", {"accept": "*/*"}, ARROW_FILE),
        ("", {"accept": ""}, ARROW_FILE),
        ("", {"accept": "text/html"}, ARROW_FILE),
        ("", JSON, "application/json"),
        ("", {"accept": "application/json; charset=utf-8, */*"}, "application/json"),
        ("", {**JSON, "user-agent": "OpenAPI-Generator/0.13.0/python"}, ARROW_FILE),
        ("", {"accept": ARROW_STREAM}, ARROW_STREAM),
        ("", {"accept": f"{ARROW_STREAM}, {ARROW_FILE}"}, ARROW_FILE),
        ("", {"accept": f"{ARROW_FILE};q=0.5, {ARROW_STREAM};q=0.9"}, ARROW_STREAM),
        ("", {"accept": f"application/json, {ARROW_STREAM};q=0.1"}, ARROW_STREAM),
        ("", {"accept": "application/json;q=0"}, ARROW_FILE),
        ("", {"accept": "application/json;q=high"}, "application/json"),
        ("?format=json", {"accept": ARROW_FILE}, "application/json"),
        ("?format=arrow", JSON, ARROW_FILE),
        ("?format=arrow_stream", JSON, ARROW_STREAM),
    ],
)
@pytest.mark.parametrize("body", [{"vector": NEAR_ROW_2}, {}], ids=["near", "plain"])
async def test_the_format_follows_parameter_then_accept(
    client: ServiceClient, parameters: str, headers: Any, media_type: str, body: Any
) -> None:
    answer = await client.post(QUERY + parameters, body, headers=headers)
    assert answer.headers["content-type"] == media_type


@pytest.mark.parametrize("form", ["arrow", "arrow_stream"])
@pytest.mark.parametrize("compression", ["lz4", "zstd"])
async def test_arrow_buffers_are_compressed_on_request_only(
    client: ServiceClient, form: str, compression: str
) -> None:
    path = f"{QUERY}?format={form}"
    for body in ({"vector": NEAR_ROW_2, "k": 20}, {"k": 20}):
        plain = await client.post(path, body)
        small = await client.post(f"{path}&compression={compression}", body)
        assert read_arrow(small).equals(read_arrow(plain))
        assert small.content != plain.content


async def test_json_is_gzipped_from_some_kilobytes_up(
    client: ServiceClient, store: FakeStore
) -> None:
    store.datasets["t2.lance"] = {1: FakeDataset(make_table(2000))}
    for body in ({"k": 2000}, {"vector": NEAR_ROW_2, "k": 2000}):
        answer = await client.post("/v1/table/t2/query", body, headers=JSON)
        assert answer.headers["content-encoding"] == "gzip"
        assert answer.json()["num_rows"] == 2000
    small = await client.post("/v1/table/t2/query", {"k": 2}, headers=JSON)
    assert "content-encoding" not in small.headers


async def test_arrow_is_never_gzipped(client: ServiceClient) -> None:
    answer = await client.post(QUERY, {"k": 20}, headers={"accept-encoding": "gzip"})
    assert "content-encoding" not in answer.headers


@pytest.mark.parametrize("form", ["arrow", "arrow_stream", "json"])
async def test_long_plain_answers_are_streamed_whole(
    client: ServiceClient, store: FakeStore, form: str
) -> None:
    big = FakeDataset(make_table(100_000), batch_rows=4096)
    store.datasets["big.lance"] = {1: big}
    answer = await client.post(f"/v1/table/big/query?format={form}", {"k": 2**63 - 1})
    assert "content-length" not in answer.headers
    if form == "json":
        ids = [row["id"] for row in answer.json()["rows"]]
    else:
        ids = read_arrow(answer)["id"].to_pylist()
    assert ids == list(range(100_000))


@pytest.mark.parametrize("form", ["arrow", "arrow_stream", "json"])
async def test_a_fault_before_the_first_byte_is_an_error_answer(
    client: ServiceClient, dataset: FakeDataset, form: str
) -> None:
    def fail(number: int) -> None:
        raise CorruptFileError("data/f.lance", "page is short", offset=7)

    dataset.on_batch = fail
    answer = await client.post(f"{QUERY}?format={form}", {"k": 3})
    assert (answer.status_code, answer.json()["code"]) == (500, 18)
    assert "f.lance" not in answer.text


async def test_all_options_reach_the_library(client: ServiceClient, dataset: FakeDataset) -> None:
    body = {
        "vector": NEAR_ROW_2,
        "vector_column": "vec",
        "k": 4,
        "offset": 2,
        "with_row_id": True,
        "distance_type": "L2",
        "nprobes": 20,
        "minimum_nprobes": 5,
        "maximum_nprobes": 9,
        "refine_factor": 3,
        "lower_bound": 0,
        "upper_bound": 1e9,
        "bypass_vector_index": True,
        "fast_search": True,
        "ef": 50,
        "prefilter": True,
        "approx_mode": "fast",
        "use_lsm": True,
    }
    await client.post(QUERY, body)
    await client.post(QUERY, body)
    request = dataset.requests[-1]
    assert request.vectors is not None
    assert np.array_equal(request.vectors, np.array([NEAR_ROW_2], np.float32))
    assert (request.column, request.k, request.offset, request.metric) == ("vec", 4, 2, "l2")
    assert (request.min_probes, request.max_probes, request.refine_factor) == (5, 9, 3)
    assert (request.lower_bound, request.upper_bound) == (0.0, 1e9)
    assert (request.use_index, request.fast_search, request.with_row_id) == (False, True, True)
    assert request.approx_mode == "fast"


@pytest.mark.parametrize(
    ("given", "bounds"),
    [
        ({}, (None, None)),
        ({"nprobes": 7}, (7, 7)),
        ({"nprobes": 7, "minimum_nprobes": 7, "maximum_nprobes": 7}, (7, 7)),
        ({"nprobes": 4, "minimum_nprobes": 4, "maximum_nprobes": 9}, (4, 9)),
        ({"nprobes": 4, "maximum_nprobes": 0}, (4, None)),
        ({"minimum_nprobes": 3}, (3, None)),
        ({"maximum_nprobes": 3}, (None, 3)),
        ({"maximum_nprobes": 0}, (None, None)),
    ],
    ids=repr,
)
async def test_probe_bounds(
    client: ServiceClient, dataset: FakeDataset, given: Any, bounds: Any
) -> None:
    await client.post(QUERY, {"vector": NEAR_ROW_2, **given})
    assert (dataset.requests[-1].min_probes, dataset.requests[-1].max_probes) == bounds


async def test_a_warm_query_runs_on_a_search_thread_and_a_plain_one_does_not(
    client: ServiceClient, dataset: FakeDataset
) -> None:
    names = []
    dataset.on_run = lambda deadline: names.append(threading.current_thread().name)
    dataset.on_batch = lambda number: names.append(threading.current_thread().name)
    await client.post(QUERY, {"vector": NEAR_ROW_2})
    await client.post(QUERY, {"vector": NEAR_ROW_2})
    await client.post(QUERY, {"k": 1})
    assert [name.partition("-")[0] for name in names] == ["io", "search", "io"]


async def test_explain_and_analyze_answer_a_json_string(client: ServiceClient) -> None:
    plan = await client.post("/v1/table/t1/explain_plan", {"verbose": True, "query": {"k": 2}})
    assert plan.json() == 'Scan: "quoted"\n  second line'
    measured = await client.post("/v1/table/t1/analyze_plan", {"vector": NEAR_ROW_2})
    assert measured.json().endswith("measured")
    assert measured.headers["x-lancedb-version"] == "3"


async def test_a_dictionary_column_stays_one_in_arrow(
    client: ServiceClient, store: FakeStore
) -> None:
    table = pa.table({"kind": pa.array(["a", "b", "a"]).dictionary_encode()})
    store.datasets["d.lance"] = {1: FakeDataset(table)}
    assert read_arrow(await client.post("/v1/table/d/query", {})).schema == table.schema


async def test_the_service_limit_ends_when_a_streamed_answer_begins(
    tmp_path: Path, contract: Contract, store: FakeStore
) -> None:
    def wait_later(number: int) -> None:
        if number == 200:
            time.sleep(0.6)

    big = FakeDataset(make_table(1_000_000), batch_rows=4096, on_batch=wait_later)
    store.datasets["big.lance"] = {1: big}
    async with serving(
        tmp_path,
        contract=contract,
        open_dataset=store,
        load_kernels=lambda: None,
        query_timeout_s=0.5,
    ) as client:
        await client.wait_until_ready()
        answer = await client.post("/v1/table/big/query", {"k": 2**63 - 1})
        assert read_arrow(answer).num_rows == 1_000_000
