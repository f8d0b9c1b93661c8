"""Whole vectors of a local file, used where they lie instead of being read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.kernels.memory import address_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lance_core.file.fixed_width import FixedWidthPage
    from lance_core.index.vector.segment import PartitionStorage
    from lance_core.io.store import ObjectStore

_FLOAT_BYTES = 4


@dataclass(frozen=True, slots=True, eq=False)
class MappedVectors:
    """Raw float32 pages of a mapped file.

    Parameters
    ----------
    mapping
        The whole file; as long as it is referenced the addresses are good.
    first_rows
        Shape ``(n + 1,)``: first row of each page, then the number of rows.
    addresses
        Shape ``(n,)``: where each page lies.
    row_bytes
        Bytes of one vector.
    """

    mapping: memoryview
    first_rows: NDArray[np.int64]
    addresses: NDArray[np.int64]
    row_bytes: int

    def address(self, start: int, end: int) -> int | None:
        """Return where rows ``[start, end)`` lie, None when they are not in one page."""
        page = int(np.searchsorted(self.first_rows, start, side="right")) - 1
        if page >= len(self.addresses) or end > self.first_rows[page + 1]:
            return None
        return int(self.addresses[page]) + (start - int(self.first_rows[page])) * self.row_bytes


def map_vectors(
    storage: PartitionStorage, dimension: int, store: ObjectStore
) -> MappedVectors | None:
    """Map the vectors of a segment, None where they are not raw aligned float32 in a local file."""
    if storage.value_type != pa.float32():
        return None
    mapping = store.map(storage.reader.path)
    pages = storage.reader.fixed_width_pages(storage.payload.columns[storage.payload.field.id])
    if mapping is None or pages is None or len(pages) == 0:
        return None
    row_bytes = dimension * _FLOAT_BYTES
    if not all(_lies_ready(page, row_bytes, len(mapping)) for page in pages):
        return None
    first_rows = np.array([*(page.first_row for page in pages), storage.reader.num_rows], np.int64)
    if not np.array_equal(np.diff(first_rows), [page.num_rows for page in pages]):
        return None
    base = address_of(np.frombuffer(mapping, np.uint8))
    addresses = np.array([base + page.offset for page in pages], np.int64)
    return MappedVectors(mapping, first_rows, addresses, row_bytes)


def _lies_ready(page: FixedWidthPage, row_bytes: int, file_size: int) -> bool:
    """Tell whether a page holds whole rows, aligned for floats and inside the file."""
    return (
        page.bits_per_value == 8 * row_bytes
        and page.offset % _FLOAT_BYTES == 0
        and 0 <= page.offset <= file_size - page.num_rows * row_bytes
    )
