"""A dataset in memory, with the face that the service uses and faults on demand."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from lance_core.cache.byte_cache import ByteCache
from lance_core.errors import (
    BranchNotFoundError,
    DatasetNotFoundError,
    InvalidRequestError,
    TagNotFoundError,
    VersionNotFoundError,
)
from lance_core.query.request import ScanQuery
from lance_core.query.stats import PlanKind, QueryStats

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lance_core.query.deadline import Deadline
    from lance_core.query.request import VectorQuery


def make_table(num_rows: int = 20, dimension: int = 4) -> pa.Table:
    vectors = np.arange(num_rows * dimension, dtype=np.float32).reshape(num_rows, dimension)
    return pa.table(
        {
            "id": pa.array(range(num_rows), pa.int64()),
            "text": [f"row {i}" for i in range(num_rows)],
            "vec": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), dimension),
        }
    )


@dataclass
class FakeDataset:
    """``on_run`` and ``on_batch`` are called where a real dataset would compute or read."""

    table: pa.Table
    version: int = 1
    incarnation: str = "one"
    on_run: Callable[[Deadline], object] | None = None
    on_batch: Callable[[int], object] | None = None
    batch_rows: int = 5
    requests: list[VectorQuery] = field(default_factory=list)
    deadlines: list[Deadline] = field(default_factory=list)

    @property
    def schema(self) -> pa.Schema:
        return self.table.schema

    @property
    def snapshot(self) -> Any:
        return SimpleNamespace(
            incarnation=f"{self.incarnation}/{self.version}",
            fragments=(SimpleNamespace(physical_rows=self.table.num_rows + 2),),
        )

    def count_rows(self, *_: object, **__: object) -> int:
        return len(self.table)  # it judges no filters, in queries neither

    branch = None
    session = SimpleNamespace(cache=ByteCache(0))

    def version_page(self, *, after: Any, limit: Any, descending: bool) -> Any:
        versions = self.versions()[:: -1 if descending else 1]
        if after is not None:
            versions = [
                v for v in versions if v.version != after and (v.version < after) == descending
            ]
        return versions[:limit], limit is not None and limit < len(versions)

    def versions(self) -> list[Any]:
        return [
            SimpleNamespace(
                version=number,
                timestamp=datetime(2026, 11, 27, 21, 8, number, tzinfo=UTC),
                manifest_path=f"_versions/{number}.manifest",
                manifest_size=100 + number,
                e_tag=None,
            )
            for number in range(1, self.version + 1)
        ]

    def run(self, request: VectorQuery, deadline: Deadline, *, resident_only: bool = False) -> Any:
        self.requests.append(request)
        self.deadlines.append(deadline)
        if self.on_run is not None:
            self.on_run(deadline)
        vectors = np.stack(self.table["vec"].to_pylist()).astype(np.float32)
        assert request.vectors is not None
        if request.vectors.shape[1] != vectors.shape[1]:
            raise InvalidRequestError(
                f"the query vector has dimension {request.vectors.shape[1]}, the column"
                f" {vectors.shape[1]}"
            )
        k = len(vectors) if request.k is None else request.k
        parts = []
        for number, query in enumerate(request.vectors):
            distances = ((vectors - query) ** 2).sum(axis=1)
            order = np.argsort(distances, kind="stable")[request.offset : request.offset + k]
            part = self.table.take(pa.array(order))
            if request.columns is not None:
                part = part.select(request.columns)
            part = part.append_column("_distance", pa.array(distances[order], pa.float32()))
            if request.batched:
                field_ = pa.field("query_index", pa.int32(), nullable=False)
                index = pa.array([number] * len(order), pa.int32())
                part = part.add_column(0, field_, index)
            parts.append(part)
        return SimpleNamespace(rows=pa.concat_tables(parts), stats=self._stats("exact"))

    def scan_of(self, request: ScanQuery, deadline: Callable[[], Deadline]) -> Any:
        table = self.table
        if request.columns is not None:
            table = table.select([str(each) for each in request.columns])
        table = table.slice(request.offset, request.limit)

        def batches() -> Iterator[pa.RecordBatch]:
            for number, batch in enumerate(table.to_batches(max_chunksize=self.batch_rows)):
                deadline().check("reading rows")
                if self.on_batch is not None:
                    self.on_batch(number)
                yield batch

        return SimpleNamespace(schema=table.schema, batches=batches)

    def explain_plan(self, request: object, deadline: Deadline) -> Any:
        self.deadlines.append(deadline)
        kind = "Scan" if isinstance(request, ScanQuery) else "Take"
        return self._report(kind, f'{kind}: "quoted"\n  second line')

    def analyze_plan(self, request: object, deadline: Deadline) -> Any:
        report = self.explain_plan(request, deadline)
        text = report.text() + "\nmeasured"
        return SimpleNamespace(version=self.version, text=lambda: text, to_dict=report.to_dict)

    def _report(self, kind: str, text: str) -> Any:
        document = {
            "schema_version": 1,
            "version": self.version,
            "plan": {"node": kind, "settings": {}, "inputs": []},
            "skipped": [],
        }
        return SimpleNamespace(version=self.version, text=lambda: text, to_dict=lambda: document)

    def _stats(self, plan: PlanKind) -> QueryStats:
        return QueryStats(
            version=self.version,
            plan=plan,
            exact=True,
            partitions_probed=0,
            partitions_total=0,
            rows_scanned_flat=self.table.num_rows,
            rows_refined=0,
            bytes_read=0,
            store_requests=0,
            cache_hits=0,
            cache_misses=0,
            stop_reason="complete",
            elapsed_ms=0.25,
        )


class FakeStore:
    """Datasets by path below the root; counts how often each was opened."""

    def __init__(self, **datasets: FakeDataset) -> None:
        self.datasets = {f"{name}.lance": {d.version: d} for name, d in datasets.items()}
        self.opened: list[tuple[str, int | str | None]] = []
        self.lock = threading.Lock()
        self.delay_s = 0.0

    def __call__(
        self, uri: str, version: int | str | None, *, branch: str | None = None, **_: object
    ) -> Any:
        with self.lock:
            self.opened.append((uri, version))
        time.sleep(self.delay_s)
        versions = self.datasets.get(uri.rpartition("/")[2])
        if versions is None:
            raise DatasetNotFoundError(f"no dataset at {uri}")
        if isinstance(version, str):
            raise TagNotFoundError(f'there is no tag "{version}"; there are: none')
        if branch is not None:
            raise BranchNotFoundError(f'there is no branch "{branch}"; there are: none')
        wanted = max(versions) if version is None else version
        if wanted not in versions:
            raise VersionNotFoundError(f"there is no version {wanted}")
        return versions[wanted]
