"""The batches of a plain query, with a deadline and with what reading them cost."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Literal

from lance_core.io.metering import metered
from lance_core.query.stats import QueryStats

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

    from lance_core.dataset import Dataset
    from lance_core.query.deadline import Deadline
    from lance_core.query.request import ScanQuery
    from service.telemetry.request_log import RequestRecord


class ScanBatches:
    """Iterates once over the batches of a scan; each may be read on another thread.

    Parameters
    ----------
    dataset, query
        What to read.
    deadline
        Looked at while rows are read; may be replaced between two batches.
    record
        Told how far the reading is.

    Attributes
    ----------
    schema
        Columns of the answer.
    """

    def __init__(
        self, dataset: Dataset, query: ScanQuery, deadline: Deadline, record: RequestRecord
    ) -> None:
        self.version = dataset.version
        self.deadline = deadline
        self._record = record
        self._num_rows = 0
        self._limit = query.limit
        self._started = time.perf_counter()
        self._bytes_read = 0
        self._store_requests = 0
        self._cache_hits = 0
        self._cache_misses = 0
        scan = dataset.scan_of(query, lambda: self.deadline)
        self.schema = scan.schema
        self._batches = scan.batches()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        while True:
            self.deadline.check("reading rows")
            with metered() as meter:
                batch = next(self._batches, None)
            self._bytes_read += meter.bytes_read
            self._store_requests += meter.store_requests
            self._cache_hits += meter.cache_hits
            self._cache_misses += meter.cache_misses
            self._num_rows += 0 if batch is None else batch.num_rows
            self._note()
            if batch is None:
                return
            yield batch

    def _note(self) -> None:
        self._record.plan = "scan"
        self._record.rows = self._num_rows
        self._record.bytes_read = self._bytes_read
        self._record.cache_hits = self._cache_hits

    def stats(self) -> Mapping[str, object]:
        """Return what was done so far, as the answer's ``stats`` member."""
        return QueryStats(
            version=self.version,
            plan="scan",
            exact=True,
            partitions_probed=0,
            partitions_total=0,
            rows_scanned_flat=0,
            rows_refined=0,
            bytes_read=self._bytes_read,
            store_requests=self._store_requests,
            cache_hits=self._cache_hits,
            cache_misses=self._cache_misses,
            stop_reason=self._stop_reason(),
            elapsed_ms=(time.perf_counter() - self._started) * 1e3,
        ).to_dict()

    def _stop_reason(self) -> Literal["complete", "no_more_rows"]:
        return "complete" if self._num_rows == self._limit else "no_more_rows"
