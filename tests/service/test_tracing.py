"""Traces: one request from its head to every read of a store."""

from __future__ import annotations

import logging
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from lance_core.io.counting_store import CountingStore
from lance_core.io.memory_store import MemoryStore
from lance_core.io.scheduler import RangeScheduler
from service.app import create_app
from service.settings import Settings
from service.telemetry.store_reads import StoreReads
from service.telemetry.tracing import Tracing
from tests.service_client import Contract, ServiceClient, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.fake_dataset import FakeDataset, FakeStore

QUERY = "/v1/table/t1/query"
TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
PARENT_ID = "b7ad6b7169203331"
PARENT = {"traceparent": f"00-{TRACE_ID}-{PARENT_ID}-01"}


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def tracing(exporter: InMemorySpanExporter) -> Tracing:
    return Tracing("1", 1.0, SimpleSpanProcessor(exporter))


def spans_of(exporter: InMemorySpanExporter, name: str) -> list[Any]:
    return [span for span in exporter.get_finished_spans() if span.name.startswith(name)]


@pytest.fixture
async def traced(
    tmp_path: Path, contract: Contract, store: FakeStore, tracing: Tracing
) -> AsyncIterator[Any]:
    async with serving(
        tmp_path,
        contract=contract,
        open_dataset=store,
        load_kernels=lambda: None,
        tracing=tracing,
    ) as client:
        await client.wait_until_ready()
        yield client


async def test_reads_are_below_work_and_work_below_the_request_and_that_below_the_caller(
    traced: ServiceClient,
    dataset: FakeDataset,
    tracing: Tracing,
    exporter: InMemorySpanExporter,
) -> None:
    store = CountingStore(MemoryStore())
    store.put("data/a.lance", bytes(100))
    metrics = traced.app.state.services.metrics
    scheduler = RangeScheduler(store, observer=StoreReads(metrics, tracing))

    def read(deadline: object) -> None:
        scheduler.read("data/a.lance", [(0, 10), (90, 100)])

    dataset.on_run = read
    exporter.clear()
    answer = await traced.post(QUERY, {"vector": [1, 2, 3, 4]}, headers=PARENT)
    assert answer.status_code == 200
    (request,) = spans_of(exporter, f"POST {QUERY}")
    assert format(request.context.trace_id, "032x") == TRACE_ID
    assert format(request.parent.span_id, "016x") == PARENT_ID
    assert request.attributes["lance.plan"] == "exact"
    assert request.attributes["http.response.status_code"] == 200
    works = spans_of(exporter, "work on")
    assert {span.name for span in works} == {"work on search thread", "work on io thread"}
    assert {span.parent.span_id for span in works} == {request.context.span_id}
    (io,) = spans_of(exporter, "work on io")
    reads = spans_of(exporter, "read")
    assert {span.parent.span_id for span in reads} == {io.context.span_id}
    assert sum(span.attributes["lance.bytes"] for span in reads) >= 20
    assert {span.context.trace_id for span in exporter.get_finished_spans()} == {
        request.context.trace_id
    }


async def test_a_fault_is_seen_in_the_trace(
    traced: ServiceClient, dataset: FakeDataset, exporter: InMemorySpanExporter
) -> None:
    dataset.on_run = lambda deadline: 1 / 0
    await traced.post(QUERY, {"vector": [1, 2, 3, 4]})
    (request,) = spans_of(exporter, f"POST {QUERY}")
    assert not request.status.is_ok


def fields_of(caplog: pytest.LogCaptureFixture) -> dict[str, Any]:
    """Return what the line of the last request says; other threads may log meanwhile."""
    lines = [record for record in caplog.records if record.name == "service.request"]
    fields: dict[str, Any] = vars(lines[-1])["fields"]
    return fields


async def test_requests_that_nobody_traces_share_no_trace(
    traced: ServiceClient, exporter: InMemorySpanExporter
) -> None:
    exporter.clear()
    for _ in range(2):
        await traced.get("/v1/table")
    requests = spans_of(exporter, "GET /v1/table")
    assert len({span.context.trace_id for span in requests}) == 2
    assert [span.parent for span in requests] == [None, None]


@pytest.mark.parametrize(
    ("headers", "trace_id"), [(PARENT, TRACE_ID), ({}, None), ({"traceparent": "00-junk"}, None)]
)
async def test_the_log_line_names_the_trace_of_the_caller(
    client: ServiceClient, caplog: pytest.LogCaptureFixture, headers: Any, trace_id: Any
) -> None:
    caplog.set_level(logging.INFO, "service.request")
    await client.get("/v1/table", headers=headers)
    fields = fields_of(caplog)
    assert fields.get("trace_id") == trace_id


async def test_the_log_line_names_the_trace_that_was_begun(
    traced: ServiceClient, caplog: pytest.LogCaptureFixture, exporter: InMemorySpanExporter
) -> None:
    caplog.set_level(logging.INFO, "service.request")
    exporter.clear()
    await traced.get("/v1/table")
    fields = fields_of(caplog)
    (request,) = spans_of(exporter, "GET /v1/table")
    assert fields["trace_id"] == format(request.context.trace_id, "032x")


def test_a_service_without_traces_does_not_load_what_makes_them() -> None:
    program = (
        "import sys; from service.app import create_app; from service.settings import Settings;"
        "create_app(Settings(root='.'));"
        "sys.exit(any(name.startswith('opentelemetry.sdk') for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False)  # noqa: S603 - ours
    assert done.returncode == 0


def test_an_endpoint_makes_a_service_with_traces() -> None:
    app = create_app(Settings(root=".", tracing_endpoint="http://127.0.0.1:9/v1/traces"))
    assert isinstance(app.state.services.tracing, Tracing)
    app.state.services.tracing.stop()
