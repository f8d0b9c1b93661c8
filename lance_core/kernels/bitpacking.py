"""FastLanes bit packing: 1,024 unsigned values of T bits in ``1024 * W / T`` words of T bits.

Layout: file format, section 5.4. With ``lanes = 1024 / T``, row ``r`` of the packed form holds,
lane by lane, the values from position ``ORDER[r // 8] * 16 + (r % 8) * 128`` on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba.np.numpy_support import carray

from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.memory import pointer_at
from lance_core.kernels.packed_lanes import (
    ROW_BYTES,
    element_bits,
    unpack_row,
    unpack_split_row,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

BLOCK_ROWS = 1024
_WORD_BITS = 64
ORDER = np.array([0, 4, 2, 6, 1, 5, 3, 7], np.int64)
"""The order of the eight groups of a block; it is its own inverse."""

UNSIGNED: dict[int, np.dtype[np.unsignedinteger]] = {
    bits: np.dtype(f"u{bits // 8}") for bits in (8, 16, 32, 64)
}
"""Element types by T."""

DONE = -1
"""What kernels return when no block was bad; else they return the number of the bad one."""


@kernel
def low_bits(width: int) -> np.uint64:
    """Return a mask of ``width`` ones, at most 64, as uint64."""
    if width >= _WORD_BITS:  # a shift by the whole width is undefined
        return np.uint64(0xFFFFFFFFFFFFFFFF)
    return (np.uint64(1) << np.uint64(width)) - np.uint64(1)


@kernel
def unpack_block(address: int, width: int, out: NDArray[np.unsignedinteger]) -> None:
    """Unpack one block of 1,024 values of ``width`` bits at ``address`` into ``out``.

    ``out`` has shape ``(1024,)``; its element width is T. The caller has checked that
    ``1024 * width / 8`` bytes are there.
    """
    bits = element_bits(out)
    mask = low_bits(width)
    if width == 0:
        out[:] = 0
        return
    for row in range(bits):
        start = ORDER[row // 8] * 16 + (row % 8) * 128
        word = address + row * width // bits * ROW_BYTES
        shift = row * width % bits
        if shift + width > bits:
            unpack_split_row(word, shift, mask, out, start)
        else:
            unpack_row(word, shift, mask, out, start)


@kernel
def unpack_one(
    address: int, width: int, position: int, like: NDArray[np.unsignedinteger]
) -> np.uint64:
    """Return value ``position`` of the block at ``address``; ``like`` gives T."""
    bits = like.itemsize * 8
    lanes = BLOCK_ROWS // bits
    if width == 0:
        return np.uint64(0)
    words = carray(pointer_at(address), width * lanes, like.dtype)
    rest = position % 128
    lane = rest % lanes
    row = ORDER[(rest // lanes) * (lanes // 16)] * 8 + position // 128
    word = row * width // bits
    shift = row * width % bits
    value = np.uint64(words[word * lanes + lane]) >> np.uint64(shift)
    if shift + width > bits:
        value |= np.uint64(words[(word + 1) * lanes + lane]) << np.uint64(bits - shift)
    return value & low_bits(width)


@kernel
def inline_width(address: int, size: int, like: NDArray[np.unsignedinteger]) -> int:
    """Return the width that stands before an inline-packed block, or -1 if the block is bad.

    Bad is a width above T, or a block that is longer than the ``size`` bytes at ``address``.
    """
    if size < like.itemsize:
        return -1
    width = np.uint64(carray(pointer_at(address), 1, like.dtype)[0])
    if width > np.uint64(like.itemsize * 8):
        return -1
    if like.itemsize + np.int64(width) * (BLOCK_ROWS // 8) > size:
        return -1
    return np.int64(width)  # type: ignore[return-value]  # `int` keeps it unsigned in kernels


@kernel
def unpack_inline(
    addresses: NDArray[np.int64],
    sizes: NDArray[np.int64],
    counts: NDArray[np.int64],
    out: NDArray[np.unsignedinteger],
) -> int:
    """Unpack inline-packed blocks one after another.

    Parameters
    ----------
    addresses, sizes, counts
        Shape ``(n,)``; where each block begins, its bytes, and how many values to keep of it
        (0 to 1024, checked by the caller).
    out
        Shape ``(sum(counts),)``; its element width is T.

    Returns
    -------
    int
        ``DONE``, or the first block whose width or size is impossible.
    """
    scratch = np.empty(BLOCK_ROWS, out.dtype)
    position = 0
    for block in range(addresses.shape[0]):
        width = inline_width(addresses[block], sizes[block], out)
        if width < 0:
            return block
        count = counts[block]
        address = addresses[block] + out.itemsize
        if count == BLOCK_ROWS:
            unpack_block(address, width, out[position : position + BLOCK_ROWS])
        else:
            unpack_block(address, width, scratch)
            out[position : position + count] = scratch[:count]
        position += count
    return DONE


@kernel
def unpack_selected(
    addresses: NDArray[np.int64],
    sizes: NDArray[np.int64],
    blocks: NDArray[np.int64],
    positions: NDArray[np.int64],
    out: NDArray[np.unsignedinteger],
) -> int:
    """Unpack single values of inline-packed blocks.

    Parameters
    ----------
    addresses, sizes
        Shape ``(b,)``; where each block begins and its bytes.
    blocks, positions
        Shape ``(n,)``; the block of each value and its position there, 0 to 1023.
    out
        Shape ``(n,)``; its element width is T.

    Returns
    -------
    int
        ``DONE``, or the first block whose width or size is impossible.
    """
    for index in range(blocks.shape[0]):
        block = int(blocks[index])
        width = inline_width(addresses[block], sizes[block], out)
        if width < 0:
            return block
        address = addresses[block] + out.itemsize
        out[index] = unpack_one(address, width, positions[index], out)
    return DONE


@kernel
def unpack_out_of_line(
    addresses: NDArray[np.int64],
    sizes: NDArray[np.int64],
    counts: NDArray[np.int64],
    width: int,
    out: NDArray[np.unsignedinteger],
) -> int:
    """Unpack buffers of whole packed blocks of one ``width`` with a raw or packed tail.

    The tail of a buffer, fewer than 1,024 values, is raw if the buffer's size says so: file format,
    section 5.5. Arguments and result as ``unpack_inline``; ``counts`` is not limited.
    """
    scratch = np.empty(BLOCK_ROWS, out.dtype)
    block_bytes = width * (BLOCK_ROWS // 8)
    position = 0
    for buffer in range(addresses.shape[0]):
        address = addresses[buffer]
        end = address + sizes[buffer]
        left = counts[buffer]
        tail_bytes = left % BLOCK_ROWS * out.itemsize
        raw_tail = sizes[buffer] == left // BLOCK_ROWS * block_bytes + tail_bytes
        while left >= BLOCK_ROWS or (left > 0 and not raw_tail):
            if address + block_bytes > end:
                return buffer
            count = min(left, BLOCK_ROWS)
            if count == BLOCK_ROWS:
                unpack_block(address, width, out[position : position + BLOCK_ROWS])
            else:
                unpack_block(address, width, scratch)
                out[position : position + count] = scratch[:count]
            address += block_bytes
            position += count
            left -= count
        if left > 0:
            out[position : position + left] = carray(pointer_at(address), left, out.dtype)
            position += left
    return DONE


@warmup
def _warm() -> None:
    none = np.empty(0, np.int64)
    for element in UNSIGNED.values():
        unpack_inline(none, none, none, np.empty(0, element))
        unpack_selected(none, none, none, none, np.empty(0, element))
        unpack_out_of_line(none, none, none, 1, np.empty(0, element))
