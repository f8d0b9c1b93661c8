"""The chunks of a column whose rows are found by arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lance_core.encodings.chunk_table import CHUNK_HEADER_BYTES
from lance_core.encodings.page import DirectChunks, RawRows
from lance_core.kernels.bitpacking import BLOCK_ROWS
from lance_core.kernels.direct_rows import CONSTANT, PACKED, RAW

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.encodings.chunk_table import ChunkTable
    from lance_core.encodings.page import DirectPage, Page
    from lance_core.encodings.place import Place

NOT_LOADED = 255
"""Kind of the one chunk that stands for a page whose chunk table has not been read."""

CHUNK_BUFFER = 1


@dataclass(frozen=True, slots=True, eq=False)
class PageChunks:
    """The chunks of one page; ``first_rows`` count from the start of the column."""

    first_rows: NDArray[np.int64]
    offsets: NDArray[np.int64]
    sizes: NDArray[np.int64]
    kind: int


def without_table(page: Page, direct: DirectPage, constant: int) -> PageChunks:
    """Describe a page as one chunk; ``constant`` is the number of its constant, if it is one."""
    offset, size, kind = constant, 0, CONSTANT
    if isinstance(direct, RawRows):
        offset, size, kind = direct.offset, direct.row_bytes * page.num_rows, RAW
    elif isinstance(direct, DirectChunks):
        kind = NOT_LOADED
    return PageChunks(_array(page.first_row), _array(offset), _array(size), kind)


def with_table(page: Page, direct: DirectChunks, table: ChunkTable, place: Place) -> PageChunks:
    """Describe a mini-block page by its chunk table.

    Raises
    ------
    CorruptFileError
        A chunk is too short for its rows.
    """
    counts = np.diff(table.first_values)
    sizes = np.diff(table.first_bytes) - CHUNK_HEADER_BYTES
    room = np.full(len(sizes), BLOCK_ROWS) if direct.is_packed else sizes // direct.row_bytes
    if bool((counts > room).any()):
        raise place.corrupt("a chunk is too short for its rows")
    return PageChunks(
        table.first_values[:-1] + page.first_row,
        table.first_bytes[:-1] + page.buffers[CHUNK_BUFFER][0] + CHUNK_HEADER_BYTES,
        sizes,
        PACKED if direct.is_packed else RAW,
    )


@dataclass(frozen=True, slots=True, eq=False)
class DirectTable:
    """The chunks of all pages, as ``kernels.direct_rows`` takes them, and the page of each."""

    first_rows: NDArray[np.int64]
    offsets: NDArray[np.int64]
    sizes: NDArray[np.int64]
    kinds: NDArray[np.uint8]
    pages: NDArray[np.int64]
    is_complete: bool

    @classmethod
    def of(cls, pages: Sequence[PageChunks], num_rows: int) -> DirectTable:
        """Join the chunks of all pages."""
        counts = [len(page.offsets) for page in pages]
        kinds = np.array([page.kind for page in pages], np.uint8)
        return cls(
            np.concatenate([*(page.first_rows for page in pages), _array(num_rows)]),
            np.concatenate([*(page.offsets for page in pages), _NONE]),
            np.concatenate([*(page.sizes for page in pages), _NONE]),
            np.repeat(kinds, counts),
            np.repeat(np.arange(len(pages)), counts),
            is_complete=not bool((kinds == NOT_LOADED).any()),
        )

    @property
    def nbytes(self) -> int:
        """Memory of the table."""
        arrays = (self.first_rows, self.offsets, self.sizes, self.kinds, self.pages)
        return sum(array.nbytes for array in arrays)

    def chunks_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the chunk of each row; the rows are inside the column."""
        return np.searchsorted(self.first_rows, rows, side="right") - 1

    def byte_of(
        self, rows: NDArray[np.int64], chunks: NDArray[np.int64], row_bytes: int
    ) -> NDArray[np.int64]:
        """Return where the bytes needed for rows begin; constants need none and begin at 0."""
        kinds = self.kinds[chunks]
        skipped = np.where(kinds == RAW, (rows - self.first_rows[chunks]) * row_bytes, 0)
        return np.where(kinds == CONSTANT, 0, self.offsets[chunks] + skipped)

    def end_byte_of(
        self, last_rows: NDArray[np.int64], chunks: NDArray[np.int64], row_bytes: int
    ) -> NDArray[np.int64]:
        """Return where the bytes needed for rows end; constants need none and end at 0."""
        used = (last_rows - self.first_rows[chunks] + 1) * row_bytes
        size = np.where(self.kinds[chunks] == RAW, used, self.sizes[chunks])
        return np.where(self.kinds[chunks] == CONSTANT, 0, self.offsets[chunks] + size)


_NONE = np.empty(0, np.int64)


def _array(number: int) -> NDArray[np.int64]:
    return np.array([number], np.int64)
