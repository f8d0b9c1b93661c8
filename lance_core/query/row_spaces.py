"""How the rows of some fragments are numbered for searches of an index segment, and which live."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.ids import FragmentId
from lance_core.index.ordinals import RowIdSpace, live_id_words
from lance_core.query.row_masks import AddressRuns
from lance_core.query.searchable_rows import addressed_rows
from lance_core.table.row_id_index import row_id_index

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    from numpy.typing import NDArray

    from lance_core.index.ordinals import RowSpace
    from lance_core.table.files import TableFiles
    from lance_core.table.snapshot import Snapshot


def live_rows(
    files: TableFiles, snapshot: Snapshot, fragment_ids: list[FragmentId]
) -> tuple[RowSpace, NDArray[np.uint64], AddressRuns]:
    """Return the rows of some fragments as files of segments name them.

    Parameters
    ----------
    files, snapshot
        Read deletion files and row ids that are not in the cache, and the version.
    fragment_ids
        The fragments, ascending.

    Returns
    -------
    tuple
        What numbers the rows, which of them are live as a dense bitset, and where they lie.
    """
    if not snapshot.has_stable_row_ids:
        rows = addressed_rows(files, snapshot, fragment_ids)
        return rows.space, rows.words, rows.address_runs
    index = row_id_index(files, snapshot).of_fragments(fragment_ids)
    space = row_id_space(snapshot, fragment_ids)
    path = snapshot.manifest.path
    words = live_id_words(space, index.first_ids, index.lengths, path)
    return space, words, AddressRuns.of_ids(index)


def row_id_space(snapshot: Snapshot, fragment_ids: Iterable[int]) -> RowIdSpace:
    """Return what numbers the rows of some fragments by their stable ids.

    Raises
    ------
    UnsupportedFeatureError
        There are too many ids for so few rows.
    """
    fragments = snapshot.fragments_by_id
    num_rows = sum(fragments[FragmentId(each)].physical_rows for each in fragment_ids)
    return RowIdSpace(snapshot.manifest.next_row_id, num_rows)
