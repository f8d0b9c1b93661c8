"""What the parts of the service hold and have counted, as metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.api.memory_guard import anonymous_bytes
from service.telemetry.metrics import Reading

if TYPE_CHECKING:
    from collections.abc import Iterator

    from service.api.search_threads import Lane
    from service.api.services import Services


def readings_of(services: Services) -> Iterator[Reading]:
    """Yield the values of all metrics that are read when they are asked for."""
    yield Reading("lance_serve_info", 1, (services.version,))
    yield Reading("lance_serve_ready", services.kernels_loaded.is_set())
    yield Reading("lance_serve_requests_running", services.metrics.num_running)
    yield Reading("lance_serve_dataset_versions_open", services.catalog.num_open)
    memory = anonymous_bytes()
    if memory is not None:
        yield Reading("lance_serve_memory_bytes", memory)
    connections = services.connections
    yield Reading("lance_serve_connections_open", len(connections))
    closed = "lance_serve_connections_closed_total"
    yield Reading(closed, connections.num_refused, ("too_many",))
    yield Reading(closed, connections.num_stalled, ("stalled",))
    for lane in (services.search, services.io):
        yield from _lane_readings(lane)
    yield from _cache_readings(services)


def _lane_readings(lane: Lane) -> Iterator[Reading]:
    label, figures = (lane.name,), lane.figures()
    yield Reading("lance_serve_queue_waiting", lane.num_waiting, label)
    yield Reading("lance_serve_threads", figures.num_threads, label)
    yield Reading("lance_serve_threads_busy", figures.num_busy, label)
    yield Reading("lance_serve_queue_calls_total", figures.num_taken, label)
    yield Reading("lance_serve_queue_wait_seconds_total", figures.waited_s, label)
    yield Reading("lance_serve_queue_refused_total", figures.num_refused, label)


def _cache_readings(services: Services) -> Iterator[Reading]:
    cache, disk = services.session.cache_stats, services.session.disk_cache_stats
    yield Reading("lance_serve_cache_used_bytes", cache.used_bytes)
    yield Reading("lance_serve_cache_budget_bytes", cache.budget_bytes)
    yield Reading("lance_serve_cache_entries", cache.entries)
    yield Reading("lance_serve_cache_hits_total", cache.hits)
    yield Reading("lance_serve_cache_misses_total", cache.misses)
    yield Reading("lance_serve_cache_evictions_total", cache.evictions)
    if disk is not None:
        yield Reading("lance_serve_disk_cache_used_bytes", disk.used_bytes)
        yield Reading("lance_serve_disk_cache_hits_total", disk.hits)
        yield Reading("lance_serve_disk_cache_misses_total", disk.misses)
