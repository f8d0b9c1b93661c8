"""Some columns of one fragment, read for any of its live rows."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.file.windows import least_row_bytes, only_rows
from lance_core.scan.assemble import arrays_of, joined_columns
from lance_core.scan.live_rows import MAX_GAP_ROWS, cover
from lance_core.scan.projection import PseudoColumn
from lance_core.scan.pseudo_values import FragmentPseudoValues
from lance_core.scan.stored_rows import open_stored_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lance_core.scan.live_rows import LiveRows, RowSelection
    from lance_core.scan.projection import Projection
    from lance_core.scan.pseudo_values import PseudoValues
    from lance_core.table.files import TableFiles
    from lance_core.table.fragment import Fragment
    from lance_core.table.snapshot import Snapshot

_DENSE_SHARE = 0.05
_WIDE_ROW_BYTES = 4096
_BYTES_AT_ONCE = 16 << 20
_RANGE_BYTES = 16384
"""Another range costs as much as reading so many bytes that nobody wants (measured)."""


class FragmentColumns:
    """The columns of a projection in one fragment; safe to share between threads.

    Parameters
    ----------
    live
        The live rows of the fragment.
    first_rank
        Rank, among the live rows of the table, of the fragment's first live row.

    Raises
    ------
    CorruptFileError
        A file is missing, contradicts the manifest, or cannot be decoded; when read as well.
    UnsupportedFeatureError
        A column or file needs a feature that this release lacks; when read as well.
    """

    def __init__(
        self,
        files: TableFiles,
        snapshot: Snapshot,
        fragment: Fragment,
        projection: Projection,
        live: LiveRows,
        first_rank: int,
    ) -> None:
        self._projection = projection
        self._has_pseudo = len(projection.pseudo_columns) > 0
        self.live = live
        self._first_rank = first_rank
        self._rows_per_live_row = fragment.physical_rows / max(len(live), 1)
        self._stored = open_stored_rows(files, snapshot, fragment, projection.fields)
        self._pseudo = FragmentPseudoValues(files, snapshot, fragment, projection.pseudo_columns)

    def stored_bytes(self, first: int, last: int) -> float:
        """Estimate the bytes that the live rows of ranks ``[first, last)`` take in the files."""
        physical = (int(rank * self._rows_per_live_row) for rank in (first, last))
        return self._stored.stored_bytes(*physical)

    def read(self, rows: RowSelection) -> list[pa.Array]:
        """Return one array per column; for a projection without columns nulls, one per row."""
        if len(self._projection.columns) == 0:
            return only_rows(len(rows))
        arrays = self._stored.read(rows.ranges)
        if rows.kept is not None:
            kept = pa.array(rows.kept)
            arrays = [array.take(kept) for array in arrays]
        pseudo = self._pseudo_values(rows.row_offsets) if self._has_pseudo else {}
        return arrays_of(self._projection, arrays, pseudo)

    @cached_property
    def row_bytes(self) -> float:
        """What a live row takes in the files, as an average that is at least 1.

        Where all columns are numbers it is what they take decoded, which the files need not tell.
        """
        kinds = self._projection.schema.types
        if all(map(pa.types.is_primitive, kinds)):
            return max(sum(map(least_row_bytes, kinds)), 1.0)
        num_rows = max(len(self.live), 1)
        return max(self.stored_bytes(0, num_rows) / num_rows, 1.0)

    def pick(self, row_offsets: NDArray[np.int64]) -> list[pa.Array]:
        """Return the columns of some live rows, by whichever way of reading costs less.

        Parameters
        ----------
        row_offsets
            Shape ``(n,)``, ascending, at least one.
        """
        among = int(row_offsets[-1] - row_offsets[0]) + 1
        is_dense = len(row_offsets) >= among * _DENSE_SHARE
        if is_dense and len(row_offsets) >= among * self._dense_share:
            return self._read_among(row_offsets, among)
        if len(self._projection.columns) == 0:
            return only_rows(len(row_offsets))
        arrays = self._stored.take(row_offsets)
        return arrays_of(self._projection, arrays, self._pseudo_values(row_offsets))

    def _read_among(self, row_offsets: NDArray[np.int64], among: int) -> list[pa.Array]:
        """Read rows together with those between them, a bounded number at a time."""
        most = max(1, int(_BYTES_AT_ONCE / self.row_bytes))
        if among <= most:
            return self.read(cover(row_offsets, self._gap_rows))
        part = row_offsets // most
        cuts = np.flatnonzero(np.diff(part)) + 1
        read = [self.read(cover(piece, self._gap_rows)) for piece in np.split(row_offsets, cuts)]
        return read[0] if len(read) == 1 else joined_columns(read)

    @property
    def _dense_share(self) -> float:
        """Return from which share of the rows on all are read, and those not wanted left out.

        Measured: picking a narrow row costs as much as reading twenty.
        """
        return max(_DENSE_SHARE, self.row_bytes / (self.row_bytes + _WIDE_ROW_BYTES))

    @property
    def _gap_rows(self) -> int:
        return max(MAX_GAP_ROWS, int(_RANGE_BYTES / self.row_bytes))

    def _pseudo_values(self, row_offsets: NDArray[np.int64]) -> PseudoValues:
        values = self._pseudo.at(row_offsets)
        if PseudoColumn.ROW_OFFSET in self._projection.pseudo_columns:
            ranks = self.live.ranks(row_offsets) + self._first_rank
            values[PseudoColumn.ROW_OFFSET] = ranks.astype(np.uint64)
        return values
