"""What every way of reading a file must give: the rows of the table that was written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tests.same_values import assert_same

if TYPE_CHECKING:
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


def whole(column: pa.ChunkedArray) -> pa.Array:
    """Return a column in one piece."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def picked(column: pa.Array, rows: NDArray[np.int64]) -> pa.Array:
    """Return single rows; Arrow's own take loses values of fixed-size lists in one another."""
    return pa.concat_arrays([column.slice(row, 1) for row in rows.tolist()])
