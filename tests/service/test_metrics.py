"""What the service shows to Prometheus."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from lance_core.io.counting_store import CountingStore
from lance_core.io.memory_store import MemoryStore
from lance_core.io.scheduler import ByteRange, RangeScheduler
from service.telemetry.metrics import FAMILIES, READINGS, Metrics
from service.telemetry.request_log import RequestRecord
from service.telemetry.store_reads import StoreReads
from tests.metric_values import value
from tests.service_client import Contract, ServiceClient, serving, until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.fake_dataset import FakeDataset, FakeStore

QUERY = "/v1/table/t1/query"
VECTOR = {"vector": [1, 2, 3, 4]}
CONVENTION = re.compile(r"lance_serve_[a-z]+(_[a-z]+)*")


async def shown(client: ServiceClient) -> str:
    answer = await client.get("/metrics")
    assert answer.status_code == 200
    text: str = answer.text
    return text


async def test_requests_are_counted_by_what_they_ask_and_how_they_are_answered(
    client: ServiceClient,
) -> None:
    for _ in range(3):
        assert (await client.post(QUERY, VECTOR)).status_code == 200
    await client.post(QUERY, {"k": 1})
    await client.post(QUERY, {"vector": [1]})
    await client.post("/v1/table/nope/count_rows/")
    await client.get("/nowhere")
    text = await shown(client)
    requests = "lance_serve_requests_total"
    assert value(text, requests, operation="query_table", status="200") == 4
    assert value(text, requests, operation="query_table", status="400") == 1
    assert value(text, requests, operation="count_rows", status="404") == 1
    assert value(text, requests, operation="unknown", status="404") == 1
    seconds = "lance_serve_request_duration_seconds"
    counts = {
        plan: value(text, f"{seconds}_count", operation="query_table", plan=plan)
        for plan in ("exact", "scan", "none", "ann")
    }
    assert counts == {"exact": 3, "scan": 1, "none": 1, "ann": 0}
    assert 0 < value(text, f"{seconds}_sum", operation="query_table", plan="exact") < 10


async def test_all_metrics_that_are_documented_are_shown_and_no_others(
    client: ServiceClient,
) -> None:
    text = await shown(client)
    found = {family.name for family in text_string_to_metric_families(text)}
    documented = {family.name.removesuffix("_total") for family in FAMILIES}
    no_disk = {name for name in documented if "disk_cache" in name}
    no_reads = {"lance_serve_store_read_bytes", "lance_serve_store_read_errors"}
    ours = {name for name in found if name.startswith("lance_serve")}
    ours = {name for name in ours if not name.endswith("_created")}
    assert ours | no_disk | no_reads == documented
    assert any(name.startswith("process_") for name in found)


def test_names_follow_the_convention_and_say_what_they_mean() -> None:
    names = [family.name for family in FAMILIES]
    assert len(set(names)) == len(names)
    for family in FAMILIES:
        assert CONVENTION.fullmatch(family.name)
        assert family.meaning.endswith(".")
        assert family.name.endswith("_total") == (family.kind == "counter")
    assert set(READINGS) < set(FAMILIES)


async def test_lanes_show_who_works_and_who_waits(
    tmp_path: Path, contract: Contract, store: FakeStore, dataset: FakeDataset
) -> None:
    go_on = threading.Event()
    dataset.on_run = lambda deadline: go_on.wait(10)
    options: dict[str, Any] = {"io_threads": 1, "max_queued_requests": 1}
    async with serving(
        tmp_path, contract=contract, open_dataset=store, load_kernels=lambda: None, **options
    ) as client:
        await client.wait_until_ready()
        io = client.app.state.services.io
        asked = [asyncio.create_task(client.post(QUERY, VECTOR))]
        await until(lambda: dataset.deadlines != [])
        asked.append(asyncio.create_task(client.post("/v1/table/t1/count_rows")))
        await until(lambda: io.num_waiting == 1)
        assert (await client.post("/v1/table/t1/count_rows")).status_code == 429
        text = await shown(client)
        go_on.set()
        await asyncio.gather(*asked)
        later = await shown(client)
    expected = {"queue_waiting": 1, "threads": 1, "threads_busy": 1, "queue_refused_total": 1}
    assert {n: value(text, f"lance_serve_{n}", lane="io") for n in expected} == expected
    assert value(text, "lance_serve_requests_running") == 3  # this one too
    assert value(text, "lance_serve_ready") == 1
    assert value(later, "lance_serve_queue_calls_total", lane="io") == 2
    assert value(later, "lance_serve_queue_wait_seconds_total", lane="io") > 0
    assert value(later, "lance_serve_requests_running") == 1


async def test_the_cache_is_shown(served: ServiceClient) -> None:
    body = {"vector": [0.0] * 16, "k": 2}
    for _ in range(2):
        await served.post(QUERY, body)
    text = await shown(served)
    stats = served.app.state.services.session.cache_stats
    for name in ("used_bytes", "budget_bytes", "entries"):
        assert value(text, f"lance_serve_cache_{name}") == getattr(stats, name) > 0
    assert value(text, "lance_serve_cache_misses_total") == stats.misses > 0
    assert value(text, "lance_serve_dataset_versions_open") == 1
    assert value(text, "lance_serve_memory_bytes") > 1 << 20


def test_reads_of_stores_are_measured() -> None:
    store = MemoryStore()
    store.put("a", b"0123456789")
    metrics = Metrics([])
    scheduler = RangeScheduler(CountingStore(store), observer=StoreReads(metrics, None))
    scheduler.read_many([ByteRange("a", 0, 4), ByteRange("a", 6, 9)])
    with pytest.raises(Exception, match="none"):
        scheduler.read("none", [(0, 1)])
    text = metrics.text().decode()
    reads = value(text, "lance_serve_store_read_duration_seconds_count")
    assert 1 <= reads <= 2
    assert 7 <= value(text, "lance_serve_store_read_bytes_total") <= 9
    assert value(text, "lance_serve_store_read_errors_total") == 1


@pytest.mark.parametrize(("needs_key", "status"), [(False, 200), (True, 401)])
async def test_metrics_need_a_key_only_where_that_is_set(
    tmp_path: Path, contract: Contract, needs_key: Any, status: int
) -> None:
    options = {"api_keys": ("one",), "metrics_need_key": needs_key}
    async with serving(tmp_path, contract=contract, load_kernels=lambda: None, **options) as client:
        assert (await client.get("/metrics")).status_code == status
        assert (await client.get("/metrics", headers={"x-api-key": "one"})).status_code == 200


def test_a_request_costs_a_few_microseconds() -> None:
    metrics = Metrics(["query_table"])
    record = RequestRecord("id", "POST", QUERY, status=200, plan="ann")
    best = 1.0
    for _ in range(50):
        started = time.perf_counter()
        for _ in range(200):
            metrics.observe(record, "query_table")
        best = min(best, (time.perf_counter() - started) / 200)
    assert best < 10e-6  # 1.2 on a quiet machine


WORKER = """
import sys, time
from service.telemetry.metrics import Metrics, Reading
from service.telemetry.request_log import RequestRecord
metrics = Metrics(["query_table"])
record = RequestRecord("id", "POST", "/", status=200, plan="ann", elapsed_s=0.5)
for _ in range(int(sys.argv[1])):
    metrics.observe(record, "query_table")
