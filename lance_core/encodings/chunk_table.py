"""The chunk metadata of a mini-block page (file format, section 4.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lance_core.encodings.place import Place

_LOG_BITS = 4
_LOG_MASK = 0xF
_WORD_BYTES = 8
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


def parse_chunk_table(
    words: memoryview, word_bytes: int, num_values: int, chunk_bytes: int, place: Place
) -> ChunkTable:
    """Read the chunk words of a page.

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

    Raises
    ------
    CorruptFileError
        The words do not add up to the page's values and bytes.
    """
    if len(words) % word_bytes != 0:
        raise place.corrupt(f"{len(words)} bytes of chunk metadata in words of {word_bytes}")
    if num_values > _MAX_VALUES:
        raise place.corrupt(f"a page of {num_values} values")
    word = np.frombuffer(words, f"<u{word_bytes}").astype(np.int64)
    first_values = np.zeros(len(word) + 1, np.int64)
    first_bytes = np.zeros(len(word) + 1, np.int64)
    if len(word) > 0:
        np.cumsum(np.int64(1) << (word[:-1] & _LOG_MASK), out=first_values[1:-1])
        np.cumsum(((word >> _LOG_BITS) + 1) * _WORD_BYTES, out=first_bytes[1:])
        if int(first_values[-2]) > num_values:
            raise place.corrupt(f"the chunks hold more than the page's {num_values} values")
        first_values[-1] = num_values
    if int(first_values[-1]) != num_values or int(first_bytes[-1]) != chunk_bytes:
        raise place.corrupt(
            f"chunks hold {first_values[-1]} values in {first_bytes[-1]} bytes, "
            f"the page {num_values} in {chunk_bytes}"
        )
    return ChunkTable(first_values, first_bytes)
