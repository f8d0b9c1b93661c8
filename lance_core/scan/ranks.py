"""From ranks, as users count the rows of a table, to row addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.errors import InvalidRequestError
from lance_core.row_address import pack_row_addresses
from lance_core.scan.live_rows import LiveRows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.table.files import TableFiles
    from lance_core.table.fragment import Fragment
    from lance_core.table.snapshot import Snapshot


def addresses_of_ranks(
    files: TableFiles,
    snapshot: Snapshot,
    ranks: NDArray[np.int64],
    fragments: Sequence[Fragment] | None = None,
) -> NDArray[np.uint64]:
    """Return the address of the live row of each rank; the inverse of ``take.live_ranks``.

    Reads the deletion files of the fragments that the rows lie in.

    Parameters
    ----------
    ranks
        Shape ``(n,)``: places among the live rows of the table in scan order, any order, repeats
        allowed.
    fragments
        The only ones whose rows are counted, in the order of the table; None = all.

    Raises
    ------
    InvalidRequestError
        A rank is negative, or there are fewer live rows.
    """
    fragments = snapshot.fragments if fragments is None else fragments
    counts = [files.num_live_rows(snapshot, fragment) for fragment in fragments]
    ends = np.cumsum(counts, dtype=np.int64)
    num_rows = int(ends[-1]) if len(ends) > 0 else 0
    outside = ranks[(ranks < 0) | (ranks >= num_rows)]
    if len(outside) > 0:
        raise InvalidRequestError(f"row {outside[0]} is asked for, the table has {num_rows}")
    owner = np.searchsorted(ends, ranks, side="right")
    addresses = np.empty(len(ranks), np.uint64)
    for place in np.unique(owner).tolist():
        fragment = fragments[place]
        chosen = owner == place
        live = LiveRows(fragment.physical_rows, files.deleted(snapshot, fragment))
        offsets = live.offsets(ranks[chosen] - (ends[place] - counts[place])).astype(np.uint32)
        fragment_ids = np.full(len(offsets), fragment.id, np.uint32)
        addresses[chosen] = pack_row_addresses(fragment_ids, offsets)
    return addresses
