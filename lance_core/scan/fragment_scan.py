"""Reading the live rows of one fragment in order, in windows that batches are cut out of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.file.windows import only_rows
from lance_core.scan.assemble import arrays_of
from lance_core.scan.live_rows import LiveRows
from lance_core.scan.projection import PseudoColumn
from lance_core.scan.pseudo_values import FragmentPseudoValues
from lance_core.scan.stored_rows import open_stored_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lance_core.file.windows import WindowSizes
    from lance_core.scan.projection import Projection
    from lance_core.table.files import TableFiles
    from lance_core.table.fragment import Fragment
    from lance_core.table.snapshot import Snapshot


def fragment_windows(
    files: TableFiles,
    snapshot: Snapshot,
    fragment: Fragment,
    projection: Projection,
    sizes: WindowSizes,
    *,
    start: int,
    end: int,
    first_rank: int,
) -> Iterator[Callable[[], list[pa.Array]]]:
    """Yield tasks that read the live rows whose ranks in the fragment are ``[start, end)``.

    Parameters
    ----------
    sizes
        Says how many rows a task reads.
    start, end
        Ranks among the fragment's live rows. Rows outside are not read.
    first_rank
        Rank, among the live rows of the table, of the fragment's first live row.

    Returns
    -------
    Iterator[Callable[[], list[pa.Array]]]
        Each returns one array per column; for a projection without columns nulls, one per row.

    Raises
    ------
    CorruptFileError
        A file is missing, contradicts the manifest, or cannot be decoded.
    UnsupportedFeatureError
        A column or file needs a feature that this release lacks.
    """
    live = LiveRows(fragment.physical_rows, files.deleted(snapshot, fragment))
    stored = open_stored_rows(files, snapshot, fragment, projection.fields)
    pseudo = FragmentPseudoValues(files, snapshot, fragment, projection.pseudo_columns)
    end = min(end, len(live))
    rows_per_live_row = fragment.physical_rows / max(len(live), 1)

    def stored_bytes(first: int, last: int) -> float:
        physical = (int(rank * rows_per_live_row) for rank in (first, last))
        return stored.stored_bytes(*physical)

    def decode(first: int, last: int) -> list[pa.Array]:
        rows = live.select(first, last)
        if len(projection.columns) == 0:
            return only_rows(last - first)
        arrays = stored.read(rows.ranges)
        if rows.kept is not None:
            arrays = [array.take(pa.array(rows.kept)) for array in arrays]
        values = pseudo.at(rows.row_offsets)
        values[PseudoColumn.ROW_OFFSET] = np.arange(
            first_rank + first, first_rank + last, dtype=np.uint64
        )
        return arrays_of(projection, arrays, values)

    for first, last in sizes.windows(start, end, stored_bytes):
        yield sizes.measured(first, last, stored_bytes, decode)
