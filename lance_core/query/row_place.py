"""Where a row lies: in the table, and in an index segment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from lance_core.errors import InvalidRequestError
from lance_core.ids import FragmentId
from lance_core.kernels.masks import clear_held_rows
from lance_core.row_address import ROW_ADDRESS_TOMBSTONE, fragment_of, offset_of
from lance_core.row_set import contains, words_of
from lance_core.scan.projection import ProjectedColumn, Projection
from lance_core.scan.take import take_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lance_core.index.vector.bound import BoundSegment
    from lance_core.query.column_search import ColumnSearch
    from lance_core.query.deadline import Deadline
    from lance_core.query.session import Session
    from lance_core.table.snapshot import Snapshot

_ROW_ID_BOUND = 2**64
_ROWS_AT_ONCE = 1 << 20
"""Rows of partitions held at a time while one of them is looked for."""


@dataclass(frozen=True, slots=True)
class Absent:
    """There is no such row: ``unknown`` to this version, or ``deleted`` from one of its files."""

    reason: Literal["unknown", "deleted"]


@dataclass(frozen=True, slots=True)
class RowPlace:
    """A live row.

    ``address`` has shape ``(1,)``. ``flaw`` says what is wrong with its vector, None if nothing is.
    """

    row_id: int
    address: NDArray[np.uint64]
    fragment_id: FragmentId
    offset: int
    flaw: str | None


def locate(
    session: Session, snapshot: Snapshot, column: ColumnSearch, row_id: int, metric: str
) -> RowPlace | Absent:
    """Find a row by its id, and look at its vector.

    Raises
    ------
    InvalidRequestError
        That is no row id.
    """
    if not 0 <= row_id < _ROW_ID_BOUND:
        raise InvalidRequestError(f"{row_id} is no row id; they are 0 to 2^64 - 1")
    address = column.addresses(np.array([row_id], np.uint64))
    if address[0] == np.uint64(ROW_ADDRESS_TOMBSTONE):
        is_known = snapshot.has_stable_row_ids and row_id < snapshot.manifest.next_row_id
        return Absent("deleted" if is_known else "unknown")
    fragment_id = FragmentId(int(fragment_of(address)[0]))
    offset = int(offset_of(address)[0])
    fragment = snapshot.fragments_by_id.get(fragment_id)
    if fragment is None or offset >= fragment.physical_rows:
        return Absent("unknown")
    if offset in session.files.deleted(snapshot, fragment):
        return Absent("deleted")
    flaw = _flaw(session, snapshot, column, address, metric)
    return RowPlace(row_id, address, fragment_id, offset, flaw)


def holding_partition(bound: BoundSegment, row_id: int, deadline: Deadline) -> int | None:
    """Return the partition of a segment that holds a row, None if none does; loads up to all."""
    space = bound.space
    (ordinal,) = ordinals = space.to_ordinals(np.array([row_id], np.uint64))
    if ordinal == space.size:
        return None
    only_it = words_of(ordinals, space.size + 1)
    piece = np.cumsum(bound.segment.lengths) // _ROWS_AT_ONCE
    for each in np.unique(piece):
        deadline.check("looking for the partition of a row")
        partitions = np.flatnonzero(piece == each)
        held = bound.acquire(partitions)
        for place, partition in enumerate(partitions.tolist()):
            left = only_it.copy()
            clear_held_rows(held.rows[place : place + 1], left)
            if not contains(left, ordinals)[0]:
                return int(partition)
    return None


def _flaw(
    session: Session,
    snapshot: Snapshot,
    column: ColumnSearch,
    address: NDArray[np.uint64],
    metric: str,
) -> str | None:
    field = column.vectors.field
    projection = Projection((ProjectedColumn(field.name, field),))
    rows = take_rows(session.files, snapshot, address, projection)
    vector = rows.column(0).combine_chunks()
    numbers = vector.flatten()
    if column.vectors.type.is_multi:
        numbers = numbers.flatten()
    if vector.null_count > 0 or numbers.null_count > 0:
        return "its vector is null"
    if len(numbers) == 0:
        return "it has no vectors"
    values = numbers.to_numpy(zero_copy_only=False).astype(np.float64)
    if np.isnan(values).any():
        return "its vector has NaN in it"
    if np.isinf(values).any():
        return "its vector has infinity in it"
    if metric == "cosine" and not values.any():
        return "its vector is zero, which has no angle"
    return None
