"""Reading the columns of rows that were put in order before, in that order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.file.windows import SharedDictionaries, cut_batches
from lance_core.ids import FragmentId
from lance_core.row_address import OFFSET_BITS, fragment_of, offset_of
from lance_core.scan.assemble import joined_columns
from lance_core.scan.fragment_columns import FragmentColumns
from lance_core.scan.live_rows import LiveRows
from lance_core.scan.rows import first_ranks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from lance_core.scan.projection import Projection
    from lance_core.table.files import TableFiles
    from lance_core.table.snapshot import Snapshot

_STORED_BYTES = 32 << 20
"""What the rows that are taken together fill in the files. As any of them may lie anywhere, each
such group costs up to a scan of the table."""
_MAX_ROWS = 1 << 20


def read_in_order(
    files: TableFiles,
    snapshot: Snapshot,
    projection: Projection,
    row_addresses: NDArray[np.uint64],
    *,
    batch_rows: int = 8192,
    batch_bytes: int = 8 << 20,
) -> Iterator[pa.RecordBatch]:
    """Read rows in the order of their addresses as they are given.

    Parameters
    ----------
    row_addresses
        Shape ``(n,)``: live rows, each at most once.
    batch_rows, batch_bytes
        Largest batch; a single row may have more bytes.

    Raises
    ------
    CorruptFileError
        A file is missing, contradicts the manifest, or cannot be decoded.
    UnsupportedFeatureError
        A column or file needs a feature that this release lacks.
    """
    reader = _OrderedReader(files, snapshot, projection)
    dictionaries = SharedDictionaries(projection.schema)
    done = 0
    while done < len(row_addresses):
        num_rows = reader.num_rows(row_addresses[done])
        arrays = reader.read(row_addresses[done : done + num_rows])
        done += num_rows
        yield from cut_batches(dictionaries.window(arrays), batch_rows, batch_bytes)


class _OrderedReader:
    """Reads the columns of any rows, fragment by fragment."""

    def __init__(self, files: TableFiles, snapshot: Snapshot, projection: Projection) -> None:
        self._row_bytes = 1.0
        self._files = files
        self._snapshot = snapshot
        self._projection = projection
        self._first_ranks = first_ranks(files, snapshot)

    def read(self, row_addresses: NDArray[np.uint64]) -> list[pa.Array]:
        """Return one array per column, rows as they are given."""
        order = np.argsort(row_addresses)
        ascending = row_addresses[order]
        cuts = np.flatnonzero(np.diff(fragment_of(ascending))) + 1
        parts = [self._read_fragment(part) for part in np.split(ascending, cuts)]
        places = np.empty(len(order), np.int64)
        places[order] = np.arange(len(order))
        indices = pa.array(places)
        return [column.take(indices) for column in joined_columns(parts)]

    def num_rows(self, next_address: np.uint64) -> int:
        """Return how many rows to read together, by the largest rows so far and the next one."""
        self._columns(FragmentId(int(next_address) >> OFFSET_BITS))
        return min(max(1, int(_STORED_BYTES / self._row_bytes)), _MAX_ROWS)

    def _read_fragment(self, row_addresses: NDArray[np.uint64]) -> list[pa.Array]:
        columns = self._columns(FragmentId(int(row_addresses[0]) >> OFFSET_BITS))
        return columns.pick(offset_of(row_addresses).astype(np.int64))

    def _columns(self, fragment_id: FragmentId) -> FragmentColumns:
        fragment = self._snapshot.fragments_by_id[fragment_id]
        columns = FragmentColumns(
            self._files,
            self._snapshot,
            fragment,
            self._projection,
            LiveRows(fragment.physical_rows, self._files.deleted(self._snapshot, fragment)),
            self._first_ranks[fragment_id],
        )
        self._row_bytes = max(self._row_bytes, columns.row_bytes)
        return columns
