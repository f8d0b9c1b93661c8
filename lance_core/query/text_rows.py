"""Reading the texts of rows that no index covers, some at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.errors import TypeMismatchError
from lance_core.ids import FragmentId
from lance_core.row_address import fragment_of, offset_of
from lance_core.row_set import bitmap_offsets, contains
from lance_core.scan.chosen_rows import MaskedRows
from lance_core.scan.fragment_columns import FragmentColumns
from lance_core.scan.live_rows import LiveRows
from lance_core.scan.projection import (
    OWN_ADDRESS,
    ProjectedColumn,
    Projection,
    PseudoColumn,
    resolve_projection,
)
from lance_core.scan.rows import scan_rows
from lance_core.table.row_id_index import row_id_index

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from numpy.typing import NDArray
    from pyroaring import BitMap

    from lance_core.query.deadline import Deadline
    from lance_core.query.row_filter import RowFilter
    from lance_core.table.files import TableFiles
    from lance_core.table.snapshot import Snapshot

_ROWS_AT_ONCE = 1 << 14


def text_projection(snapshot: Snapshot, column: str) -> Projection:
    """Resolve a column of texts, or of lists of texts, with the ids of rows behind it.

    Raises
    ------
    UnknownColumnError
        The table has no such column.
    TypeMismatchError
        It holds something else.
    """
    (values,) = resolve_projection(snapshot.schema, [column]).columns
    held = values.arrow_field.type
    if not _is_text(held):
        raise TypeMismatchError(
            f'column "{column}" has type {held}; words are looked for in texts, lists of texts and'
            " JSON"
        )
    return Projection((values, ProjectedColumn(OWN_ADDRESS, PseudoColumn.ROW_ID)))


def texts_of_rows(
    files: TableFiles,
    snapshot: Snapshot,
    projection: Projection,
    fragment_ids: Collection[FragmentId],
    row_filter: RowFilter | None,
    deadline: Deadline,
) -> Iterator[tuple[pa.Array, NDArray[np.uint64]]]:
    """Yield the texts of live rows of some fragments that pass a filter, and the ids of the rows.

    Parameters
    ----------
    files, snapshot
        Opened files, and the version.
    projection
        As `text_projection` gives it.
    fragment_ids
        The fragments.
    row_filter
        The filter; None = all rows pass. Of rows that do not no texts are read.
    deadline
        Looked at between reads.
    """
    if row_filter is None:
        for batch in scan_rows(
            files, snapshot, projection, fragment_ids=fragment_ids, batch_rows=_ROWS_AT_ONCE
        ):
            deadline.check("searching rows without index")
            yield batch.column(0), batch.column(1).to_numpy()
        return
    passing = row_filter.passing(fragment_ids, deadline)
    for fragment in snapshot.fragments:
        mask = passing.get(fragment.id)
        if mask is None or mask.num_rows == 0:
            continue
        live = LiveRows(fragment.physical_rows, files.deleted(snapshot, fragment))
        columns = FragmentColumns(files, snapshot, fragment, projection, live, 0)
        rows = MaskedRows(mask.words, mask.num_rows)
        for start in range(0, mask.num_rows, _ROWS_AT_ONCE):
            deadline.check("searching rows without index")
            stop = min(start + _ROWS_AT_ONCE, mask.num_rows)
            texts, row_ids = columns.pick(rows.row_offsets(start, stop))
            yield texts, row_ids.to_numpy()


def passing_rows(
    files: TableFiles,
    snapshot: Snapshot,
    row_ids: NDArray[np.uint64],
    fragment_ids: BitMap,
    row_filter: RowFilter | None,
    deadline: Deadline,
) -> NDArray[np.bool_]:
    """Tell which of some live rows lie in some fragments and pass a filter, shape ``(n,)``."""
    addresses = addresses_of_ids(files, snapshot, row_ids)
    lie_in = fragment_of(addresses)
    passes = np.isin(lie_in, bitmap_offsets(fragment_ids))
    if row_filter is None:
        return passes
    found = [FragmentId(each) for each in np.unique(lie_in[passes]).tolist()]
    for fragment_id, mask in row_filter.passing(found, deadline).items():
        own = np.flatnonzero(lie_in == fragment_id)
        passes[own] &= contains(mask.words, offset_of(addresses[own]))
    return passes


def addresses_of_ids(
    files: TableFiles, snapshot: Snapshot, row_ids: NDArray[np.uint64]
) -> NDArray[np.uint64]:
    """Return where live rows lie, shape ``(n,)``."""
    if not snapshot.has_stable_row_ids:
        return row_ids
    return row_id_index(files, snapshot).find(row_ids)


def _is_text(held: pa.DataType) -> bool:
    if isinstance(held, pa.JsonType):
        return True
    if pa.types.is_list(held) or pa.types.is_large_list(held):
        held = held.value_type
    return any(
        is_kind(held)
        for is_kind in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    )
