"""Traces by OpenTelemetry, from a request to each read of a store (extra ``tracing``).

Only services that have an endpoint for traces import this module: others pay nothing.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from opentelemetry import context as contexts
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.propagate import extract
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import SpanKind, Status, StatusCode, format_trace_id, use_span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from opentelemetry.sdk.trace import SpanProcessor
    from opentelemetry.trace import Span

    from lance_core.io.observing import GetRange
    from service.telemetry.request_log import RequestRecord

T = TypeVar("T")

_SERVER_ERROR = 500
_TRACE_HEADERS = (b"traceparent", b"tracestate")


class Tracing:
    """Makes spans; safe to share between threads.

    Parameters
    ----------
    version
        Of the service.
    sample_rate
        Share of the requests that are traced where the caller has not decided it.
    processor
        Takes the spans that have ended.
    """

    def __init__(self, version: str, sample_rate: float, processor: SpanProcessor) -> None:
        self._provider = TracerProvider(
            sampler=ParentBased(TraceIdRatioBased(sample_rate)),
            resource=Resource.create({"service.name": "lance-serve", "service.version": version}),
            shutdown_on_exit=False,
        )
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("lance-serve", version)

    def stop(self) -> None:
        """Send what is left."""
        self._provider.shutdown()

    @contextmanager
    def request(self, record: RequestRecord, headers: Mapping[bytes, bytes]) -> Iterator[None]:
        """Make the span of a request around a block, below the caller's where it names one."""
        carrier = {
            name.decode(): headers[name].decode("latin-1")
            for name in _TRACE_HEADERS
            if name in headers
        }
        span = self._tracer.start_span(
            f"{record.method} {record.path}",
            extract(carrier, contexts.Context()),
            SpanKind.SERVER,
            {"http.request.method": record.method, "url.path": record.path},
        )
        record.trace_id = format_trace_id(span.get_span_context().trace_id)
        try:
            with use_span(span):
                yield
        finally:
            _describe(span, record)
            span.end()

    def carried(self, name: str, call: Callable[[], T]) -> Callable[[], T]:
        """Return a call for another thread, with a span for its wait and one for its work."""
        parent, since_ns = contexts.get_current(), time.time_ns()

        def work() -> T:
            token = contexts.attach(parent)
            try:
                self._tracer.start_span(f"wait for {name} thread", start_time=since_ns).end()
                with self._tracer.start_as_current_span(f"work on {name} thread"):
                    return call()
            finally:
                contexts.detach(token)

        return work

    def watch(self, get_range: GetRange) -> GetRange:
        """Return what reads in the same way, with a span for each read below the present one."""
        parent = contexts.get_current()

        def watched(path: str, start: int, end: int) -> memoryview:
            facts: dict[str, str | int] = {
                "lance.file": path,
                "lance.start": start,
                "lance.bytes": end - start,
            }
            with self._tracer.start_as_current_span(
                "read", parent, SpanKind.CLIENT, attributes=facts
            ):
                return get_range(path, start, end)

        return watched


def _describe(span: Span, record: RequestRecord) -> None:
    """Note what is known when the answer has been sent."""
    facts: dict[str, str | int | None] = {
        "http.response.status_code": record.status,
        "lance.request_id": record.request_id,
        "lance.table": record.table,
        "lance.version": record.version,
        "lance.plan": record.plan,
        "lance.rows": record.rows,
        "lance.bytes_read": record.bytes_read,
    }
    for name, value in facts.items():
        if value is not None:
            span.set_attribute(name, value)
    if record.status >= _SERVER_ERROR:
        span.set_status(Status(StatusCode.ERROR))


def export_to(endpoint: str, version: str, sample_rate: float) -> Tracing:
    """Return what sends traces to a collector by OTLP over HTTP, some at a time."""
    return Tracing(version, sample_rate, BatchSpanProcessor(OTLPSpanExporter(endpoint)))