metrics.publish([Reading("lance_serve_cache_entries", 3), Reading("lance_serve_ready", 1),
                 Reading("lance_serve_cache_hits_total", 5)])
print(metrics.text().decode(), flush=True)
sys.stdin.read()
"""


def test_several_workers_show_one_sum_and_those_that_ended_hold_nothing(tmp_path: Path) -> None:
    workers = []
    texts = []
    for number in (2, 3):
        worker = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-c", WORKER, str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"PROMETHEUS_MULTIPROC_DIR": str(tmp_path), "PYTHONPATH": "."},
        )
        workers.append(worker)
        assert worker.stdout is not None
        lines = []
        while (line := worker.stdout.readline()) != "\n":
            lines.append(line)
        texts.append("".join(lines))
        if number == 2:
            worker.communicate("")
    workers[1].communicate("")
    labels = {"operation": "query_table", "status": "200"}
    assert [value(text, "lance_serve_requests_total", **labels) for text in texts] == [2, 5]
    assert [value(text, "lance_serve_cache_hits_total") for text in texts] == [5, 10]
    assert [value(text, "lance_serve_cache_entries") for text in texts] == [3, 3]
    seconds = "lance_serve_request_duration_seconds_sum"
    assert value(texts[1], seconds, operation="query_table", plan="ann") == 2.5
