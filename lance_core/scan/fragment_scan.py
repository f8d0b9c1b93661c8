"""Reading the live rows of one fragment in order, in windows that batches are cut out of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.scan.fragment_columns import FragmentColumns
from lance_core.scan.live_rows import LiveRows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

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
    columns = FragmentColumns(files, snapshot, fragment, projection, live, first_rank)

    def decode(first: int, last: int) -> list[pa.Array]:
        return columns.read(live.select(first, last))

    for first, last in sizes.windows(start, min(end, len(live)), columns.stored_bytes):
        yield sizes.measured(first, last, columns.stored_bytes, decode)
