"""Files that vanish under a version that is held as the latest."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from lance_core.errors import CorruptFileError, ObjectNotFoundError
from tests.fake_dataset import FakeDataset, FakeStore, make_table

if TYPE_CHECKING:
    from tests.service_client import ServiceClient

VECTOR = [1.0, 2.0, 3.0, 4.0]
ACTIONS: Any = [
    ("query", {"vector": VECTOR}),
    ("query", {"k": 5}),
    ("query", {"k": 5, "columns": ["id"]}),
    ("analyze_plan", {"vector": VECTOR}),
    ("explain_plan", {"query": {"vector": VECTOR}}),
    ("describe", {}),
    ("count_rows", {}),
]


def missing() -> ObjectNotFoundError:
    return ObjectNotFoundError("no object at /secret/data/1.lance")


def named_but_missing() -> CorruptFileError:
    error = CorruptFileError("data/1.lance", "named by the manifest but missing")
    error.__cause__ = missing()
    return error


class LostDataset(FakeDataset):
    """A dataset whose files are gone, although its manifest is held."""

    make_error: Any = missing

    def _fail(self, *_: Any, **__: Any) -> Any:
        raise self.make_error()

    run = analyze_plan = explain_plan = count_rows = _fail


async def hold(client: ServiceClient) -> None:
    """Make the service hold the latest version."""
    assert (await client.post("/v1/table/t1/exists")).status_code == 200


def lose(store: FakeStore, version: int, make_error: Any) -> None:
    lost = LostDataset(make_table(), version=version)
    lost.make_error, lost.on_batch = make_error, lost._fail
    store.datasets["t1.lance"] = {version: lost}


@pytest.mark.parametrize("make_error", [missing, named_but_missing])
@pytest.mark.parametrize(("action", "body"), ACTIONS, ids=str)
async def test_what_fails_on_a_version_that_is_gone_runs_on_the_one_after_it(
    client: ServiceClient, store: FakeStore, action: str, body: Any, make_error: Any
) -> None:
    lose(store, 3, make_error)
    await hold(client)
    store.datasets["t1.lance"] = {4: FakeDataset(make_table(), version=4)}
    answer = await client.post(f"/v1/table/t1/{action}", body)
    assert answer.status_code == 200
    assert answer.headers["x-lancedb-version"] == "4"


async def test_a_dataset_made_anew_at_the_same_version_is_found(
    client: ServiceClient, store: FakeStore
) -> None:
    lose(store, 3, missing)
    await hold(client)
    store.datasets["t1.lance"] = {3: FakeDataset(make_table(7), version=3, incarnation="two")}
    for version in (None, 3):
        assert (await client.post("/v1/table/t1/count_rows", {"version": version})).content == b"7"


@pytest.mark.parametrize("make_error", [missing, named_but_missing])
async def test_a_file_that_is_missing_from_the_latest_version_is_a_server_fault(
    client: ServiceClient, store: FakeStore, make_error: Any
) -> None:
    lose(store, 3, make_error)
    for action, body in ACTIONS:
        for version in ({}, {"version": 3}):
            pinned = {"query": body["query"] | version} if "query" in body else body | version
            answer = await client.post(f"/v1/table/t1/{action}", pinned)
            assert (answer.status_code, answer.json()["code"]) == (500, 18), action
            assert "secret" not in answer.text


async def test_a_corrupt_file_is_not_looked_at_twice(
    client: ServiceClient, store: FakeStore
) -> None:
    lose(store, 3, lambda: CorruptFileError("data/1.lance", "bad magic"))
    await hold(client)
    num_looks = len(store.opened)
    assert (await client.post("/v1/table/t1/count_rows")).status_code == 500
    assert len(store.opened) == num_looks


async def test_a_pinned_version_that_is_gone_gives_404_code_11(
    client: ServiceClient, store: FakeStore
) -> None:
    lose(store, 3, missing)
    await hold(client)
    assert (await client.post("/v1/table/t1/exists", {"version": 3})).status_code == 200
    store.datasets["t1.lance"] = {4: FakeDataset(make_table(), version=4)}
    for action, body in (("query", {"vector": VECTOR}), ("count_rows", {}), ("query", {"k": 1})):
        answer = await client.post(f"/v1/table/t1/{action}", {**body, "version": 3})
        assert (answer.status_code, answer.json()["code"]) == (404, 11)


async def test_a_dataset_that_is_gone_as_a_whole_gives_404_code_4(
    client: ServiceClient, store: FakeStore
) -> None:
    for action, body in ACTIONS:
        lose(store, 3, missing)
        await hold(client)
        datasets = store.datasets.pop("t1.lance")
        answer = await client.post(f"/v1/table/t1/{action}", body)
        assert (answer.status_code, answer.json()["code"]) == (404, 4), action
        assert answer.json()["error"] == "table 't1' not found"
        store.datasets["t1.lance"] = datasets


async def test_many_that_fail_together_look_again_once(
    client: ServiceClient, store: FakeStore
) -> None:
    lose(store, 3, missing)
    await hold(client)
    store.datasets["t1.lance"] = {4: FakeDataset(make_table(), version=4)}
    store.delay_s = 0.1
    num_looks = len(store.opened)
    answers = await asyncio.gather(
        *[client.post("/v1/table/t1/query", {"vector": VECTOR}) for _ in range(6)]
    )
    assert {answer.status_code for answer in answers} == {200}
    assert len(store.opened) <= num_looks + 2
