"""Every limit, what happens beyond it, and that the answer names it."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from service.api.answer_limits import fixed_row_bytes
from service.limits import LIMITS
from service.settings import Settings
from tests.fake_dataset import FakeDataset, FakeStore
from tests.service_client import Contract, ServiceClient, serving, until

if TYPE_CHECKING:
    from pathlib import Path

    from lance_core.query.deadline import Deadline

QUERY = "/v1/table/t1/query"
VECTOR = [1.0, 2.0, 3.0, 4.0]

BEYOND: dict[str, tuple[Any, Any]] = {
    "max_body_bytes": (10, {"vector": VECTOR}),
    "max_k": (5, {"vector": VECTOR, "k": 6}),
    "max_probes": (7, {"vector": VECTOR, "nprobes": 8}),
    "max_ef": (50, {"vector": VECTOR, "ef": 51}),
    "max_batch": (2, {"vector": [VECTOR] * 3}),
    "max_filter_bytes": (6, {"vector": VECTOR, "filter": "id < 100"}),
    "max_answer_bytes": (200, {"vector": VECTOR}),
}
"""Of each limit that a request alone can exceed: a value, and a body beyond it."""


def serving_one(tmp_path: Path, contract: Contract, store: FakeStore, **settings: Any) -> Any:
    return serving(
        tmp_path, contract=contract, open_dataset=store, load_kernels=lambda: None, **settings
    )


async def ask(client: ServiceClient, body: Any) -> Any:
    await client.wait_until_ready()
    return await client.post(QUERY, body)


@pytest.mark.parametrize("setting", BEYOND)
async def test_a_request_beyond_a_limit_is_told_which(
    tmp_path: Path, contract: Contract, store: FakeStore, dataset: FakeDataset, setting: str
) -> None:
    value, body = BEYOND[setting]
    async with serving_one(tmp_path, contract, store, **{setting: value}) as client:
        for _ in range(2):  # on the I/O lane, and when all is resident
            answer = await ask(client, body)
            (limit,) = [each for each in LIMITS if each.setting == setting]
            assert (str(answer.status_code), answer.json()["code"]) == (limit.outcome, 13)
            assert f"(setting {setting})" in answer.json()["error"]
            assert f"limit is {value}" in answer.json()["error"]
    assert dataset.requests == []
    async with serving_one(tmp_path, contract, store) as client:
        assert (await ask(client, body)).status_code == 200


@pytest.mark.parametrize(
    ("setting", "body"),
    [
        ("max_probes", {"vector": VECTOR, "maximum_nprobes": 11}),
        ("max_probes", {"vector": VECTOR, "minimum_nprobes": 11, "maximum_nprobes": 0}),
        ("max_batch", {"row_ids": [*range(11)]}),
        ("max_filter_bytes", {"filter": "id < 100000"}),
        ("max_filter_bytes", {"filter": "ääääää"}),
    ],
)
async def test_limits_hold_for_every_member_that_they_are_about(
    tmp_path: Path, contract: Contract, store: FakeStore, setting: str, body: Any
) -> None:
    async with serving_one(tmp_path, contract, store, **{setting: 10}) as client:
        answer = await ask(client, body)
        assert answer.status_code == 400
        assert f"(setting {setting})" in answer.json()["error"]


async def test_a_predicate_is_a_filter(
    tmp_path: Path, contract: Contract, store: FakeStore
) -> None:
    async with serving_one(tmp_path, contract, store, max_filter_bytes=3) as client:
        answer = await client.post("/v1/table/t1/count_rows", {"predicate": "id < 9"})
        assert "(setting max_filter_bytes)" in answer.json()["error"]


async def test_rows_of_no_fixed_width_are_measured_when_they_are_there(
    tmp_path: Path, contract: Contract, store: FakeStore
) -> None:
    long = pa.table(
        {
            "text": ["x" * 1000] * 1000,
            "vec": pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(4000, np.float32)), 4),
        }
    )
    store.datasets["long.lance"] = {1: FakeDataset(long)}
    body = {"vector": VECTOR, "columns": ["text"], "k": 1000}
    async with serving_one(tmp_path, contract, store, max_answer_bytes=100_000) as client:
        await client.wait_until_ready()
        answer = await client.post("/v1/table/long/query", body)
        assert (answer.status_code, answer.json()["code"]) == (400, 13)
        assert "(setting max_answer_bytes)" in answer.json()["error"]
        answer = await client.post("/v1/table/long/query", body | {"k": 10})
        assert answer.status_code == 200


def test_the_width_of_a_row_is_that_of_its_columns_of_fixed_width() -> None:
    schema = pa.schema(
        {
            "a": pa.int32(),
            "flag": pa.bool_(),
            "vec": pa.list_(pa.float32(), 16),
            "text": pa.string(),
            "pair": pa.struct({"x": pa.float64(), "y": pa.list_(pa.int8())}),
            "tags": pa.list_(pa.int64()),
        }
    )
    assert fixed_row_bytes(schema, None) == 4 + 1 + 64 + 8
    assert fixed_row_bytes(schema, ("vec", "text", "pair.x")) == 64 + 8


async def test_a_query_that_takes_too_long_is_told_so(
    tmp_path: Path, contract: Contract, store: FakeStore, dataset: FakeDataset
) -> None:
    def wait(deadline: Deadline) -> None:
        while True:
            deadline.check("searching")

    dataset.on_run = wait
    async with serving_one(tmp_path, contract, store, query_timeout_s=0.05) as client:
        answer = await ask(client, {"vector": VECTOR})
        assert (answer.status_code, answer.json()["code"]) == (408, 17)


async def test_queries_run_as_many_at_a_time_as_there_are_threads(
    tmp_path: Path, contract: Contract, store: FakeStore, dataset: FakeDataset
) -> None:
    go_on, running, most = threading.Event(), [0], [0]

    def wait(deadline: Deadline) -> None:
        running[0] += 1
        most[0] = max(most[0], running[0])
        go_on.wait(10)
        running[0] -= 1

    dataset.on_run = wait
    async with serving_one(tmp_path, contract, store, io_threads=2, search_threads=1) as client:
        await client.wait_until_ready()
        asked = [asyncio.create_task(client.post(QUERY, {"vector": VECTOR})) for _ in range(6)]
        await until(lambda: running[0] == 2)
        go_on.set()
        assert [(await each).status_code for each in asked] == [200] * 6
    assert most[0] <= 3


async def test_no_query_begins_without_memory(
    tmp_path: Path, contract: Contract, store: FakeStore
) -> None:
    async with serving_one(tmp_path, contract, store, max_resident_bytes=1) as client:
        await until(client.app.state.services.kernels_loaded.is_set)
        assert (await client.get("/ready")).status_code == 429
        answer = await client.post(QUERY, {"vector": VECTOR})
        assert (answer.status_code, answer.json()["code"]) == (429, 21)
        assert answer.headers["retry-after"] == "1"
        assert "(setting max_resident_bytes)" in answer.json()["error"]
        assert (await client.get("/v1/table")).status_code == 200


def test_every_limit_is_a_setting_and_listed_once() -> None:
    names = [each.setting for each in LIMITS]
    assert len(set(names)) == len(names)
    assert set(names) <= set(Settings.model_fields)
    bounding = {name for name in Settings.model_fields if name.startswith("max_")}
    assert bounding - set(names) == {"max_concurrency", "max_open_datasets"}
    assert set(BEYOND) == {each.setting for each in LIMITS if each.outcome in {"400", "413"}}
