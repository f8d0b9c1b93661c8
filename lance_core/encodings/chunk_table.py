"""The chunk metadata of mini-block pages (file format, section 4.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lance_core.encodings.blocks import address_of_bytes
from lance_core.kernels.bitpacking import DONE
from lance_core.kernels.mini_block import parse_chunk_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.encodings.place import Place

_MAX_VALUES = 1 << 31
CHUNK_HEADER_BYTES = 8
"""Header of a chunk with one value buffer and no levels, padding included."""


@dataclass(frozen=True, slots=True, eq=False)
class ChunkTable:
    """Where the chunks of a page lie.

    ``first_values`` and ``first_bytes`` have shape ``(chunks + 1,)``: running sums from 0; bytes
    count from the start of the page's chunk buffer.
    """

    first_values: NDArray[np.int64]
    first_bytes: NDArray[np.int64]

    @property
    def num_chunks(self) -> int:
        """Number of chunks."""
        return len(self.first_values) - 1

    @property
    def nbytes(self) -> int:
        """Memory of the two tables."""
        return self.first_values.nbytes + self.first_bytes.nbytes


@dataclass(frozen=True, slots=True, eq=False)
class ChunkWords:
    """The chunk words of a page and what they must add up to.

    Parameters
    ----------
    words
        The metadata buffer.
    word_bytes
        2, or 4 in pages with large chunks.
    num_values
        Values of the page; the last chunk holds what the others leave.
    chunk_bytes
        Size of the chunk buffer, which the chunks must fill.
    """

    words: memoryview
    word_bytes: int
    num_values: int
    chunk_bytes: int

    @property
    def num_chunks(self) -> int:
        """Number of chunks."""
        return len(self.words) // self.word_bytes


@dataclass(frozen=True, slots=True, eq=False)
class PageChunkRows:
    """The chunks of several pages, one page after another: shape ``(c,)`` each.

    Values and bytes count from the start of their page; ``page_of`` is a position among the pages.
    """

    first_values: NDArray[np.int64]
    num_values: NDArray[np.int64]
    first_bytes: NDArray[np.int64]
    num_bytes: NDArray[np.int64]
    page_of: NDArray[np.int64]


def parse_chunk_tables(pages: Sequence[ChunkWords], place: Place) -> PageChunkRows:
    """Read the chunk words of several pages.

    Raises
    ------
    CorruptFileError
        The words of a page do not add up to its values and bytes.
    """
    for page in pages:
        if len(page.words) % page.word_bytes != 0:
            raise place.corrupt(
                f"{len(page.words)} bytes of chunk metadata in words of {page.word_bytes}"
            )
        if page.num_values > _MAX_VALUES:
            raise place.corrupt(f"a page of {page.num_values} values")
    counts = np.array([page.num_chunks for page in pages], np.int64)
    rows = np.empty((4, int(counts.sum())), np.int64)
    bad = parse_chunk_words(
        np.array([address_of_bytes(page.words) for page in pages], np.int64),
        counts,
        np.array([page.word_bytes for page in pages], np.int64),
        np.array([page.num_values for page in pages], np.int64),
        np.array([page.chunk_bytes for page in pages], np.int64),
        rows,
    )
    if bad != DONE:
        page = pages[bad]
        raise place.corrupt(
            f"the chunks do not add up to the page's {page.num_values} values "
            f"in {page.chunk_bytes} bytes"
        )
    page_of = np.repeat(np.arange(len(pages)), counts)
    return PageChunkRows(rows[0], rows[1], rows[2], rows[3], page_of)


def parse_chunk_table(page: ChunkWords, place: Place) -> ChunkTable:
    """Read the chunk words of one page; errors as ``parse_chunk_tables``."""
    rows = parse_chunk_tables([page], place)
    return ChunkTable(
        np.append(rows.first_values, page.num_values), np.append(rows.first_bytes, page.chunk_bytes)
    )
