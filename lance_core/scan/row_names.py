"""From what callers name rows by to where they lie."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from lance_core.errors import InvalidRequestError
from lance_core.row_address import ROW_ADDRESS_TOMBSTONE
from lance_core.scan.ranks import addresses_of_ranks
from lance_core.table.row_id_index import row_id_index

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lance_core.table.files import TableFiles
    from lance_core.table.snapshot import Snapshot

RowName = Literal["offset", "row_id", "address"]


def addresses_of(
    files: TableFiles, snapshot: Snapshot, names: NDArray[np.integer], by: RowName
) -> NDArray[np.uint64]:
    """Return where rows lie, shape ``(n,)``.

    Parameters
    ----------
    names
        Shape ``(n,)``, in any order, repeats allowed.
    by
        What names a row: its rank among the live rows, its id or its address. Whether there are
        rows at addresses, and such that are not deleted, is not looked up; nor is it of ids where
        these are addresses.

    Raises
    ------
    InvalidRequestError
        A name is negative, no live row has that rank or stable id, or ``by`` is something else.
    """
    if str(by) not in get_args(RowName):
        known = ", ".join(get_args(RowName))
        raise InvalidRequestError(f"by is {by!r}; use one of: {known}")
    for name in names[names < 0][:1].tolist():
        raise InvalidRequestError(f"row {name} is asked for; names of rows are not negative")
    if by == "offset":
        return addresses_of_ranks(files, snapshot, names.astype(np.int64))
    wanted = names.astype(np.uint64)
    if by == "address" or not snapshot.has_stable_row_ids:
        return wanted
    addresses = row_id_index(files, snapshot).find(wanted)
    for row_id in wanted[addresses == np.uint64(ROW_ADDRESS_TOMBSTONE)][:1].tolist():
        raise InvalidRequestError(f"version {snapshot.version} has no row with the id {row_id}")
    return addresses
