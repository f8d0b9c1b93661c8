"""Rows of columns whose rows can be found by arithmetic alone: raw, inline-packed or constant.

A column is given as a table of chunks in row order. Chunk ``c`` holds the rows
``[first_rows[c], first_rows[c + 1])``; ``kinds[c]`` says how:

* ``RAW``: one after another from byte ``offsets[c]`` of the file;
* ``PACKED``: one inline-packed block of ``sizes[c]`` bytes at ``offsets[c]``;
* ``CONSTANT``: all equal to row ``offsets[c]`` of ``constants``.

A row is ``stride`` elements of the output's type. Bytes of the file are found by *bases*: byte
``x`` lies at address ``base + x``. The caller has checked that every chunk lies inside the file and
that the memory behind a base covers the chunks it is used for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba.np.numpy_support import carray

from lance_core.kernels.bitpacking import (
    BLOCK_ROWS,
    DONE,
    UNSIGNED,
    inline_width,
    unpack_block,
    unpack_one,
)
from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.memory import pointer_at

if TYPE_CHECKING:
    from numpy.typing import NDArray

RAW, PACKED, CONSTANT = 0, 1, 2


@kernel
def chunk_of(first_rows: NDArray[np.int64], row: int) -> int:
    """Return the chunk that holds ``row``; the row is inside the column."""
    low = 0
    high = first_rows.shape[0] - 1
    while high - low > 1:
        middle = (low + high) // 2
        if first_rows[middle] <= row:
            low = middle
        else:
            high = middle
    return low


@kernel
def copy_ranges(
    bases: NDArray[np.int64],
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    first_rows: NDArray[np.int64],
    offsets: NDArray[np.int64],
    sizes: NDArray[np.int64],
    kinds: NDArray[np.uint8],
    constants: NDArray[np.unsignedinteger],
    stride: int,
    out: NDArray[np.unsignedinteger],
) -> int:
    """Copy the rows of several ranges one after another.

    Parameters
    ----------
    bases, starts, stops
        Shape ``(m,)``; base, first row and row after the last of each range.
    first_rows, offsets, sizes, kinds
        Shape ``(c + 1,)`` and ``(c,)``; the chunk table.
    constants
        Shape ``(constants * stride,)``.
    stride
        Elements per row; 1 if any chunk is packed.
    out
        Shape ``(rows * stride,)``.

    Returns
    -------
    int
        ``DONE``, or the first packed chunk whose width or size is impossible.
    """
    scratch = np.empty(BLOCK_ROWS, out.dtype)
    position = 0
    for piece in range(starts.shape[0]):
        row = starts[piece]
        stop = stops[piece]
        if row >= stop:
            continue
        chunk = chunk_of(first_rows, row)
        while row < stop:
            skip = row - first_rows[chunk]
            count = min(stop, first_rows[chunk + 1]) - row
            values = out[position : position + count * stride]
            if kinds[chunk] == RAW:
                address = bases[piece] + offsets[chunk] + skip * stride * out.itemsize
                values[:] = carray(pointer_at(address), count * stride, out.dtype)
            elif kinds[chunk] == PACKED:
                address = bases[piece] + offsets[chunk]
                width = inline_width(address, sizes[chunk], out)
                if width < 0:
                    return chunk
                if count == BLOCK_ROWS:
                    unpack_block(address + out.itemsize, width, values)
                else:
                    unpack_block(address + out.itemsize, width, scratch)
                    values[:] = scratch[skip : skip + count]
            else:
                start = offsets[chunk] * stride
                for index in range(count * stride):
                    values[index] = constants[start + index % stride]
            position += count * stride
            row += count
            chunk += 1
    return DONE


@kernel
def copy_rows(
    bases: NDArray[np.int64],
    rows: NDArray[np.int64],
    first_rows: NDArray[np.int64],
    offsets: NDArray[np.int64],
    sizes: NDArray[np.int64],
    kinds: NDArray[np.uint8],
    constants: NDArray[np.unsignedinteger],
    stride: int,
    out: NDArray[np.unsignedinteger],
) -> int:
    """Copy single rows, in any order; of a packed chunk only the wanted value is unpacked.

    ``rows`` has shape ``(n,)``, ``bases`` too, or ``(1,)`` where all rows have the same base;
    everything else as ``copy_ranges``. A row outside the column is an error of the caller.
    """
    own_base = int(bases.shape[0] > 1)
    for index in range(rows.shape[0]):
        base = bases[index * own_base]
        chunk = chunk_of(first_rows, rows[index])
        skip = rows[index] - first_rows[chunk]
        if kinds[chunk] == PACKED:
            address = base + offsets[chunk]
            width = inline_width(address, sizes[chunk], out)
            if width < 0:
                return chunk
            out[index] = unpack_one(address + out.itemsize, width, skip, out)
            continue
        values = out[index * stride : (index + 1) * stride]
        if kinds[chunk] == RAW:
            address = base + offsets[chunk] + skip * stride * out.itemsize
            values[:] = carray(pointer_at(address), stride, out.dtype)
        else:
            values[:] = constants[offsets[chunk] * stride : (offsets[chunk] + 1) * stride]
    return DONE


@kernel(brief=True)
def copy_few_rows(
    bases: NDArray[np.int64],
    rows: NDArray[np.int64],
    first_rows: NDArray[np.int64],
    offsets: NDArray[np.int64],
    sizes: NDArray[np.int64],
    kinds: NDArray[np.uint8],
    constants: NDArray[np.unsignedinteger],
    stride: int,
    out: NDArray[np.unsignedinteger],
) -> int:
    """Do as `copy_rows`, for so few that giving the GIL away would take longer."""
    return copy_rows(bases, rows, first_rows, offsets, sizes, kinds, constants, stride, out)


@kernel(brief=True)
def are_inside(rows: NDArray[np.int64], num_rows: int) -> bool:
    """Tell whether all of some rows, shape ``(n,)``, are among the first ``num_rows``."""
    inside = True
    for row in rows:
        inside &= 0 <= row < num_rows
    return inside


@warmup
def _warm() -> None:
    none = np.empty(0, np.int64)
    are_inside(none, 0)
    kinds = np.empty(0, np.uint8)
    for element in UNSIGNED.values():
        values = np.empty(0, element)
        copy_ranges(none, none, none, none, none, none, kinds, values, 1, values)
        copy_rows(none, none, none, none, none, kinds, values, 1, values)
        copy_few_rows(none, none, none, none, none, kinds, values, 1, values)
