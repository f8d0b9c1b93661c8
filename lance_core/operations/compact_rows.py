"""Live rows of fragments as files store them, to be stored again: blobs as bytes, JSON as JSONB."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_core.encodings.rows import runs_of
from lance_core.file.blob_windows import cut_by_blobs
from lance_core.file.columns import ColumnTarget
from lance_core.file.file_scan import NUM_THREADS
from lance_core.file.windows import WindowSizes, least_row_bytes
from lance_core.io.ahead import ahead
from lance_core.operations.given_rows import declared_blobs
from lance_core.operations.whole_rows import as_stored
from lance_core.scan.live_rows import LiveRows
from lance_core.scan.stored_rows import StoredRows
from lance_core.schema.arrow import arrow_type, to_arrow_field
from lance_core.schema.blobs import described, with_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from lance_core.schema.field import LanceField
    from lance_core.table.files import TableFiles
    from lance_core.table.fragment import Fragment
    from lance_core.table.snapshot import Snapshot

_READ_AHEAD = 2
"""Windows that are decoded or under way beside the one in use."""


def live_batches(
    files: TableFiles, snapshot: Snapshot, fragments: Sequence[Fragment]
) -> Iterator[pa.RecordBatch]:
    """Yield the live rows of fragments, to be written to files of the same table.

    Parameters
    ----------
    files
        Opened files.
    snapshot
        The version.
    fragments
        Some of its fragments, in the order of the rows.

    Returns
    -------
    Iterator[pyarrow.RecordBatch]
        Some megabytes of rows with all columns of the table; a single row may be larger.

    Raises
    ------
    CorruptFileError
        A file is missing, contradicts the manifest, or cannot be decoded.
    UnsupportedFeatureError
        A column or file needs a feature that this release lacks.
    """
    table = _Table(snapshot.schema.fields)
    sizes = WindowSizes(table.least_row_bytes, 1, len(table.read))
    tasks = (
        task for fragment in fragments for task in _windows(files, snapshot, fragment, table, sizes)
    )
    windows = ahead(tasks, num_threads=NUM_THREADS, depth=lambda: _READ_AHEAD)
    return map(table.batch, windows)


class _Table:
    """The columns of a table: as they are read, and as they are written again."""

    def __init__(self, fields: Sequence[LanceField]) -> None:
        self._fields = [as_stored(field) for field in fields]
        self._schema = pa.schema([to_arrow_field(field) for field in self._fields])
        self.read = [described(field) for field in self._fields]
        self.blobs = [field for field in self.read if field.is_blob]
        kinds = [arrow_type(with_bytes(field)) for field in self._fields]
        self.least_row_bytes = sum(map(least_row_bytes, kinds))

    def batch(self, arrays: Sequence[pa.Array]) -> pa.RecordBatch:
        """Put columns together, blobs in the form in which the table declares them."""
        columns = [
            _declared(array, kind) if field.is_blob else array
            for array, field, kind in zip(arrays, self._fields, self._schema.types, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)


def _windows(
    files: TableFiles, snapshot: Snapshot, fragment: Fragment, table: _Table, sizes: WindowSizes
) -> Iterator[Callable[[], list[pa.Array]]]:
    """Yield tasks that read some live rows each."""
    live = LiveRows(fragment.physical_rows, files.deleted(snapshot, fragment))
    stored = _open(files, snapshot, fragment, table)
    descriptors = StoredRows(table.blobs, files.columns(snapshot, fragment, table.blobs))
    targets = [ColumnTarget(field, {}, has_bytes=True) for field in table.blobs]
    rows_per_live_row = fragment.physical_rows / max(len(live), 1)

    def stored_bytes(first: int, last: int) -> float:
        physical = (int(rank * rows_per_live_row) for rank in (first, last))
        return stored.stored_bytes(*physical)

    def read_descriptors(_: Sequence[ColumnTarget], first: int, last: int) -> list[pa.Array]:
        return _read(descriptors, live, first, last)

    def decode(first: int, last: int) -> list[pa.Array]:
        if len(table.blobs) == 0:
            return _read(stored, live, first, last)
        # blobs of deleted rows in between would be read for nothing, and are not counted as bytes
        return stored.read(runs_of(live.select(first, last).row_offsets))

    windows = sizes.windows(0, len(live), stored_bytes)
    for first, last in cut_by_blobs(windows, targets, read_descriptors):
        yield sizes.measured(first, last, stored_bytes, decode)


def _read(stored: StoredRows, live: LiveRows, first: int, last: int) -> list[pa.Array]:
    """Read the live rows of ranks ``[first, last)``."""
    rows = live.select(first, last)
    arrays = stored.read(rows.ranges)
    if rows.kept is None:
        return arrays
    kept = pa.array(rows.kept)
    return [array.take(kept) for array in arrays]


def _open(files: TableFiles, snapshot: Snapshot, fragment: Fragment, table: _Table) -> StoredRows:
    """Open the files of a fragment, asking for the bytes of blobs."""
    columns = [
        replace(
            held,
            targets=tuple(
                replace(target, has_bytes=target.field.is_blob) for target in held.targets
            ),
        )
        for held in files.columns(snapshot, fragment, table.read)
    ]
    return StoredRows(table.read, columns)


def _declared(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return bytes of blobs as a table declares them: plain, or with ways to say where they are."""
    if values.type != pa.large_binary():  # descriptors, all null: no file holds the column
        values = pa.nulls(len(values), pa.large_binary())
    return declared_blobs(values, kind)
