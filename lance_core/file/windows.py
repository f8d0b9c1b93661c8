"""How many rows to decode at once, so that memory is bounded and little is decoded twice.

A scan decodes windows of some megabytes and cuts batches out of them: chunks that two batches
share are decoded once, and only those that two windows share twice.
"""

from __future__ import annotations

import time
from math import lcm
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.encodings.arrow_arrays import unified
from lance_core.file.row_bytes import bytes_before, row_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

WINDOW_BYTES = 4 << 20
COPIED_WINDOW_BYTES = 2 << 20
"""Where one thread copies rows, it writes to the memory of the windows before. That of larger ones
the allocator gives back when a scan ends, and getting it again takes as long as unpacking 32 MB."""
_MAX_ROWS = 1 << 19
_FIRST_BYTES = 2 << 20
"""The first window is small: nothing is known of it but what the file says."""
_COLUMN_BYTES = 32 << 10
"""Windows of very many columns are larger, so that each column gives a few chunks at a time."""
_EXPANSION = 2.0
"""Decoded bytes per stored byte, until they have been measured."""
_SHORT_S = 0.004
_WIDEST_OFFSET = 8
"""A batch has one offset more than rows."""
_ALIGNMENT = 4096
"""No chunk of values of a fixed width has more; their number is a power of two."""


class WindowSizes:
    """Chooses windows of ascending rows; told what they turned out to take, it learns.

    Threads may learn at the same time: what the last one learnt stays.

    Parameters
    ----------
    least_row_bytes
        Bytes that a decoded row takes at least.
    batch_rows
        Windows are multiples of it, so that only the last batch is smaller.
    num_columns
        Columns that are decoded; what each costs per window is shared by some kilobytes of rows.
    window_bytes
        Decoded bytes of a window.
    """

    def __init__(
        self,
        least_row_bytes: float,
        batch_rows: int,
        num_columns: int,
        window_bytes: int = WINDOW_BYTES,
    ) -> None:
        self._least_row_bytes = least_row_bytes
        self._batch_rows = batch_rows
        self._expansion = _EXPANSION
        self._limit = max(min(_FIRST_BYTES, window_bytes), num_columns * _COLUMN_BYTES)
        self._full_limit = max(window_bytes, num_columns * _COLUMN_BYTES)
        self._has_many_columns = self._full_limit > window_bytes
        self._row_seconds = 0.0

    def windows(
        self, start: int, stop: int, stored_bytes: Callable[[int, int], float]
    ) -> Iterator[tuple[int, int]]:
        """Cut rows ``[start, stop)``; every window is chosen when it is asked for.

        ``stored_bytes`` estimates the bytes that rows ``[start, stop)`` take in their files.
        """
        while start < stop:
            end = min(stop, start + self._num_rows(start, stop, stored_bytes))
            yield start, end
            start = end

    def measured(
        self,
        start: int,
        stop: int,
        stored_bytes: Callable[[int, int], float],
        decode: Callable[[int, int], list[pa.Array]],
    ) -> Callable[[], list[pa.Array]]:
        """Return a task that decodes a window, and learns from what it took."""

        def task() -> list[pa.Array]:
            began = time.perf_counter()
            arrays = decode(start, stop)
            self._row_seconds = (time.perf_counter() - began) / (stop - start)
            num_bytes = sum(map(row_bytes, arrays))
            expansion = num_bytes / max(stored_bytes(start, stop), 1.0)
            self._expansion = max(expansion, self._expansion / 2)
            self._least_row_bytes = max(self._least_row_bytes, num_bytes / (stop - start) / 4)
            self._limit = self._full_limit
            return arrays

        return task

    def is_short(self, num_rows: int) -> bool:
        """Tell whether so many rows are decoded before threads pay, by what was learnt last.

        They never pay for very many columns: what each does at a time is short, and letting go of
        the GIL for it costs more.
        """
        return self._has_many_columns or num_rows * self._row_seconds < _SHORT_S

    def _num_rows(self, start: int, stop: int, stored_bytes: Callable[[int, int], float]) -> int:
        rows = min(max(_MAX_ROWS, self._batch_rows), stop - start)
        while rows > 1:
            decoded = max(
                stored_bytes(start, start + rows) * self._expansion,
                rows * self._least_row_bytes,
            )
            if decoded <= self._limit:
                break
            rows = max(1, min(rows // 2, int(rows * self._limit / decoded)))
        for unit in (lcm(_ALIGNMENT, self._batch_rows), self._batch_rows):
            if rows > unit:
                return rows - rows % unit
        return rows


def least_row_bytes(kind: pa.DataType) -> float:
    """Return what a row of this type takes at least, in bytes."""
    if pa.types.is_fixed_size_list(kind):
        return float(kind.list_size * least_row_bytes(kind.value_type))
    if pa.types.is_struct(kind):
        return sum(least_row_bytes(field.type) for field in kind)
    try:
        return float(kind.bit_width / 8)
    except ValueError:
        return 4.0


def cut_batches(
    window: pa.RecordBatch, batch_rows: int, batch_bytes: int
) -> Iterator[pa.RecordBatch]:
    """Cut a window into batches; a single row may be larger than ``batch_bytes``.

    Dictionaries, which batches share, do not count.
    """
    if sum(map(row_bytes, window.columns)) <= batch_bytes:
        yield from (
            window.slice(start, batch_rows) for start in range(0, window.num_rows, batch_rows)
        )
        return
    before = bytes_before(window.columns, window.num_rows)
    room = batch_bytes - _WIDEST_OFFSET * window.num_columns
    start = 0
    while start < window.num_rows:
        fitting = int(np.searchsorted(before, before[start] + room, "right")) - 1
        stop = min(max(fitting, start + 1), start + batch_rows)
        yield window.slice(start, stop - start)
        start = stop


class SharedDictionaries:
    """Gives the dictionary arrays of all windows one dictionary that only grows.

    Readers of Arrow streams need no more; a file needs the rest of a dictionary as a delta.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._seen: dict[int, pa.Array] = {
            index: pa.nulls(0, field.type)
            for index, field in enumerate(schema)
            if _holds_dictionary(field.type)
        }

    def window(self, arrays: Sequence[pa.Array]) -> pa.RecordBatch:
        """Return the columns of a window with the dictionaries of all windows so far.

        Without columns one array stands for the rows: see `only_rows`.
        """
        if len(self._schema) == 0:
            return pa.RecordBatch.from_struct_array(arrays[0])
        shared = list(arrays)
        for index, seen in self._seen.items():
            self._seen[index], shared[index] = unified([seen, arrays[index]])
        return pa.RecordBatch.from_arrays(shared, schema=self._schema)


def only_rows(num_rows: int) -> list[pa.Array]:
    """Return what stands for the rows of a window of no columns."""
    return [pa.nulls(num_rows, pa.struct([]))]


def _holds_dictionary(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return True
    return any(_holds_dictionary(kind.field(index).type) for index in range(kind.num_fields))
