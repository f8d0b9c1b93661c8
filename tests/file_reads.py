"""What every way of reading a file must give: the rows of the table that was written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tests.same_values import assert_same

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from lance_core.file.reader import LanceFileReader

_NUM_CUTS = 6


def assert_reads_as(reader: LanceFileReader, table: pa.Table) -> None:
    """Fail unless full reads, row ranges and single rows of a file equal those of ``table``."""
    assert reader.num_rows == table.num_rows
    names = table.column_names
    targets = [reader.target(name) for name in names]
    columns = [whole(table[name]) for name in names]
    for found, wanted in zip(reader.read(targets, [(0, reader.num_rows)]), columns, strict=True):
        found.validate(full=True)
        assert_same(found, wanted)
    if table.num_rows == 0:
        return
    rng = np.random.default_rng(table.num_rows)
    cuts = np.sort(rng.integers(0, table.num_rows + 1, 2 * _NUM_CUTS)).reshape(-1, 2)
    ranges = [(int(start), int(stop)) for start, stop in rng.permutation(cuts)]
    for found, wanted in zip(reader.read(targets, ranges), columns, strict=True):
        parts = [wanted.slice(start, stop - start) for start, stop in ranges]
        assert_same(found, pa.concat_arrays(parts))
    rows = rng.integers(0, table.num_rows, 20)
    for found, wanted in zip(reader.take(targets, rows), columns, strict=True):
        assert_same(found, picked(wanted, rows))


def assert_pylance_reads(path: Path, table: pa.Table) -> None:
    """Fail unless pylance's file reader gives the rows of ``table``: all, a range and some rows."""
    from lance.file import LanceFileReader as Oracle  # noqa: PLC0415 - only here is it needed

    oracle = Oracle(str(path))
    assert oracle.num_rows() == table.num_rows
    _assert_same_chunks(oracle.read_all(batch_size=4096).to_table(), table)
    if table.num_rows == 0:
        return
    rng = np.random.default_rng(table.num_rows)
    start, stop = np.sort(rng.integers(0, table.num_rows + 1, 2)).tolist()
    if start < stop:
        found = oracle.read_range(start, stop - start).to_table()
        _assert_same_chunks(found, table.slice(start, stop - start))
    rows = np.unique(rng.integers(0, table.num_rows, 20))
    taken = pa.table([picked(whole(column), rows) for column in table.columns], schema=table.schema)
    _assert_same_chunks(oracle.take_rows(rows.tolist()).to_table(), taken)


def whole(column: pa.ChunkedArray) -> pa.Array:
    """Return a column in one piece."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def picked(column: pa.Array, rows: NDArray[np.int64]) -> pa.Array:
    """Return single rows; Arrow's own take loses values of fixed-size lists in one another."""
    return pa.concat_arrays([column.slice(row, 1) for row in rows.tolist()])


def _assert_same_chunks(found: pa.Table, wanted: pa.Table) -> None:
    """Compare piece by piece: Arrow cannot join dictionaries with null items, as 2.0 has."""
    assert found.num_rows == wanted.num_rows
    for name in wanted.column_names:
        column = whole(wanted[name])
        start = 0
        for piece in found[name].chunks:
            assert_same(piece, column.slice(start, len(piece)))
            start += len(piece)
