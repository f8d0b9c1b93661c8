"""Taking mini-block chunks apart: header, levels and value buffers (file format, section 4.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba.np.numpy_support import carray

from lance_core.kernels.bitpacking import DONE
from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.memory import pointer_at

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PAD = 8
_SMALL_WORD_BYTES = 2
_LOG_BITS = 4
_LOG_MASK = 0xF
_SIZE_UNIT = 8
_FIRST_VALUE, _NUM_VALUES, _FIRST_BYTE, _NUM_BYTES = 0, 1, 2, 3


@kernel
def _chunk_word(address: int, index: int, word_bytes: int) -> np.int64:
    if word_bytes == _SMALL_WORD_BYTES:
        return np.int64(carray(pointer_at(address + index * word_bytes), 1, np.uint16)[0])
    return np.int64(carray(pointer_at(address + index * word_bytes), 1, np.uint32)[0])


@kernel
def parse_chunk_words(
    addresses: NDArray[np.int64],
    num_words: NDArray[np.int64],
    word_bytes: NDArray[np.int64],
    num_values: NDArray[np.int64],
    chunk_bytes: NDArray[np.int64],
    chunks: NDArray[np.int64],
) -> int:
    """Find the chunks of pages from their chunk words.

    Parameters
    ----------
    addresses, num_words, word_bytes
        Shape ``(p,)``; where the words of each page lie, how many there are and how wide, 2 or 4.
    num_values, chunk_bytes
        Shape ``(p,)``; what the words of each page must add up to.
    chunks
        Shape ``(4, words of all pages)``; receives first value and number of values of each chunk,
        first byte and number of bytes, counted from the start of its page.

    Returns
    -------
    int
        ``DONE``, or the first page whose words do not add up.
    """
    position = 0
    for page in range(addresses.shape[0]):
        value = byte = np.int64(0)
        last = num_words[page] - 1
        for index in range(num_words[page]):
            word = _chunk_word(addresses[page], index, word_bytes[page])
            # the last chunk holds what the others leave
            count = 1 << (word & _LOG_MASK) if index < last else num_values[page] - value
            size = ((word >> _LOG_BITS) + 1) * _SIZE_UNIT
            if count < 0:
                return page
            chunks[_FIRST_VALUE, position] = value
            chunks[_NUM_VALUES, position] = count
            chunks[_FIRST_BYTE, position] = byte
            chunks[_NUM_BYTES, position] = size
            value += count
            byte += size
            position += 1
        if value != num_values[page] or byte != chunk_bytes[page]:
            return page
    return DONE


@kernel
def split_chunks(
    addresses: NDArray[np.int64],
    sizes: NDArray[np.int64],
    num_level_buffers: int,
    has_large_chunk: bool,
    num_levels: NDArray[np.int64],
    part_addresses: NDArray[np.int64],
    part_sizes: NDArray[np.int64],
) -> int:
    """Find the parts of each chunk.

    Parameters
    ----------
    addresses, sizes
        Shape ``(n,)``; where each chunk lies and its bytes.
    num_level_buffers
        How many of repetition and definition levels are present, 0 to 2; they come first.
    has_large_chunk
        Whether the sizes of value buffers take four bytes instead of two.
    num_levels
        Shape ``(n,)``; receives the number of level entries.
    part_addresses, part_sizes
        Shape ``(parts, n)``, one row per level and value buffer; receive where the parts lie.

    Returns
    -------
    int
        ``DONE``, or the first chunk whose parts do not fit into it.
    """
    parts = part_addresses.shape[0]
    value_word = 4 if has_large_chunk else 2
    words = 2 + 2 * num_level_buffers + value_word * (parts - num_level_buffers)
    header = (words + _PAD - 1) // _PAD * _PAD
    for chunk in range(addresses.shape[0]):
        if header > sizes[chunk]:
            return chunk
        word = addresses[chunk]
        end = addresses[chunk] + sizes[chunk]
        num_levels[chunk] = carray(pointer_at(word), 1, np.uint16)[0]
        word += 2
        start = addresses[chunk] + header
        for part in range(parts):
            if part >= num_level_buffers and has_large_chunk:
                size = np.int64(carray(pointer_at(word), 1, np.uint32)[0])
                word += 4
            else:
                size = np.int64(carray(pointer_at(word), 1, np.uint16)[0])
                word += 2
            if start + size > end:
                return chunk
            part_addresses[part, chunk] = start
            part_sizes[part, chunk] = size
            start += (size + _PAD - 1) // _PAD * _PAD
    return DONE


@warmup
def _warm() -> None:
    none = np.empty(0, np.int64)
    parts = np.empty((1, 0), np.int64)
    split_chunks(none, none, 0, True, none, parts, parts)
    parse_chunk_words(none, none, none, none, none, parts)
