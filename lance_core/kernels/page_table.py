"""Finding the messages of pages in the metadata of a column, without parsing them.

A column may have thousands of pages, of which a query looks at a few: of the others only their
rows and their size matter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.memory import bytes_at

if TYPE_CHECKING:
    from numpy.typing import NDArray

START, END, LENGTH, NUM_BYTES = range(4)
DAMAGED = -1

# Numbers and kinds of the fields, as tags: `pages` of a column; `buffer_sizes` of a page, packed or
# one by one, and its `length` (file2.proto).
_PAGES, _PACKED_SIZES, _SIZE, _LENGTH = 2 << 3 | 2, 2 << 3 | 2, 2 << 3, 3 << 3
_VARINT, _EIGHT_BYTES, _DELIMITED, _FOUR_BYTES = 0, 1, 2, 5
_MAX_SHIFT = 63
_MOST = 1 << 60
"""Stands for all larger numbers: no file has as many bytes or rows."""


@kernel
def read_varint(message: NDArray[np.uint8], at: int, end: int) -> tuple[int, int]:
    """Return a number of seven bits per byte and where it ends, which is -1 if it does not."""
    number = np.uint64(0)
    for shift in range(0, _MAX_SHIFT + 1, 7):
        if at >= end:
            return 0, DAMAGED
        byte = np.uint64(message[at])
        at += 1
        number |= (byte & np.uint64(0x7F)) << np.uint64(shift)
        if byte < np.uint64(0x80):
            return int(np.int64(min(number, np.uint64(_MOST)))), at
    return 0, DAMAGED


@kernel
def field_end(message: NDArray[np.uint8], kind: int, at: int, end: int) -> int:
    """Return where the value of a field ends that begins at ``at``; -1 if that is nowhere."""
    if kind == _VARINT:
        return read_varint(message, at, end)[1]
    if kind in (_EIGHT_BYTES, _FOUR_BYTES):
        stop = at + (8 if kind == _EIGHT_BYTES else 4)
        return stop if stop <= end else DAMAGED
    if kind != _DELIMITED:
        return DAMAGED
    length, start = read_varint(message, at, end)
    return start + length if start != DAMAGED and length <= end - start else DAMAGED


@kernel
def sum_packed(message: NDArray[np.uint8], at: int, end: int) -> int:
    """Return the sum of packed numbers, at most 2**60; -1 if the last is cut off."""
    total = 0
    while at < end:
        number, at = read_varint(message, at, end)
        if at == DAMAGED:
            return DAMAGED
        total = min(total + number, _MOST)
    return total


@kernel
def look_into_page(message: NDArray[np.uint8], at: int, end: int) -> tuple[int, int]:
    """Return the rows of a page and the bytes of its buffers; no rows but -1 if it is damaged."""
    rows, num_bytes = 0, 0
    while at < end:
        tag, at = read_varint(message, at, end)
        stop = DAMAGED if at == DAMAGED else field_end(message, tag & 7, at, end)
        if stop == DAMAGED:
            return DAMAGED, 0
        if tag == _LENGTH:
            rows = read_varint(message, at, end)[0]
        elif tag == _SIZE:
            num_bytes = min(num_bytes + read_varint(message, at, end)[0], _MOST)
        elif tag == _PACKED_SIZES:
            first = read_varint(message, at, end)[1]
            sizes = sum_packed(message, first, stop)
            if sizes == DAMAGED:
                return DAMAGED, 0
            num_bytes = min(num_bytes + sizes, _MOST)
        at = stop
    return rows, num_bytes


@kernel
def find_pages(address: int, size: int, found: NDArray[np.int64]) -> int:
    """Find the pages of a column.

    Parameters
    ----------
    address, size
        Where the ``ColumnMetadata`` message lies, and its bytes.
    found
        Shape ``(n, 4)``: of each page where its message begins and ends, its rows, -1 if the
        message is damaged, and the bytes of its buffers, at most 2**60 each. Pages beyond ``n`` are
        only counted.

    Returns
    -------
    int
        How many pages there are; -1 if the message around them is damaged.
    """
    message = bytes_at(address, size)
    at, count = 0, 0
    while at < size:
        tag, at = read_varint(message, at, size)
        stop = DAMAGED if at == DAMAGED else field_end(message, tag & 7, at, size)
        if stop == DAMAGED:
            return DAMAGED
        if tag == _PAGES:
            if count < len(found):
                start = read_varint(message, at, size)[1]
                rows, num_bytes = look_into_page(message, start, stop)
                found[count, START] = start
                found[count, END] = stop
                found[count, LENGTH] = rows
                found[count, NUM_BYTES] = num_bytes
            count += 1
        at = stop
    return count


@warmup
def _warm() -> None:
    find_pages(0, 0, np.empty((0, 4), np.int64))
