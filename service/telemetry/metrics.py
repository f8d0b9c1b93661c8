"""The metrics that the service shows to Prometheus: their names, and what they mean.

Labels have few values, known at start: names of operations, kinds of plans, statuses, lanes.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from service.telemetry.request_log import RequestRecord

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
DIRECTORY_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""Set where several workers share what they show, by files in that directory."""

NO_PLAN, UNKNOWN_OPERATION = "none", "unknown"
PLANS = ("ann", "exact", "text", "hybrid", "scan")
QUERY_OPERATION = "query_table"

_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
_RECALL = (0.5, 0.7, 0.8, 0.85, 0.9, 0.95, 0.97, 0.99, 0.9999)


@dataclass(frozen=True, slots=True)
class Family:
    """One metric. Gauges of several workers are added up, but for ``is_same`` ones."""

    name: str
    kind: Literal["gauge", "counter", "histogram"]
    meaning: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = _SECONDS
    is_same: bool = False


REQUESTS = Family(
    "lance_serve_requests_total", "counter", "Requests answered.", ("operation", "status")
)
REQUEST_SECONDS = Family(
    "lance_serve_request_duration_seconds",
    "histogram",
    "Time from the head of a request to the end of its answer.",
    ("operation", "plan"),
)
STORE_READ_SECONDS = Family(
    "lance_serve_store_read_duration_seconds",
    "histogram",
    "Time of a range read of an object store; local files are mapped, not read.",
)
STORE_READ_BYTES = Family(
    "lance_serve_store_read_bytes_total", "counter", "Bytes that object stores delivered."
)
STORE_READ_ERRORS = Family(
    "lance_serve_store_read_errors_total", "counter", "Range reads that failed."
)
RECALL = Family(
    "lance_serve_recall_ratio",
    "histogram",
    "Share of the exact answer that an indexed one had, of sampled queries.",
    buckets=_RECALL,
)

READINGS = (
    Family("lance_serve_info", "gauge", "Always 1, for its labels.", ("version",), is_same=True),
    Family("lance_serve_ready", "gauge", "Workers that answer queries."),
    Family("lance_serve_requests_running", "gauge", "Requests being answered."),
    Family("lance_serve_connections_open", "gauge", "Open connections of clients."),
    Family(
        "lance_serve_connections_closed_total",
        "counter",
        "Connections closed by the service: one too many, or stalled.",
        ("reason",),
    ),
    Family("lance_serve_queue_waiting", "gauge", "Calls that wait for a thread.", ("lane",)),
    Family("lance_serve_threads_busy", "gauge", "Threads that work.", ("lane",)),
    Family("lance_serve_threads", "gauge", "Threads there are.", ("lane",)),
    Family("lance_serve_queue_calls_total", "counter", "Calls that a thread took.", ("lane",)),
    Family(
        "lance_serve_queue_wait_seconds_total", "counter", "Time that calls have waited.", ("lane",)
    ),
    Family(
        "lance_serve_queue_refused_total", "counter", "Calls refused by a full queue.", ("lane",)
    ),
    Family("lance_serve_cache_used_bytes", "gauge", "Bytes held in memory."),
    Family("lance_serve_cache_budget_bytes", "gauge", "Bytes that may be held in memory."),
    Family("lance_serve_cache_entries", "gauge", "Entries held in memory."),
    Family("lance_serve_cache_hits_total", "counter", "Keys found in memory."),
    Family("lance_serve_cache_misses_total", "counter", "Keys not found in memory."),
    Family("lance_serve_cache_evictions_total", "counter", "Entries that had to leave."),
    Family(
        "lance_serve_disk_cache_used_bytes",
        "gauge",
        "Bytes held on disk, by all workers.",
        is_same=True,
    ),
    Family("lance_serve_disk_cache_hits_total", "counter", "Ranges found on disk."),
    Family("lance_serve_disk_cache_misses_total", "counter", "Ranges not found on disk."),
    Family("lance_serve_dataset_versions_open", "gauge", "Versions of datasets kept open."),
    Family("lance_serve_memory_bytes", "gauge", "Memory of the process, mapped files left out."),
)
"""What is read of other parts of the service, when it is asked for."""

