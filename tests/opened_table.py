"""A snapshot with its opened files, as scans and takes want them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_core.cache.byte_cache import ByteCache
from lance_core.io.counting_store import CountingStore
from lance_core.io.open import open_store
from lance_core.io.scheduler import RangeScheduler
from lance_core.scan.projection import Projection, resolve_projection
from lance_core.scan.rows import scan_rows
from lance_core.scan.take import take_rows
from lance_core.table.files import TableFiles
from lance_core.table.snapshot import Snapshot, open_snapshot

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

CACHE_BYTES = 64 << 20


@dataclass(frozen=True)
class OpenedTable:
    """Scans and takes of one snapshot, as tables."""

    snapshot: Snapshot
    files: TableFiles

    def projection(self, columns: Sequence[str] | None) -> Projection:
        return resolve_projection(self.snapshot.schema, columns)

    def scan(
        self,
        columns: Sequence[str] | None = None,
        *,
        limit: int | None = None,
        offset: int = 0,
        batch_rows: int = 8192,
    ) -> pa.Table:
        projection = self.projection(columns)
        batches = scan_rows(
            self.files,
            self.snapshot,
            projection,
            limit=limit,
            offset=offset,
            batch_rows=batch_rows,
        )
        return pa.Table.from_batches(batches, projection.schema)

    def take(self, row_addresses: NDArray[np.uint64], columns: Sequence[str]) -> pa.Table:
        return take_rows(self.files, self.snapshot, row_addresses, self.projection(columns))


def open_table(root: Path, version: int | None = None) -> OpenedTable:
    """Open a local dataset through mapped files."""
    return _open(RangeScheduler(open_store(str(root))), version)


def open_counted(root: Path) -> tuple[OpenedTable, CountingStore]:
    """Open a local dataset through a store that records what is read."""
    store = CountingStore(open_store(str(root)))
    return _open(RangeScheduler(store), None), store


def _open(scheduler: RangeScheduler, version: int | None) -> OpenedTable:
    return OpenedTable(open_snapshot(scheduler, version), TableFiles(ByteCache(CACHE_BYTES)))
