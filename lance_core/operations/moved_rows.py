"""Rows that leave their fragments for new ones, and what they take along."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from lance_core.operations.append import file_version_of
from lance_core.operations.given_rows import fitted
from lance_core.operations.whole_rows import WholeRows
from lance_core.operations.write_fragments import FragmentOptions, write_fragments
from lance_core.row_set import bitmap_offsets
from lance_core.table.row_ids import encode_row_ids
from lance_core.table.stored_lineage import row_ids_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from lance_core.operations.found_rows import RowsFound
    from lance_core.proto import table_pb2
    from lance_core.schema.field import LanceField
    from lance_core.table.files import TableFiles
    from lance_core.table.snapshot import Snapshot


def read_whole(
    files: TableFiles,
    snapshot: Snapshot,
    rows: RowsFound,
    fields: Sequence[LanceField],
    *,
    keeps_json: bool = True,
) -> Iterator[pa.RecordBatch]:
    """Yield columns of rows, by fragment, then by offset; as `WholeRows` gives them."""
    reader = WholeRows(files, snapshot, fields, keeps_json=keeps_json)
    for fragment_id, offsets in rows.items():
        fragment = snapshot.fragments_by_id[fragment_id]
        yield from reader.batches(fragment, bitmap_offsets(offsets).astype(np.int64))


def write_moved(
    files: TableFiles, snapshot: Snapshot, rows: RowsFound, batches: Iterable[pa.RecordBatch]
) -> list[table_pb2.DataFragment]:
    """Write rows to new fragments, where those that were moved keep their stable ids.

    Parameters
    ----------
    files
        Opened files.
    snapshot
        The version that the rows are moved from.
    rows
        Where they are.
    batches
        All columns, rows in the order of `read_whole`; new rows may follow.
    """
    schema = snapshot.schema
    options = FragmentOptions(file_version=file_version_of(snapshot))
    store = snapshot.scheduler.store
    fragments = write_fragments(store, schema, fitted(batches, schema), options)
    if snapshot.has_stable_row_ids:
        row_ids = _row_ids(files, snapshot, rows)
        ends = list(accumulate(fragment.physical_rows for fragment in fragments))
        for fragment, end in zip(fragments, ends, strict=True):
            own = row_ids[end - fragment.physical_rows : end]
            if len(own) > 0:
                fragment.inline_row_ids = encode_row_ids(own)
    return fragments


def _row_ids(files: TableFiles, snapshot: Snapshot, rows: RowsFound) -> NDArray[np.uint64]:
    found = [np.empty(0, np.uint64)]
    for fragment_id, offsets in rows.items():
        stored = row_ids_of(files, snapshot, snapshot.fragments_by_id[fragment_id])
        found.append(stored.at(bitmap_offsets(offsets).astype(np.int64)))
    return np.concatenate(found)