FAMILIES = (
    REQUESTS,
    REQUEST_SECONDS,
    STORE_READ_SECONDS,
    STORE_READ_BYTES,
    STORE_READ_ERRORS,
    RECALL,
    *READINGS,
)
"""All metrics; beside these there are the usual ``process_*`` of a single worker."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The value of a metric at one moment, with its labels in order."""

    name: str
    value: float
    labels: tuple[str, ...] = ()


class Metrics:
    """All metrics of this process; safe to share between threads.

    Parameters
    ----------
    operations
        Names of what requests may ask for.
    """

    def __init__(self, operations: Iterable[str]) -> None:
        self.num_running = 0
        """Requests being answered, counted by the edge."""
        self._registry = CollectorRegistry()
        self.is_shared = DIRECTORY_VARIABLE in os.environ
        if not self.is_shared:
            ProcessCollector(registry=self._registry)
        self._requests = self._counter(REQUESTS)
        self._seconds = self._histogram(REQUEST_SECONDS)
        self.store_read_seconds = self._histogram(STORE_READ_SECONDS)
        self.store_read_bytes = self._counter(STORE_READ_BYTES)
        self.store_read_errors = self._counter(STORE_READ_ERRORS)
        self.recall = self._histogram(RECALL)
        self._gauges = {each.name: self._gauge(each) for each in READINGS if each.kind == "gauge"}
        self._counters = {
            each.name: self._counter(each) for each in READINGS if each.kind == "counter"
        }
        self._counted: dict[tuple[str, tuple[str, ...]], float] = {}
        self._num_requests: dict[tuple[str, int], Counter] = {}
        self._durations: dict[tuple[str, str], Histogram] = {}
        for operation in (*operations, UNKNOWN_OPERATION):
            plans = PLANS if operation == QUERY_OPERATION else ()
            for plan in (NO_PLAN, *plans):
                self._durations[operation, plan] = self._seconds.labels(operation, plan)

    def observe(self, record: RequestRecord, operation: str) -> None:
        """Count a request that was answered; this is what every request pays."""
        plan = NO_PLAN if record.plan is None or operation != QUERY_OPERATION else record.plan
        duration = self._durations.get((operation, plan))
        if duration is None:
            operation = UNKNOWN_OPERATION
            duration = self._durations[operation, NO_PLAN]
        duration.observe(record.elapsed_s)
        counter = self._num_requests.get((operation, record.status))
        if counter is None:
            counter = self._requests.labels(operation, str(record.status))
            self._num_requests[operation, record.status] = counter
        counter.inc()

    def publish(self, readings: Iterable[Reading]) -> None:
        """Take over what others have counted and hold; for one thread at a time."""
        for each in readings:
            gauge = self._gauges.get(each.name)
            if gauge is not None:
                (gauge.labels(*each.labels) if each.labels else gauge).set(each.value)
                continue
            counter = self._counters[each.name]
            before = self._counted.get((each.name, each.labels), 0.0)
            self._counted[each.name, each.labels] = each.value
            counter = counter.labels(*each.labels) if each.labels else counter
            counter.inc(max(0.0, each.value - before))

    def text(self) -> bytes:
        """Return all metrics, those of other workers too, as Prometheus reads them."""
        if not self.is_shared:
            return generate_latest(self._registry)
        _forget_dead_workers(Path(os.environ[DIRECTORY_VARIABLE]))
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)

    def _counter(self, family: Family) -> Counter:
        return Counter(family.name, family.meaning, family.labels, registry=self._registry)

    def _gauge(self, family: Family) -> Gauge:
        return Gauge(
            family.name,
            family.meaning,
            family.labels,
            registry=self._registry,
            multiprocess_mode="livemax" if family.is_same else "livesum",
        )

    def _histogram(self, family: Family) -> Histogram:
        return Histogram(
            family.name,
            family.meaning,
            family.labels,
            registry=self._registry,
            buckets=family.buckets,
        )


def _forget_dead_workers(directory: Path) -> None:
    """Take out what workers held that are no more; what they counted stays."""
    for pid in _pids_of(directory.glob("gauge_live*_*.db")):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            mark_process_dead(pid, str(directory))  # type: ignore[no-untyped-call]
        except PermissionError:
            continue


def _pids_of(files: Iterable[Path]) -> Sequence[int]:
    """Return the numbers that names of files end in, each once."""
    return sorted({int(each.stem.rpartition("_")[2]) for each in files})
