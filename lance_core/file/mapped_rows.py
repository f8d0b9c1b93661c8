"""Rows of a fixed width, used where they lie in a mapped file instead of being read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.memory import address_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lance_core.file.fixed_width import FixedWidthPage
    from lance_core.file.reader import LanceFileReader
    from lance_core.ids import ColumnIndex
    from lance_core.io.store import ObjectStore


@dataclass(frozen=True, slots=True, eq=False)
class MappedRows:
    """Raw pages of a mapped file.

    Parameters
    ----------
    mapping
        The whole file; as long as it is referenced the addresses are good.
    first_rows
        Shape ``(n + 1,)``: first row of each page, then the number of rows.
    addresses
        Shape ``(n,)``: where each page lies.
    row_bytes
        Bytes of one row.
    """

    mapping: memoryview
    first_rows: NDArray[np.int64]
    addresses: NDArray[np.int64]
    row_bytes: int

    @property
    def num_rows(self) -> NDArray[np.int64]:
        """Rows of each page, shape ``(n,)``."""
        return np.diff(self.first_rows)

    def address(self, start: int, end: int) -> int | None:
        """Return where rows ``[start, end)`` lie, None when they are not in one page."""
        page = int(np.searchsorted(self.first_rows, start, side="right")) - 1
        if page >= len(self.addresses) or end > self.first_rows[page + 1]:
            return None
        return int(self.addresses[page]) + (start - int(self.first_rows[page])) * self.row_bytes


def map_rows(
    reader: LanceFileReader,
    column: ColumnIndex,
    store: ObjectStore,
    *,
    row_bytes: int,
    alignment: int,
) -> MappedRows | None:
    """Map the rows of a column.

    Parameters
    ----------
    row_bytes, alignment
        What whoever reads the memory takes for granted.

    Returns
    -------
    MappedRows | None
        None where the store maps nothing, or where not all rows of the file lie raw, of that width
        and alignment, inside it.
    """
    mapping = store.map(reader.path)
    if mapping is None:
        return None
    pages = reader.fixed_width_pages(column)
    if pages is None or len(pages) == 0:
        return None
    if not all(_lies_ready(page, row_bytes, alignment, len(mapping)) for page in pages):
        return None
    first_rows = np.array([*(page.first_row for page in pages), reader.num_rows], np.int64)
    if not np.array_equal(np.diff(first_rows), [page.num_rows for page in pages]):
        return None
    base = address_of(np.frombuffer(mapping, np.uint8))
    addresses = np.array([base + page.offset for page in pages], np.int64)
    return MappedRows(mapping, first_rows, addresses, row_bytes)


def _lies_ready(page: FixedWidthPage, row_bytes: int, alignment: int, file_size: int) -> bool:
    """Tell whether a page holds whole rows, aligned and inside the file."""
    return (
        page.bits_per_value == 8 * row_bytes
        and page.offset % alignment == 0
        and 0 <= page.offset <= file_size - page.num_rows * row_bytes
    )
