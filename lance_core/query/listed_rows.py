"""Rows that are scored exactly, one by one, because a filter leaves no more than these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lance_core.ids import FragmentId
from lance_core.query.row_masks import passing_addresses

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lance_core.query.deadline import Deadline
    from lance_core.query.plan import ListedSearch
    from lance_core.query.row_filter import RowFilter
    from lance_core.table.row_id_index import RowIdIndex


@dataclass(frozen=True, slots=True, eq=False)
class ListedRows:
    """Rows by their addresses, ascending, and their ids; both have shape ``(n,)``."""

    addresses: NDArray[np.uint64]
    row_ids: NDArray[np.uint64]

    @property
    def nbytes(self) -> int:
        """Memory of both."""
        return int(self.addresses.nbytes + self.row_ids.nbytes)


def list_rows(
    row_filter: RowFilter, listed: ListedSearch, row_ids: RowIdIndex | None, deadline: Deadline
) -> ListedRows:
    """List the rows that pass a filter; ``row_ids`` is None where addresses are ids."""
    fragment_ids = [FragmentId(each) for each in listed.fragments]
    addresses = passing_addresses(row_filter.passing(fragment_ids, deadline))
    return ListedRows(addresses, addresses if row_ids is None else row_ids.ids_at(addresses))
