"""Reading the live rows of a snapshot in order, with offset and limit, and counting them."""

from __future__ import annotations

import sys
from itertools import accumulate
from typing import TYPE_CHECKING

from lance_core.file.file_scan import NUM_THREADS
from lance_core.file.windows import (
    SharedDictionaries,
    WindowSizes,
    cut_batches,
    least_row_bytes,
)
from lance_core.io.ahead import ahead
from lance_core.scan.fragment_scan import fragment_windows

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Mapping

    import pyarrow as pa

    from lance_core.ids import FragmentId
    from lance_core.scan.projection import Projection
    from lance_core.table.files import TableFiles
    from lance_core.table.snapshot import Snapshot

_READ_AHEAD = 2
"""Windows that are decoded or under way beside the one in use."""


def scan_rows(
    files: TableFiles,
    snapshot: Snapshot,
    projection: Projection,
    *,
    limit: int | None = None,
    offset: int = 0,
    fragment_ids: Container[int] | None = None,
    batch_rows: int = 8192,
    batch_bytes: int = 8 << 20,
) -> Iterator[pa.RecordBatch]:
    """Read live rows, fragments in the order of the manifest, rows in the order of the fragment.

    Parameters
    ----------
    files
        Opened files.
    projection
        Columns of the result.
    limit
        Most rows to return; None = all.
    offset
        Live rows to skip first. Fragments that lie before it are not read at all.
    fragment_ids
        Read only these fragments; the others count for limit and offset as if they were read. None
        = all.
    batch_rows, batch_bytes
        Largest batch; a batch never spans fragments, and a single row may have more bytes.

    Raises
    ------
    CorruptFileError
        A file is missing, contradicts the manifest, or cannot be decoded.
    UnsupportedFeatureError
        A column or file needs a feature that this release lacks.
    """
    last = offset + limit if limit is not None else sys.maxsize
    most = min(last - offset, sum(fragment.physical_rows for fragment in snapshot.fragments))
    least = sum(least_row_bytes(field.type) for field in projection.schema)
    sizes = WindowSizes(least, batch_rows, len(projection.schema))
    windows = _windows(files, snapshot, projection, sizes, offset, last, fragment_ids)
    dictionaries = SharedDictionaries(projection.schema)

    def depth() -> int:
        return 0 if sizes.is_short(most) else _READ_AHEAD

    for arrays in ahead(windows, num_threads=NUM_THREADS, depth=depth):
        yield from cut_batches(dictionaries.window(arrays), batch_rows, batch_bytes)


def _windows(
    files: TableFiles,
    snapshot: Snapshot,
    projection: Projection,
    sizes: WindowSizes,
    first: int,
    last: int,
    fragment_ids: Container[int] | None,
) -> Iterator[Callable[[], list[pa.Array]]]:
    """Yield what reads the live rows of ranks ``[first, last)``; opens files when it gets there."""
    first_rank = 0
    for fragment in snapshot.fragments:
        if first_rank >= last:
            return
        num_rows = files.num_live_rows(snapshot, fragment)
        start = max(0, first - first_rank)
        is_wanted = fragment_ids is None or fragment.id in fragment_ids
        if start < num_rows and is_wanted:
            yield from fragment_windows(
                files,
                snapshot,
                fragment,
                projection,
                sizes,
                start=start,
                end=min(num_rows, last - first_rank),
                first_rank=first_rank,
            )
        first_rank += num_rows


def count_rows(files: TableFiles, snapshot: Snapshot) -> int:
    """Return the number of live rows.

    The manifest says it, unless a very old writer left the number of deleted rows out; then the
    deletion file is read.
    """
    return sum(files.num_live_rows(snapshot, fragment) for fragment in snapshot.fragments)


def first_ranks(files: TableFiles, snapshot: Snapshot) -> Mapping[FragmentId, int]:
    """Return, per fragment, the rank of its first live row among the live rows of the table."""
    counts = [files.num_live_rows(snapshot, fragment) for fragment in snapshot.fragments]
    starts = accumulate(counts, initial=0)
    return {fragment.id: start for fragment, start in zip(snapshot.fragments, starts, strict=False)}
