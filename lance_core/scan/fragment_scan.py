"""Reading the live rows of one fragment in order, in batches of bounded size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.scan.assemble import record_batch
from lance_core.scan.live_rows import LiveRows
from lance_core.scan.stored_rows import open_stored_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lance_core.scan.projection import Projection
    from lance_core.table.files import TableFiles
    from lance_core.table.fragment import Fragment
    from lance_core.table.snapshot import Snapshot

_OFFSET_BITS = 32


def scan_fragment(
    files: TableFiles,
    snapshot: Snapshot,
    fragment: Fragment,
    projection: Projection,
    *,
    start: int = 0,
    end: int | None = None,
    first_rank: int = 0,
    batch_rows: int = 8192,
) -> Iterator[pa.RecordBatch]:
    """Read the live rows of a fragment whose ranks in it are ``[start, end)``.

    Parameters
    ----------
    start, end
        Ranks among the fragment's live rows; ``end`` None = all. Rows outside are not read.
    first_rank
        Rank, among the live rows of the table, of the fragment's first live row.
    batch_rows
        Largest batch.

    Raises
    ------
    CorruptFileError
        A file is missing, contradicts the manifest, or cannot be decoded.
    UnsupportedFeatureError
        A column or file needs a feature that this release lacks.
    """
    live = LiveRows(fragment.physical_rows, files.deleted(snapshot, fragment))
    stored = open_stored_rows(files, snapshot, fragment, projection.fields)
    base = np.uint64(fragment.id << _OFFSET_BITS)
    last = len(live) if end is None else min(end, len(live))
    for batch_start in range(start, last, batch_rows):
        batch_end = min(batch_start + batch_rows, last)
        rows = live.select(batch_start, batch_end)
        arrays = stored.read(rows.ranges)
        if rows.kept is not None:
            arrays = [array.take(pa.array(rows.kept)) for array in arrays]
        addresses = rows.row_offsets.astype(np.uint64) | base
        ranks = np.arange(first_rank + batch_start, first_rank + batch_end, dtype=np.int64)
        yield record_batch(projection, arrays, addresses, ranks)
