"""Reads of object stores, as metrics and in traces."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lance_core.io.observing import GetRange
    from service.telemetry.metrics import Metrics
    from service.telemetry.tracing import Tracing


class StoreReads:
    """Told of every range that is read; safe to share between threads."""

    def __init__(self, metrics: Metrics, tracing: Tracing | None) -> None:
        self._metrics = metrics
        self._tracing = tracing

    def watch(self, get_range: GetRange) -> GetRange:
        """Return what reads in the same way, and is measured."""
        metrics = self._metrics
        if self._tracing is not None:
            get_range = self._tracing.watch(get_range)

        def watched(path: str, start: int, end: int) -> memoryview:
            started_s = time.perf_counter()
            try:
                view = get_range(path, start, end)
            except BaseException:
                metrics.store_read_errors.inc()
                raise
            metrics.store_read_seconds.observe(time.perf_counter() - started_s)
            metrics.store_read_bytes.inc(end - start)
            return view

        return watched
