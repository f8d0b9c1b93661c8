"""Values of the columns that no file shows: addresses, ids, ranks and versions of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.row_address import OFFSET_BITS
from lance_core.scan.projection import PseudoColumn
from lance_core.table.stored_lineage import (
    created_at_versions,
    last_updated_at_versions,
    row_ids_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from numpy.typing import NDArray

    from lance_core.table.files import TableFiles
    from lance_core.table.fragment import Fragment
    from lance_core.table.row_ids import RowIds
    from lance_core.table.row_versions import RowVersions
    from lance_core.table.snapshot import Snapshot

PseudoValues = dict[PseudoColumn, "NDArray[np.uint64]"]
"""Per pseudo column one value per row."""

_SEQUENCES: Mapping[
    PseudoColumn, Callable[[TableFiles, Snapshot, Fragment], RowIds | RowVersions | None]
] = {
    PseudoColumn.ROW_ID: row_ids_of,
    PseudoColumn.ROW_CREATED_AT_VERSION: created_at_versions,
    PseudoColumn.ROW_LAST_UPDATED_AT_VERSION: last_updated_at_versions,
}


class FragmentPseudoValues:
    """Pseudo columns of one fragment, all but ``_rowoffset``, which counts over fragments.

    Parameters
    ----------
    wanted
        Columns to give values of.
    """

    def __init__(
        self,
        files: TableFiles,
        snapshot: Snapshot,
        fragment: Fragment,
        wanted: Collection[PseudoColumn],
    ) -> None:
        self._wanted = frozenset(wanted) - {PseudoColumn.ROW_OFFSET}
        self._first_address = np.uint64(fragment.id << OFFSET_BITS)
        stored = self._wanted & _SEQUENCES.keys() if snapshot.has_stable_row_ids else frozenset()
        self._sequences: dict[PseudoColumn, RowIds | RowVersions | None] = {
            column: _SEQUENCES[column](files, snapshot, fragment) for column in stored
        }

    def at(self, row_offsets: NDArray[np.int64]) -> PseudoValues:
        """Return the values of rows, shape ``(n,)`` each."""
        return {column: self._values(column, row_offsets) for column in self._wanted}

    def _values(self, column: PseudoColumn, row_offsets: NDArray[np.int64]) -> NDArray[np.uint64]:
        sequence = self._sequences.get(column)
        if sequence is not None:
            return sequence.at(row_offsets)
        if column in (PseudoColumn.ROW_ID, PseudoColumn.ROW_ADDRESS):
            return row_offsets.astype(np.uint64) | self._first_address
        return np.ones(len(row_offsets), np.uint64)
