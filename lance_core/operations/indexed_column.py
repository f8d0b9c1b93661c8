"""The rows of a column that go into an index, with the names that the index has for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyroaring import BitMap

from lance_core.errors import InvalidRequestError
from lance_core.ids import FragmentId
from lance_core.index.scalar.writers.indexed_rows import IndexedRows
from lance_core.operations.index_arguments import checked_fragment_ids
from lance_core.scan.projection import (
    OWN_ADDRESS,
    ProjectedColumn,
    Projection,
    PseudoColumn,
    resolve_projection,
)
from lance_core.scan.rows import scan_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from lance_core.index.scalar.segment import RowNames
    from lance_core.operations.progress import Progress
    from lance_core.table.files import TableFiles
    from lance_core.table.snapshot import Snapshot


def indexed_rows(
    files: TableFiles,
    snapshot: Snapshot,
    column: str,
    names_rows_by: RowNames,
    covered: BitMap,
    progress: Progress,
) -> Iterator[IndexedRows]:
    """Read the live rows of some fragments in their order.

    Parameters
    ----------
    files
        Opened files.
    snapshot
        The version.
    column
        The column, or the part of a struct.
    names_rows_by
        What rows are to be called.
    covered
        The fragments.
    progress
        Called with how many rows were read, and of how many.
    """
    (values,) = resolve_projection(snapshot.schema, [column]).columns
    is_address = names_rows_by == "address"
    name = PseudoColumn.ROW_ADDRESS if is_address else PseudoColumn.ROW_ID
    projection = Projection((values, ProjectedColumn(OWN_ADDRESS, name)))
    fragments = [each for each in snapshot.fragments if each.id in covered]
    done, total = 0, sum(files.num_live_rows(snapshot, each) for each in fragments)
    fragment_ids = frozenset(FragmentId(each) for each in covered)
    progress(0, total)
    for batch in scan_rows(files, snapshot, projection, fragment_ids=fragment_ids):
        found, names = batch.columns
        yield IndexedRows(found, names.to_numpy())
        done += batch.num_rows
        progress(done, total)


def checked_fragments(snapshot: Snapshot, fragment_ids: Iterable[int] | None) -> BitMap:
    """Return the fragments that are meant; None = all.

    Raises ``InvalidRequestError`` if they are no ids, none of those that there are, or there is no
    such fragment.
    """
    present = BitMap(snapshot.fragments_by_id)
    if fragment_ids is None:
        return present
    wanted = checked_fragment_ids(fragment_ids)
    if len(wanted) == 0 and len(present) > 0:
        raise InvalidRequestError("fragment_ids are none; give some, or None for all fragments")
    missing = sorted(wanted - set(present))
    if len(missing) > 0:
        raise InvalidRequestError(f"version {snapshot.version} has no fragments {missing}")
    return BitMap(wanted)
