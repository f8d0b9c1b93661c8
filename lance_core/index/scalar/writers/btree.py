"""Writing a BTREE: all rows sorted by value, and a lookup of its pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lance_core.index.scalar.writers.indexed_rows import IndexedRows
    from lance_core.index.segment_files import SegmentFiles

_DATA_FILE = "page_data.lance"
_LOOKUP_FILE = "page_lookup.lance"


def write_btree(
    rows: Iterable[IndexedRows], kind: pa.DataType, files: SegmentFiles, page_rows: int
) -> None:
    """Write the files of a BTREE.

    Parameters
    ----------
    rows
        As `sort_rows` yields them.
    kind
        Type of the values.
    files
        Takes the files.
    page_rows
        Rows of each page but the last.

    Notes
    -----
    Scalar index page, section 2: a page is found by its number alone. Bounds are the first and the
    last value of a page, null where it begins or ends with nulls.
    """
    schema = pa.schema([("values", kind), pa.field("ids", pa.uint64(), nullable=False)])
    pages = _Pages(kind, page_rows)
    with files.create(_DATA_FILE, schema) as writer:
        for piece in rows:
            pages.add(piece)
            columns = [piece.values, pa.array(piece.names)]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
    lookup = pages.lookup()
    with files.create(_LOOKUP_FILE, lookup.schema) as writer:
        writer.write_batch(lookup)
        writer.add_schema_metadata("batch_size", str(page_rows))
        writer.add_schema_metadata("range_partitioned", "false")


class _Pages:
    """First and last value of each page, gathered as rows pass."""

    def __init__(self, kind: pa.DataType, page_rows: int) -> None:
        self._kind = kind
        self._page_rows = page_rows
        self._num_rows = 0
        self._num_nulls = 0
        self._firsts: list[pa.Array] = []
        self._lasts: list[pa.Array] = []
        self._last = pa.array([], kind)
        """The value of the last row, if the page of it is not complete."""

    def add(self, piece: IndexedRows) -> None:
        size, begun = self._page_rows, self._num_rows % self._page_rows
        firsts = np.arange(-begun % size, len(piece), size)
        lasts = np.arange(size - begun - 1, len(piece), size)
        self._firsts.append(piece.values.take(pa.array(firsts)))
        self._lasts.append(piece.values.take(pa.array(lasts)))
        self._num_rows += len(piece)
        self._num_nulls += piece.values.null_count
        is_complete = self._num_rows % size == 0
        self._last = piece.values.slice(len(piece), 0) if is_complete else piece.values[-1:]

    def lookup(self) -> pa.RecordBatch:
        """Return a row for each page."""
        none = pa.array([], self._kind)
        firsts = pa.concat_arrays([none, *self._firsts])
        lasts = pa.concat_arrays([none, *self._lasts, self._last])
        numbers = np.arange(len(firsts))
        starts = numbers * self._page_rows
        ends = np.minimum(starts + self._page_rows, self._num_rows)
        nulls = np.clip(self._num_nulls, starts, ends) - starts
        schema = pa.schema(
            [
                ("min", self._kind),
                ("max", self._kind),
                pa.field("null_count", pa.uint32(), nullable=False),
                pa.field("page_idx", pa.uint32(), nullable=False),
            ]
        )
        columns = [firsts, lasts, *(pa.array(each, pa.uint32()) for each in (nulls, numbers))]
        return pa.RecordBatch.from_arrays(columns, schema=schema)
