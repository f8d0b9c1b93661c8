"""Readiness of the service, and of single tables."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import pytest

from service.telemetry.systemd import READY, STOPPING
from tests.service_client import Contract, ServiceClient, serving

if TYPE_CHECKING:
    from pathlib import Path

    from tests.fake_dataset import FakeStore


async def test_a_table_that_can_be_opened_is_ready(client: ServiceClient) -> None:
    answer = await client.get("/ready?table=t1")
    assert answer.json() == {"status": "ready", "table": "t1", "version": 3}


@pytest.mark.parametrize(
    ("table", "status", "code"),
    [("nope", 404, 4), ("..", 403, 15), ("a%2Fb", 403, 15), ("$", 400, 13), ("a$", 400, 13)],
)
async def test_a_table_that_is_not_there_is_not_ready(
    client: ServiceClient, table: str, status: int, code: int
) -> None:
    answer = await client.get(f"/ready?table={table}")
    assert (answer.status_code, answer.json()["code"]) == (status, code)


async def test_asking_about_a_table_needs_a_key(
    tmp_path: Path, contract: Contract, store: FakeStore
) -> None:
    options: dict[str, Any] = {"open_dataset": store, "load_kernels": lambda: None}
    async with serving(tmp_path, contract=contract, api_keys=("one",), **options) as client:
        await client.wait_until_ready()
        assert (await client.get("/ready?table=t1")).status_code == 401
        answer = await client.get("/ready?table=t1", headers={"x-api-key": "one"})
        assert answer.status_code == 200


@pytest.mark.parametrize("is_abstract", [False, True])
async def test_systemd_is_told_when_the_service_is_ready_and_when_it_stops(
    tmp_path: Path, contract: Contract, monkeypatch: pytest.MonkeyPatch, is_abstract: Any
) -> None:
    name = f"lance-serve-test-{tmp_path.name}" if is_abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"\0{name}" if is_abstract else name)
        manager.settimeout(5)
        monkeypatch.setenv("NOTIFY_SOCKET", f"@{name}" if is_abstract else name)
        async with serving(tmp_path, contract=contract, load_kernels=lambda: None) as client:
            await client.wait_until_ready()
            assert manager.recv(100) == READY
        assert manager.recv(100) == STOPPING
