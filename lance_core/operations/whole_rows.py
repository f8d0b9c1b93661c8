"""Rows of a dataset with all that belongs to them, the bytes of blobs too: to be written again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.file.blob_windows import cut_by_blobs
from lance_core.file.windows import WINDOW_BYTES
from lance_core.scan.stored_rows import StoredRows
from lance_core.schema.arrow import to_arrow_field
from lance_core.schema.blobs import described, with_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from lance_core.file.columns import ColumnTarget
    from lance_core.schema.field import LanceField
    from lance_core.table.files import StoredColumns, TableFiles
    from lance_core.table.fragment import Fragment
    from lance_core.table.snapshot import Snapshot

_MAX_ROWS = 1 << 14
_ROWS_PER_RANGE = 16
"""Rows that follow one another, on average, from which on ranges are read."""


class WholeRows:
    """Reads rows of one version, blobs as ``large_binary``.

    Parameters
    ----------
    files
        Opened files.
    snapshot
        The version.
    fields
        Top-level fields of its schema, in the order of the columns.
    keeps_json
        Whether JSON comes as the bytes that files keep, so that nothing of it is lost; otherwise
        as text, for people.
    """

    def __init__(
        self,
        files: TableFiles,
        snapshot: Snapshot,
        fields: Sequence[LanceField],
        *,
        keeps_json: bool = False,
    ) -> None:
        self._files = files
        self._snapshot = snapshot
        fields = [as_stored(field) for field in fields] if keeps_json else fields
        self._fields = tuple(described(field) for field in fields)
        self.schema = pa.schema([to_arrow_field(with_bytes(field)) for field in fields])

    def batches(
        self, fragment: Fragment, row_offsets: NDArray[np.int64]
    ) -> Iterator[pa.RecordBatch]:
        """Yield rows of a fragment in the order given, in batches of some megabytes.

        Parameters
        ----------
        fragment
            One of the version.
        row_offsets
            Shape ``(n,)``: offsets in any order, repeats allowed.

        Raises
        ------
        CorruptFileError
            A file is missing, contradicts the manifest, or cannot be decoded.
        UnsupportedFeatureError
            A column or file needs a feature that this release lacks.
        """
        stored = self._files.columns(self._snapshot, fragment, self._fields)
        columns = [_asking_for_bytes(part) for part in stored]
        rows = StoredRows(self._fields, columns)
        step = _rows_per_batch(rows, fragment)
        starts = range(0, len(row_offsets), step)
        windows = [(start, min(start + step, len(row_offsets))) for start in starts]
        for start, stop in _cut_by_blobs(windows, columns, row_offsets):
            yield self._batch(_read(rows, row_offsets[start:stop]), stop - start)

    def _batch(self, arrays: list[pa.Array], num_rows: int) -> pa.RecordBatch:
        if len(arrays) == 0:
            return pa.RecordBatch.from_struct_array(pa.nulls(num_rows, pa.struct([])))
        columns = [
            # a blob column that no file holds comes as null descriptors
            pa.nulls(num_rows, column.type)
            if field.is_blob and array.type != column.type
            else array
            for field, column, array in zip(self._fields, self.schema, arrays, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def as_stored(field: LanceField) -> LanceField:
    """Return a field with the bytes that files keep in place of JSON, at any depth."""
    children = tuple(map(as_stored, field.children))
    kind = "large_binary" if field.logical_type == "json" else field.logical_type
    return replace(field, logical_type=kind, children=children)


def _read(rows: StoredRows, row_offsets: NDArray[np.int64]) -> list[pa.Array]:
    """Read rows in ranges where most follow one another, which is cheaper than one by one."""
    breaks = np.flatnonzero(np.diff(row_offsets) != 1) + 1
    if len(breaks) * _ROWS_PER_RANGE >= len(row_offsets):
        return rows.take(row_offsets)
    firsts = row_offsets[np.append(0, breaks)].tolist()
    lasts = row_offsets[np.append(breaks, len(row_offsets)) - 1].tolist()
    return rows.read([(first, last + 1) for first, last in zip(firsts, lasts, strict=True)])


def _asking_for_bytes(part: StoredColumns) -> StoredColumns:
    targets = [replace(each, has_bytes=True) if _has_blob(each) else each for each in part.targets]
    return replace(part, targets=tuple(targets))


def _has_blob(target: ColumnTarget) -> bool:
    return any(node.is_blob for node in target.field.walk())


def _rows_per_batch(rows: StoredRows, fragment: Fragment) -> int:
    row_bytes = rows.stored_bytes(0, fragment.physical_rows) / max(fragment.physical_rows, 1)
    return max(1, min(_MAX_ROWS, int(WINDOW_BYTES / max(row_bytes, 1.0))))


def _cut_by_blobs(
    windows: Sequence[tuple[int, int]],
    columns: Sequence[StoredColumns],
    row_offsets: NDArray[np.int64],
) -> Iterator[tuple[int, int]]:
    blobs = [(part.reader, each) for part in columns for each in part.targets if each.has_bytes]

    def read(targets: Sequence[ColumnTarget], start: int, stop: int) -> list[pa.Array]:
        chosen = row_offsets[start:stop]
        return [
            reader.take([target], chosen)[0]
            for (reader, _), target in zip(blobs, targets, strict=True)
        ]

    return cut_by_blobs(windows, [target for _, target in blobs], read)
