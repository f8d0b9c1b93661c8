"""What every way of reading a file must give: the rows of the table that was written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tests.same_values import assert_same

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from lance_core.file.reader import LanceFileReader

_NUM_CUTS = 6


def assert_reads_as(reader: LanceFileReader, table: pa.Table) -> None:
    """Fail unless scans, full reads, row ranges and single rows equal those of ``table``.

    Parts of structs, read by themselves, must equal those of the table too.
    """
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
    batch_rows = max(int(rng.choice([3, 100, 1000, 10_000])), table.num_rows // 50)
    scanned = reader.scan(batch_rows=batch_rows, read_ahead=int(rng.integers(0, 3)))
    assert_same_pieces(pa.Table.from_batches(scanned), table)
    parts = [part for name in names for part in _parts(name, whole(table[name]))]
    targets = [reader.target(path) for path, _ in parts]
    for found, (path, wanted) in zip(
        reader.read(targets, [(0, table.num_rows)]), parts, strict=True
    ):
        assert_same(found, wanted, path)


def _parts(path: str, array: pa.Array) -> Iterator[tuple[str, pa.Array]]:
    """Yield the fields of structs, however deep; they are null where their struct is."""
    if pa.types.is_struct(array.type):
        for field, part in zip(array.type, array.flatten(), strict=True):
            below = f"{path}.{field.name}"
            yield below, part
            yield from _parts(below, part)


def whole(column: pa.ChunkedArray) -> pa.Array:
    """Return a column in one piece."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def picked(column: pa.Array, rows: NDArray[np.int64]) -> pa.Array:
    """Return single rows; Arrow's own take loses values of fixed-size lists in one another."""
    return pa.concat_arrays([column.slice(row, 1) for row in rows.tolist()])


def assert_same_pieces(found: pa.Table, wanted: pa.Table) -> None:
    """Compare piece by piece: Arrow cannot join dictionaries with null items, as 2.0 has."""
    assert found.num_rows == wanted.num_rows
    for name in wanted.column_names:
        column = whole(wanted[name])
        start = 0
        for piece in found[name].chunks:
            assert_same(piece, column.slice(start, len(piece)))
            start += len(piece)
