"""Filters that name the rows that may pass, by address, id or rank: nothing has to be scanned."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.expr.tree import And, Column, Compare, InSet, Literal
from lance_core.row_address import ROW_ADDRESS_TOMBSTONE
from lance_core.row_set import bitmaps_by_fragment
from lance_core.scan.projection import PseudoColumn
from lance_core.scan.ranks import addresses_of_ranks
from lance_core.scan.rows import count_rows
from lance_core.table.row_id_index import row_id_index

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray
    from pyroaring import BitMap

    from lance_core.expr.tree import Node
    from lance_core.ids import FragmentId
    from lance_core.table.files import TableFiles
    from lance_core.table.snapshot import Snapshot

_NAMES = {
    each.value: each
    for each in (PseudoColumn.ROW_ID, PseudoColumn.ROW_ADDRESS, PseudoColumn.ROW_OFFSET)
}


def named_rows(
    files: TableFiles, snapshot: Snapshot, test: Node
) -> Mapping[FragmentId, BitMap] | None:
    """Return the live rows that a filter names, None if rows may pass that it does not name.

    Parameters
    ----------
    test
        The filter: ``_rowid IN (...)``, ``_rowaddr = ...``, ``_rowoffset IN (...)``, or one of
        these and more.
    """
    for each in test.children if isinstance(test, And) else (test,):
        found = _names_in(snapshot, each)
        if found is not None:
            addresses = _addresses(files, snapshot, *found)
            return _live(files, snapshot, bitmaps_by_fragment(addresses))
    return None


def _names_in(snapshot: Snapshot, test: Node) -> tuple[PseudoColumn, NDArray[np.uint64]] | None:
    """Return by what a test names rows, and their names."""
    values: pa.Array | None = None
    column: Node | None = None
    if isinstance(test, InSet):
        column, values = test.child, test.values
    elif isinstance(test, Compare) and test.operator == "=" and isinstance(test.right, Literal):
        column, values = test.left, pa.array([test.right.value], test.right.value.type)
    if not isinstance(column, Column) or values is None or column.path not in _NAMES:
        return None
    if column.path in snapshot.schema.names or values.type != pa.uint64():
        return None
    names: NDArray[np.uint64] = values.drop_null().to_numpy()
    return _NAMES[column.path], names


def _addresses(
    files: TableFiles, snapshot: Snapshot, by: PseudoColumn, names: NDArray[np.uint64]
) -> NDArray[np.uint64]:
    """Return where rows lie, without those of which it is known that they are not there."""
    if by is PseudoColumn.ROW_OFFSET:
        there = names[names < count_rows(files, snapshot)]
        return addresses_of_ranks(files, snapshot, there.astype(np.int64))
    if by is PseudoColumn.ROW_ID and snapshot.has_stable_row_ids:
        addresses = row_id_index(files, snapshot).find(names)
        there = addresses != np.uint64(ROW_ADDRESS_TOMBSTONE)
        found: NDArray[np.uint64] = addresses[there]
        return found
    return names


def _live(
    files: TableFiles, snapshot: Snapshot, rows: Mapping[int, BitMap]
) -> dict[FragmentId, BitMap]:
    live: dict[FragmentId, BitMap] = {}
    for fragment in snapshot.fragments:
        own = rows.get(fragment.id)
        if own is not None:
            own.remove_range(fragment.physical_rows, 1 << 32)
            live[fragment.id] = own - files.deleted(snapshot, fragment)
    return live
