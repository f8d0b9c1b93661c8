"""Rows of one fragment as its data files hold them: deleted ones too, missing columns as null."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from lance_core.errors import CorruptFileError, ObjectNotFoundError
from lance_core.scan.struct_parts import Part, join_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from lance_core.encodings.arrow_arrays import PlainValues
    from lance_core.file.columns import ColumnTarget
    from lance_core.file.reader import LanceFileReader
    from lance_core.file.stored_bytes import StoredBytes
    from lance_core.schema.field import LanceField
    from lance_core.table.files import StoredColumns, TableFiles
    from lance_core.table.fragment import Fragment
    from lance_core.table.snapshot import Snapshot


class StoredRows:
    """Fields of one fragment, side by side whichever files they lie in.

    Parameters
    ----------
    fields
        The fields to read, in the order of the arrays returned.
    columns
        Where they lie; fields that lie nowhere read as null.
    """

    def __init__(self, fields: Sequence[LanceField], columns: Sequence[StoredColumns]) -> None:
        self._fields = fields
        self._columns = columns
        self._lies_whole = len(columns) == 1 and is_whole(columns[0], fields)

    def read(self, ranges: Sequence[tuple[int, int]]) -> list[pa.Array]:
        """Return one array per field with the rows of all ``[start, end)`` ranges in turn."""
        num_rows = sum(end - start for start, end in ranges)
        return self._gather(num_rows, lambda part: part.reader.read(part.targets, ranges))

    def stored_bytes(self, start: int, stop: int) -> float:
        """Estimate the bytes that rows ``[start, stop)`` take in the files; reads no data."""
        return sum(estimate(start, stop) for estimate in self._estimates)

    @cached_property
    def _estimates(self) -> list[StoredBytes]:
        return [part.reader.stored_bytes(part.targets) for part in self._columns]

    def take(self, row_offsets: NDArray[np.int64]) -> list[pa.Array]:
        """Return one array per field with the rows at ``row_offsets``, in any order, repeatable."""
        if self._lies_whole:
            return take_whole(self._columns[0].reader, self._columns[0].targets, row_offsets)
        return self._gather(
            len(row_offsets), lambda part: part.reader.take(part.targets, row_offsets)
        )

    def _gather(
        self, num_rows: int, read: Callable[[StoredColumns], Sequence[pa.Array]]
    ) -> list[pa.Array]:
        if self._lies_whole:
            return list(_read_stored(self._columns[0], read))
        parts: list[list[Part]] = [[] for _ in self._fields]
        for stored in self._columns:
            arrays = _read_stored(stored, read)
            for position, target, array in zip(
                stored.positions, stored.targets, arrays, strict=True
            ):
                parts[position].append(Part(target.field, array))
        return [
            join_parts(field, held, num_rows)
            for field, held in zip(self._fields, parts, strict=True)
        ]


def take_whole(
    reader: LanceFileReader, targets: Sequence[ColumnTarget], row_offsets: NDArray[np.int64]
) -> list[pa.Array]:
    """Return one array per target of one file with the rows at ``row_offsets``."""
    try:
        return reader.take(targets, row_offsets)
    except ObjectNotFoundError as error:
        raise _vanished(reader) from error


def take_values(
    reader: LanceFileReader, targets: Sequence[ColumnTarget], row_offsets: NDArray[np.int64]
) -> list[pa.Array | PlainValues]:
    """Return the same, with no array made where the bytes of the values are all there is."""
    try:
        plain = reader.take_plain(targets, row_offsets)
        others = [each for each, values in zip(targets, plain, strict=True) if values is None]
        arrays = iter(reader.take(others, row_offsets) if others else ())
    except ObjectNotFoundError as error:
        raise _vanished(reader) from error
    return [next(arrays) if values is None else values for values in plain]


def is_whole(stored: StoredColumns, fields: Sequence[LanceField]) -> bool:
    """Tell whether one file holds all fields with all their children: the usual case."""
    targets = stored.targets
    return len(targets) == len(fields) and all(
        target.field is field for target, field in zip(targets, fields, strict=True)
    )


def _read_stored(
    stored: StoredColumns, read: Callable[[StoredColumns], Sequence[pa.Array]]
) -> Sequence[pa.Array]:
    try:
        return read(stored)
    except ObjectNotFoundError as error:
        raise _vanished(stored.reader) from error


def _vanished(reader: LanceFileReader) -> CorruptFileError:
    """Return what to raise when a file is not there any more that was opened before."""
    return CorruptFileError(reader.path, "vanished while it was read")


def open_stored_rows(
    files: TableFiles, snapshot: Snapshot, fragment: Fragment, fields: Sequence[LanceField]
) -> StoredRows:
    """Open the files of a fragment that hold ``fields``; errors as ``TableFiles.columns``."""
    return StoredRows(fields, files.columns(snapshot, fragment, fields))
