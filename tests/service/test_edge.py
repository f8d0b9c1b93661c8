"""What holds for every request: ids, keys, headers, the log line, server faults."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from lance_core.errors import (
    CorruptFileError,
    DeadlineExceededError,
    MemoryBudgetError,
    StoreError,
    StoreThrottledError,
    StoreUnavailableError,
)
from service.telemetry.json_logging import JsonFormatter
from tests.fake_dataset import FakeDataset, FakeStore, make_table
from tests.service_client import Contract, ServiceClient, serving, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from lance_core.query.deadline import Deadline

QUERY = "/v1/table/t1/query"
VECTOR = {"vector": [1, 2, 3, 4]}

Lines = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Lines:
    """The request lines written so far, as JSON."""
    caplog.set_level(logging.INFO, "service.request")

    def read() -> Any:
        formatter = JsonFormatter()
        return [json.loads(formatter.format(record)) for record in caplog.records]

    return read


async def test_a_request_id_is_echoed(client: ServiceClient) -> None:
    answer = await client.get("/health", headers={"x-request-id": "574fd648"})
    assert answer.headers["x-request-id"] == "574fd648"


@pytest.mark.parametrize("given", [None, "", "two words", "x" * 129])
async def test_a_missing_or_odd_request_id_is_replaced(client: ServiceClient, given: Any) -> None:
    headers = {} if given is None else {"x-request-id": given}
    answer = await client.get("/health", headers=headers)
    request_id = uuid.UUID(answer.headers["x-request-id"])
    assert (request_id.version, request_id.variant) == (4, uuid.RFC_4122)


async def test_a_request_writes_one_line(client: ServiceClient, lines: Lines) -> None:
    await client.post(QUERY, VECTOR, headers={"x-request-id": "r1"})
    (line,) = [line for line in lines() if line.get("request_id") == "r1"]
    assert line["level"] == "INFO"
    assert (line["method"], line["path"], line["status"]) == ("POST", QUERY, 200)
    assert (line["table"], line["version"], line["plan"], line["rows"]) == ("t1", 3, "exact", 10)
    assert line["elapsed_ms"] >= 0
    assert line["bytes_read"] == line["cache_hits"] == 0


async def test_the_line_of_a_refused_request_says_why(client: ServiceClient, lines: Lines) -> None:
    await client.post(QUERY, {"vector": [1]}, headers={"x-request-id": "r2"})
    (line,) = [line for line in lines() if line.get("request_id") == "r2"]
    assert (line["status"], line["code"]) == (400, 13)
    assert line["error_type"] == "InvalidRequestError"
    assert "dimension" in line["error"]


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (CorruptFileError("_indices/x/index.idx", "secret words", offset=9), 500, 18),
        (StoreError("secret words"), 500, 18),
        (RuntimeError("secret words"), 500, 18),
        (KeyError("secret words"), 500, 18),
        (StoreThrottledError("secret words"), 503, 17),
        (StoreUnavailableError("secret words"), 503, 17),
        (MemoryBudgetError(1, 2, 3), 503, 17),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
async def test_server_faults_are_logged_and_not_shown(
    client: ServiceClient,
    dataset: FakeDataset,
    lines: Lines,
    error: Exception,
    status: int,
    code: int,
) -> None:
    def fail(deadline: Deadline) -> None:
        raise error

    dataset.on_run = fail
    for _ in range(2):  # on the I/O lane, then on the search lane
        answer = await client.post(QUERY, VECTOR, headers={"x-request-id": "r3"})
        assert (answer.status_code, answer.json()["code"]) == (status, code)
        assert "secret" not in answer.text
        assert answer.json()["instance"] == "r3"
        assert ("retry-after" in answer.headers) == (status == 503)
    line = lines()[-1]
    assert (line["level"], line["error_type"]) == ("ERROR", type(error).__name__)
    assert str(error) in line["error"]
    dataset.on_run = None
    assert (await client.post(QUERY, VECTOR)).status_code == 200


async def test_unexpected_errors_are_logged_with_their_stack(
    client: ServiceClient, dataset: FakeDataset, lines: Lines
) -> None:
    dataset.on_run = lambda deadline: 1 / 0
    await client.post(QUERY, VECTOR)
    assert "ZeroDivisionError" in lines()[-1]["stack"]


async def test_a_passed_deadline_gives_408(client: ServiceClient, dataset: FakeDataset) -> None:
    def late(deadline: Deadline) -> None:
        raise DeadlineExceededError("the time allowed ran out while searching")

    dataset.on_run = late
    answer = await client.post(QUERY, VECTOR)
    assert (answer.status_code, answer.json()["code"]) == (408, 17)
    assert "while searching" in answer.json()["error"]


@pytest.mark.parametrize(
    ("headers", "body", "longest_s"),
    [
        ({}, {}, 30),
        ({"x-request-timeout-ms": "2000"}, {}, 2),
        ({}, {"timeout_ms": 1000}, 1),
        ({"x-request-timeout-ms": "2000"}, {"timeout_ms": 1000}, 1),
        ({"x-request-timeout-ms": "90000"}, {"timeout_ms": 80000}, 30),
    ],
)
async def test_the_shortest_timeout_counts(
    client: ServiceClient, dataset: FakeDataset, headers: Any, body: Any, longest_s: Any
) -> None:
    before = time.monotonic()
    await client.post(QUERY, VECTOR | body, headers=headers)
    at_s = dataset.deadlines[-1].at_s
    assert at_s is not None
    left_s = at_s - before
    assert longest_s <= left_s < longest_s + 0.5


async def test_a_timeout_of_a_plain_query_gives_408(client: ServiceClient) -> None:
    answer = await client.post(QUERY, {"k": 5}, headers={"x-request-timeout-ms": "0"})
    assert (answer.status_code, answer.json()["code"]) == (408, 17)


@pytest.fixture
async def locked(tmp_path: Path, contract: Contract, store: FakeStore) -> AsyncIterator[Any]:
    async with serving(
        tmp_path,
        contract=contract,
        open_dataset=store,
        load_kernels=lambda: None,
        api_keys=("one", "two"),
    ) as client:
        await client.wait_until_ready()
        yield client


@pytest.mark.parametrize(
    "headers",
    [
        {"x-api-key": "two"},
        {"authorization": "Bearer one"},
        {"authorization": "bearer one"},
        {"x-api-key": "wrong", "authorization": "Bearer two"},
        {"x-api-key": "one", "authorization": "Basic x"},
    ],
    ids=repr,
)
async def test_either_valid_key_is_enough(locked: ServiceClient, headers: Any) -> None:
    assert (await locked.get("/v1/table", headers=headers)).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"x-api-key": ""},
        {"x-api-key": "three"},
        {"authorization": "one"},
        {"authorization": "Bearer "},
        {"x-api-key": "on"},
    ],
    ids=repr,
)
async def test_no_valid_key_gives_401(locked: ServiceClient, headers: Any) -> None:
    for path in ("/v1/table", "/v1/namespace/$/list", "/nowhere"):
        answer = await locked.get(path, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (401, 16)
        assert answer.headers["www-authenticate"] == "Bearer"


async def test_operations_need_no_key(locked: ServiceClient) -> None:
    for path in ("/health", "/health/", "/ready", "/openapi.json"):
        assert (await locked.http.get(path)).status_code == 200


async def test_the_service_is_ready_when_kernels_are_loaded(
    tmp_path: Path, contract: Contract, store: FakeStore
) -> None:
    loaded = threading.Event()
    async with serving(
        tmp_path, contract=contract, open_dataset=store, load_kernels=loaded.wait
    ) as client:
        assert (await client.get("/health")).json() == {"status": "ok"}
        for method, path in [("GET", "/ready"), ("POST", QUERY)]:
            answer = await client.send(method, path)
            assert (answer.status_code, answer.json()["code"]) == (503, 17)
            assert "kernels" in answer.json()["error"]
            assert answer.headers["retry-after"] == "1"
        assert (await client.post("/v1/table/t1/count_rows")).status_code == 200
        loaded.set()
        await client.wait_until_ready()
        assert (await client.post(QUERY, VECTOR)).status_code == 200


async def test_polling_for_readiness_logs_no_errors(
    tmp_path: Path, contract: Contract, store: FakeStore, lines: Lines
) -> None:
    loaded = threading.Event()
    async with serving(
        tmp_path, contract=contract, open_dataset=store, load_kernels=loaded.wait
    ) as client:
        for path in ("/ready", "/ready/"):
            assert (await client.get(path)).status_code == 503
        assert [line["level"] for line in lines() if line.get("status") == 503] == ["INFO"] * 2
        assert (await client.post(QUERY, VECTOR)).status_code == 503
        assert lines()[-1]["level"] == "ERROR"
        loaded.set()


async def test_the_root_says_where_to_read_on(locked: ServiceClient) -> None:
    answer = await locked.get("/")
    assert answer.status_code == 200
    for member in ("openapi", "health", "ready"):
        assert (await locked.http.get(answer.json()[member])).status_code == 200


async def test_kernels_that_fail_to_load_leave_the_service_unready(
    tmp_path: Path, contract: Contract, store: FakeStore
) -> None:
    def fail() -> None:
        raise OSError("no space")

    async with serving(
        tmp_path, contract=contract, open_dataset=store, load_kernels=fail
    ) as client:
        assert (await client.post(QUERY, VECTOR)).status_code == 503


async def test_a_full_queue_gives_429_with_the_setting(
    tmp_path: Path, contract: Contract, store: FakeStore
) -> None:
    go_on = threading.Event()
    slow = FakeDataset(make_table(), on_run=lambda deadline: go_on.wait(10))
    store.datasets["slow.lance"] = {1: slow}
    async with serving(
        tmp_path,
        contract=contract,
        open_dataset=store,
        load_kernels=lambda: None,
        io_threads=1,
        max_queued_requests=1,
    ) as client:
        await client.wait_until_ready()
        running = [asyncio.create_task(client.post("/v1/table/slow/query", VECTOR))]
        await until(lambda: slow.deadlines != [])
        running.append(asyncio.create_task(client.post("/v1/table/slow/count_rows")))
        await until(lambda: client.app.state.services.io.num_waiting == 1)
        answer = await client.post("/v1/table/t1/count_rows")
        go_on.set()
        assert (answer.status_code, answer.json()["code"]) == (429, 21)
        assert answer.headers["retry-after"] == "1"
        assert "max_queued_requests" in answer.json()["error"]
        assert [r.status_code for r in await asyncio.gather(*running)] == [200, 200]


async def test_a_namespace_and_root_listing(tmp_path: Path, contract: Contract) -> None:
    for folder in ("b.lance", "a.lance", "n/c.lance", "n/m/d.lance"):
        (tmp_path / folder).mkdir(parents=True)
    async with serving(tmp_path, contract=contract, load_kernels=lambda: None) as client:
        assert (await client.get("/v1/table")).json()["tables"] == ["a", "b", "n$c", "n$m$d"]
        assert (await client.get("/v1/table/")).json()["tables"] == ["a", "b"]
        dotted = (await client.get("/v1/table?delimiter=.")).json()["tables"]
        assert dotted == ["a", "b", "n.c", "n.m.d"]
        for root in ("$", "%24"):
            answer = await client.get(f"/v1/namespace/{root}/table/list")
            assert answer.json() == {"tables": ["a", "b"], "page_token": None}
        page = (await client.get("/v1/namespace/$/table/list?limit=1")).json()
        assert page == {"tables": ["a"], "page_token": "a"}
        rest = (await client.get("/v1/namespace/$/table/list?limit=1&page_token=a")).json()
        assert rest == {"tables": ["b"], "page_token": None}
        assert (await client.get("/v1/namespace/n/list")).json()["namespaces"] == ["m"]
        assert (await client.get("/v1/namespace/n$m/table/list")).json()["tables"] == ["d"]
        described = await client.post("/v1/namespace/n/describe", {"id": ["n"]})
        assert described.json() == {"properties": None}
        assert (await client.post("/v1/namespace/n/exists")).status_code == 200
        prefix = {"x-lancedb-database-prefix": "n"}
        assert (await client.get("/v1/table/", headers=prefix)).json()["tables"] == ["c"]
        assert (await client.get("/v1/table", headers=prefix)).json()["tables"] == ["c", "m$d"]
