"""FastLanes bit packing, forwards; layout as in ``bitpacking``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.bitpacking import BLOCK_ROWS, ORDER, UNSIGNED
from lance_core.kernels.compile import kernel, warmup

if TYPE_CHECKING:
    from numpy.typing import NDArray


@kernel
def bit_length(value: int) -> int:
    """Return the bits of a number, 0 for 0."""
    rest = np.uint64(value)
    length = 0
    for step in (32, 16, 8, 4, 2, 1):
        if rest >> np.uint64(step) != 0:
            rest >>= np.uint64(step)
            length += step
    return length + np.int64(rest)  # type: ignore[return-value]  # `int` keeps it unsigned in kernels


@kernel
def chunk_widths(
    values: NDArray[np.unsignedinteger], bounds: NDArray[np.int64], out: NDArray[np.int64]
) -> None:
    """Find the bits that the widest value of each chunk needs; ``out`` has shape ``(chunks,)``."""
    for chunk in range(out.shape[0]):
        every = values.dtype.type(0)
        for value in values[bounds[chunk] : bounds[chunk + 1]]:
            every |= value
        out[chunk] = bit_length(int(every))


@kernel
def pack_block(
    values: NDArray[np.unsignedinteger], width: int, words: NDArray[np.unsignedinteger]
) -> None:
    """Pack 1,024 values of at most ``width`` bits.

    ``values`` has shape ``(1024,)`` and elements of T bits; ``words`` shape
    ``(width * 1024 / T,)``.
    """
    bits = words.itemsize * 8
    lanes = BLOCK_ROWS // bits
    if width == 0:
        return
    for row in range(bits):
        start = ORDER[row // 8] * 16 + (row % 8) * 128
        word = row * width // bits * lanes
        shift = row * width % bits
        left = shift & (bits - 1)  # said twice, so that lanes stay T bits wide
        if shift == 0:
            for lane in range(lanes):
                words[word + lane] = values[start + lane]
        else:
            for lane in range(lanes):
                words[word + lane] |= values[start + lane] << left
        if shift + width > bits:
            right = (bits - shift) & (bits - 1)
            for lane in range(lanes):
                words[word + lanes + lane] = values[start + lane] >> right


@kernel
def pack_part(
    values: NDArray[np.unsignedinteger],
    width: int,
    words: NDArray[np.unsignedinteger],
    scratch: NDArray[np.unsignedinteger],
) -> None:
    """Pack up to 1,024 values; what a short block lacks is filled with zeros in ``scratch``."""
    count = values.shape[0]
    if count == BLOCK_ROWS:
        pack_block(values, width, words)
    else:
        scratch[:count] = values
        scratch[count:] = 0
        pack_block(scratch, width, words)


@kernel
def pack_inline(
    values: NDArray[np.unsignedinteger],
    bounds: NDArray[np.int64],
    widths: NDArray[np.int64],
    out: NDArray[np.unsignedinteger],
) -> None:
    """Pack blocks of at most 1,024 values, each behind a word with its width.

    Parameters
    ----------
    values
        Shape ``(n,)``.
    bounds, widths
        Shapes ``(blocks + 1,)`` and ``(blocks,)``; the widths of ``chunk_widths``.
    out
        Element type of the values; ``1 + width * 1024 / T`` for each block.
    """
    scratch = np.empty(BLOCK_ROWS, out.dtype)
    lanes = BLOCK_ROWS // (out.itemsize * 8)
    position = 0
    for block in range(widths.shape[0]):
        end = position + 1 + widths[block] * lanes
        out[position] = widths[block]
        part = values[bounds[block] : bounds[block + 1]]
        pack_part(part, widths[block], out[position + 1 : end], scratch)
        position = end


@kernel
def tail_is_packed(count: int, width: int, bits: int) -> bool:
    """Whether packing the last ``count < 1,024`` values of a buffer makes it smaller."""
    return count > 0 and width * (BLOCK_ROWS - count) < (bits - width) * count


@kernel
def out_of_line_sizes(
    bounds: NDArray[np.int64], width: int, item_bytes: int, out: NDArray[np.int64]
) -> None:
    """Find the bytes of each buffer that ``pack_out_of_line`` writes, shape ``(buffers,)``."""
    for buffer in range(out.shape[0]):
        count = bounds[buffer + 1] - bounds[buffer]
        tail = count % BLOCK_ROWS
        size = count // BLOCK_ROWS * width * (BLOCK_ROWS // 8)
        if tail_is_packed(tail, width, item_bytes * 8):
            size += width * (BLOCK_ROWS // 8)
        else:
            size += tail * item_bytes
        out[buffer] = size


@kernel
def pack_out_of_line(
    values: NDArray[np.unsignedinteger],
    bounds: NDArray[np.int64],
    width: int,
    out: NDArray[np.unsignedinteger],
) -> None:
    """Pack buffers in blocks of 1,024 values of ``width`` bits; a short tail may stay raw.

    ``out`` has the element type of the values, and room for all ``out_of_line_sizes``.
    """
    scratch = np.empty(BLOCK_ROWS, out.dtype)
    block_words = width * (BLOCK_ROWS // (out.itemsize * 8))
    position = 0
    for buffer in range(bounds.shape[0] - 1):
        start = bounds[buffer]
        stop = bounds[buffer + 1]
        while start < stop:
            count = min(BLOCK_ROWS, stop - start)
            part = values[start : start + count]
            packs = count == BLOCK_ROWS or tail_is_packed(count, width, out.itemsize * 8)
            size = block_words if packs else count
            if packs:
                pack_part(part, width, out[position : position + size], scratch)
            else:
                out[position : position + size] = part
            position += size
            start += count


@warmup
def _warm() -> None:
    bounds = np.zeros(1, np.int64)
    none = np.empty(0, np.int64)
    out_of_line_sizes(bounds, 1, 2, none)
    for element in UNSIGNED.values():
        words = np.empty(0, element)
        chunk_widths(words, bounds, none)
        pack_inline(words, bounds, none, words)
        pack_out_of_line(words, bounds, 1, words)
