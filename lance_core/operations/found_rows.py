"""Rows of a version that an operation deletes or moves, by fragment, and what becomes of these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from pyroaring import BitMap

from lance_core.expr.filter import parse_filter
from lance_core.ids import FragmentId
from lance_core.io.waiting import for_each
from lance_core.row_address import fragment_of, offset_of
from lance_core.scan.projection import OWN_ADDRESS, resolve_projection, with_address
from lance_core.scan.rows import scan_rows
from lance_core.table.deletion_writer import write_deletion_file
from lance_core.table.fragment_upkeep import copied

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from lance_core.proto import table_pb2
    from lance_core.table.files import TableFiles
    from lance_core.table.snapshot import Snapshot

    RowsFound = Mapping[FragmentId, BitMap]
    """Offsets of live rows, by fragment; no fragment without any."""


@dataclass(frozen=True, slots=True, eq=False)
class Deleted:
    """What deletions make of fragments: new deletion files, or nothing where no row is left."""

    updated_fragments: tuple[table_pb2.DataFragment, ...]
    removed_fragment_ids: tuple[int, ...]


def find_rows(files: TableFiles, snapshot: Snapshot, predicate: str) -> RowsFound:
    """Return the live rows for which a predicate is true.

    Only the columns that it names are read.

    Raises
    ------
    InvalidRequestError
        It is no predicate, names a column that there is not, or a literal does not fit its column.
    """
    parsed = parse_filter(predicate, snapshot.schema)
    projection = with_address(resolve_projection(snapshot.schema, parsed.columns))
    found: dict[FragmentId, BitMap] = {}
    for batch in scan_rows(files, snapshot, projection):
        addresses = batch[OWN_ADDRESS].to_numpy()[
            parsed.holds(batch).to_numpy(zero_copy_only=False)
        ]
        add_rows(found, addresses)
    return found


def add_rows(found: dict[FragmentId, BitMap], addresses: NDArray[np.uint64]) -> None:
    """Add rows to those found, by their addresses, shape ``(n,)``, in any order."""
    ordered = np.sort(addresses)
    breaks = np.flatnonzero(np.diff(fragment_of(ordered))) + 1
    for rows in np.split(ordered, breaks) if len(ordered) > 0 else ():
        fragment_id = FragmentId(int(fragment_of(rows[:1])[0]))
        found.setdefault(fragment_id, BitMap()).update(BitMap(offset_of(rows)))


def write_deletions(files: TableFiles, snapshot: Snapshot, rows: RowsFound) -> Deleted:
    """Write a deletion file per fragment of which rows are deleted and some are left."""
    messages = {each.id: each for each in snapshot.manifest.message.fragments}
    store = snapshot.scheduler.store

    def written(fragment_id: FragmentId) -> table_pb2.DataFragment | None:
        fragment = snapshot.fragments_by_id[fragment_id]
        deleted = files.deleted(snapshot, fragment) | rows[fragment_id]
        if len(deleted) == fragment.physical_rows:
            return None
        file = write_deletion_file(store, fragment_id, snapshot.version, deleted)
        changed = copied(messages[fragment_id])
        changed.deletion_file.CopyFrom(file)
        return changed

    fragment_ids = list(rows)
    results = for_each(store, written, fragment_ids)
    return Deleted(
        tuple(each for each in results if each is not None),
        tuple(number for number, each in zip(fragment_ids, results, strict=True) if each is None),
    )
