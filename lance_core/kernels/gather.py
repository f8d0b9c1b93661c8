"""Joining pieces of memory: byte runs, bitmaps and values of variable width."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba.np.numpy_support import carray

from lance_core.kernels.bitpacking import DONE
from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.memory import address_of, bytes_at, pointer_at, uint64_at

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NARROW_OFFSETS = 4
_WORD_BYTES = 8
_SPREAD = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little").view(
    np.uint64
)[:, 0]
"""Each byte with its bits spread over the bytes of a word, lowest first."""


@kernel
def join_bytes(
    addresses: NDArray[np.int64], sizes: NDArray[np.int64], out: NDArray[np.uint8]
) -> None:
    """Copy ``sizes[i]`` bytes from each address, one run after another, into ``out``."""
    position = 0
    for run in range(addresses.shape[0]):
        size = sizes[run]
        out[position : position + size] = bytes_at(addresses[run], size)
        position += size


@kernel
def join_bits(
    addresses: NDArray[np.int64], counts: NDArray[np.int64], out: NDArray[np.uint8]
) -> None:
    """Spread ``counts[i]`` bits from each address, low bits first, over bytes of 0 and 1."""
    position = 0
    target: int = np.int64(out.ctypes.data)  # type: ignore[assignment]  # a scalar in kernels
    for run in range(addresses.shape[0]):
        count = counts[run]
        bits = bytes_at(addresses[run], (count + 7) // 8)
        whole = uint64_at(target + position, count // 8)
        for byte in range(whole.shape[0]):
            whole[byte] = _SPREAD[bits[byte]]
        for index in range(count // 8 * 8, count):
            out[position + index] = (bits[index >> 3] >> (index & 7)) & 1
        position += count


@kernel
def offset_at(address: int, index: int, width: int) -> int:
    """Return offset ``index`` of the table of 4 or 8 byte offsets at ``address``."""
    if width == _NARROW_OFFSETS:
        return np.int64(carray(pointer_at(address + index * 4), 1, np.uint32)[0])  # type: ignore[return-value]  # a scalar in kernels
    return carray(pointer_at(address + index * 8), 1, np.int64)[0]  # type: ignore[no-any-return]  # same


@kernel
def join_offsets(
    addresses: NDArray[np.int64],
    sizes: NDArray[np.int64],
    counts: NDArray[np.int64],
    width: int,
    out: NDArray[np.int64],
) -> int:
    """Check the offset tables of variable-width buffers and join them to one.

    Parameters
    ----------
    addresses, sizes, counts
        Shape ``(n,)``; each buffer holds ``counts[i] + 1`` offsets of ``width`` bytes, relative to
        its own start, and then the bytes they delimit.
    width
        4 or 8.
    out
        Shape ``(sum(counts) + 1,)``; offsets into the joined bytes, from 0.

    Returns
    -------
    int
        ``DONE``, or the first buffer with an offset outside it or below the one before.
    """
    out[0] = 0
    position = 0
    for buffer in range(addresses.shape[0]):
        count = counts[buffer]
        table_bytes = (count + 1) * width
        if table_bytes > sizes[buffer]:
            return buffer
        before = offset_at(addresses[buffer], 0, width)
        if before < table_bytes or before > sizes[buffer]:
            return buffer
        for index in range(1, count + 1):
            offset = offset_at(addresses[buffer], index, width)
            if offset < before or offset > sizes[buffer]:
                return buffer
            out[position + 1] = out[position] + offset - before
            before = offset
            position += 1
    return DONE


@kernel
def join_values(
    addresses: NDArray[np.int64],
    counts: NDArray[np.int64],
    width: int,
    offsets: NDArray[np.int64],
    out: NDArray[np.uint8],
) -> None:
    """Copy the bytes of variable-width buffers whose ``offsets`` came from ``join_offsets``."""
    position = 0
    for buffer in range(addresses.shape[0]):
        start = offsets[position]
        position += counts[buffer]
        size = offsets[position] - start
        address = addresses[buffer] + offset_at(addresses[buffer], 0, width)
        out[start : start + size] = bytes_at(address, size)


@kernel
def find_strings(
    addresses: NDArray[np.int64],
    sizes: NDArray[np.int64],
    counts: NDArray[np.int64],
    width: int,
    buffers: NDArray[np.int64],
    positions: NDArray[np.int64],
    string_addresses: NDArray[np.int64],
    string_sizes: NDArray[np.int64],
) -> int:
    """Find single byte strings in buffers laid out as for ``join_offsets``.

    Parameters
    ----------
    addresses, sizes, counts, width
        As ``join_offsets``.
    buffers, positions
        Shape ``(n,)``; the buffer of each string and its position there, below its count.
    string_addresses, string_sizes
        Shape ``(n,)``; receive where the strings lie.

    Returns
    -------
    int
        ``DONE``, or the first buffer with an offset outside it.
    """
    for index in range(buffers.shape[0]):
        buffer = int(buffers[index])
        table_bytes = (counts[buffer] + 1) * width
        if table_bytes > sizes[buffer]:
            return buffer
        start = offset_at(addresses[buffer], positions[index], width)
        end = offset_at(addresses[buffer], positions[index] + 1, width)
        if start < table_bytes or end < start or end > sizes[buffer]:
            return buffer
        string_addresses[index] = addresses[buffer] + start
        string_sizes[index] = end - start
    return DONE


@kernel
def selected_offsets(
    offsets: NDArray[np.int64], rows: NDArray[np.int64], out: NDArray[np.int64]
) -> int:
    """Compute the offsets of the values ``rows``, shape ``(n,)``, into ``out``, ``(n + 1,)``.

    Returns ``DONE``, or the first position whose row does not exist.
    """
    out[0] = 0
    for index in range(rows.shape[0]):
        row = rows[index]
        if row < 0 or row >= offsets.shape[0] - 1:
            return index
        out[index + 1] = out[index] + offsets[row + 1] - offsets[row]
    return DONE


@kernel
def select_values(
    offsets: NDArray[np.int64],
    data: NDArray[np.uint8],
    rows: NDArray[np.int64],
    new_offsets: NDArray[np.int64],
    out: NDArray[np.uint8],
) -> None:
    """Copy the values ``rows`` of a variable-width column; ``new_offsets`` says whereto.

    Whole words are copied where both sides have room for them: what is written too much belongs to
    values that come later.
    """
    room = data.shape[0] - _WORD_BYTES
    out_room = out.shape[0] - _WORD_BYTES
    source = np.int64(data.ctypes.data)
    target = np.int64(out.ctypes.data)
    for index in range(rows.shape[0]):
        start = offsets[rows[index]]
        to = new_offsets[index]
        size = new_offsets[index + 1] - to
        if start + size <= room and to + size <= out_room:
            for byte in range(0, size, _WORD_BYTES):
                word = uint64_at(source + start + byte, 1)[0]
                uint64_at(target + to + byte, 1)[0] = word
        else:
            for byte in range(size):
                out[to + byte] = data[start + byte]


@kernel
def deinterleave(
    addresses: NDArray[np.int64],
    counts: NDArray[np.int64],
    value_bytes: int,
    out: NDArray[np.uint8],
) -> None:
    """Undo byte stream splitting: byte ``j`` of value ``i`` of a buffer lies at ``j * n + i``.

    ``counts`` holds ``n`` of each buffer; ``out`` has shape ``(sum(counts) * value_bytes,)``.
    """
    position = 0
    for buffer in range(addresses.shape[0]):
        count = counts[buffer]
        split = bytes_at(addresses[buffer], count * value_bytes)
        for byte in range(value_bytes):
            for index in range(count):
                out[position + index * value_bytes + byte] = split[byte * count + index]
        position += count * value_bytes


@kernel(brief=True)
def pick_rows(
    table: NDArray[np.int64], numbers: NDArray[np.int64], rows: NDArray[np.int64]
) -> None:
    """Copy rows of a table, both of shape ``(n, w)``; ``table[numbers]`` lets go of the GIL."""
    for i in range(len(numbers)):
        rows[i] = table[numbers[i]]


@warmup
def _warm() -> None:
    none = np.empty(0, np.int64)
    one = np.zeros(1, np.int64)
    data = np.empty(0, np.uint8)
    bytes_at(address_of(one), one.nbytes)  # these two are also called outside kernels
    offset_at(address_of(one), 0, one.itemsize)
    join_bytes(none, none, data)
    join_bits(none, none, data)
    join_offsets(none, none, none, _NARROW_OFFSETS, one)
    join_values(none, none, _NARROW_OFFSETS, one, data)
    find_strings(none, none, none, _NARROW_OFFSETS, none, none, none, none)
    selected_offsets(one, none, one.copy())
    select_values(one, data, none, one, data)
    deinterleave(none, none, _NARROW_OFFSETS, data)
    pick_rows(np.zeros((1, 1), np.int64), np.zeros(1, np.int64), np.empty((1, 1), np.int64))
