"""Sign codes of RaBitQ in the layout of files, and back.

Rows are packed by 32, nibble by nibble, so that one instruction looks at sixteen of them; the rows
behind the last full block lie column after column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.memory import address_of, bytes_at

if TYPE_CHECKING:
    from numpy.typing import NDArray

BLOCK_ROWS = 32
"""Rows that are packed together."""

_HALF = 16


def pack_signs(codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Pack the codes of one partition.

    Parameters
    ----------
    codes
        Shape ``(n, num_bytes)``, C-contiguous, may be read-only.

    Returns
    -------
    NDArray[np.uint8]
        Shape ``(n * num_bytes,)``.

    Notes
    -----
    Vector index page, section 4.4: "Packing of the sign codes".
    """
    packed = np.empty(codes.size, np.uint8)
    num_rows, num_bytes = codes.shape
    _pack_signs(address_of(codes), num_rows, num_bytes, packed)
    return packed


def unpack_signs(packed: NDArray[np.uint8], num_bytes: int) -> NDArray[np.uint8]:
    """Undo `pack_signs`.

    Parameters
    ----------
    packed
        Shape ``(n * num_bytes,)``, C-contiguous, may be read-only.
    num_bytes
        Bytes of one row's code.

    Returns
    -------
    NDArray[np.uint8]
        Shape ``(n, num_bytes)``.
    """
    columns = np.empty((num_bytes, len(packed) // num_bytes), np.uint8)
    _unpack_signs(address_of(packed), columns)
    return np.ascontiguousarray(columns.T)


@kernel
def row_in_block(place: int) -> int:
    """Return which of sixteen rows has the nibble at a place: 0, 8, 1, 9, .. 7, 15."""
    return (place >> 1) + ((place & 1) << 3)


@kernel
def unpack_blocks(address: int, columns: NDArray[np.uint8], num_rows: int) -> None:
    """Unpack full blocks that lie one after the other.

    Parameters
    ----------
    address
        Where the first lies.
    columns
        Shape ``(num_bytes, n)``: receives ``num_rows``, a multiple of 32, at most ``n``.
    """
    packed = bytes_at(address, len(columns) * num_rows)
    at = 0
    for first in range(0, num_rows, BLOCK_ROWS):
        for b in range(len(columns)):
            rows = columns[b, first : first + BLOCK_ROWS]
            low, high = packed[at : at + _HALF], packed[at + _HALF : at + BLOCK_ROWS]
            for place in range(_HALF):
                row = row_in_block(place)
                rows[row] = (low[place] & 15) | ((high[place] & 15) << 4)
                rows[row + _HALF] = (low[place] >> 4) | (high[place] & 240)
            at += BLOCK_ROWS


@kernel
def _unpack_signs(address: int, columns: NDArray[np.uint8]) -> None:
    num_bytes, num_rows = columns.shape
    whole = num_rows - num_rows % BLOCK_ROWS
    unpack_blocks(address, columns, whole)
    rest = bytes_at(address + whole * num_bytes, (num_rows - whole) * num_bytes)
    at = 0
    for b in range(num_bytes):
        for i in range(whole, num_rows):
            columns[b, i] = rest[at]
            at += 1


@kernel
def _pack_signs(address: int, num_rows: int, num_bytes: int, packed: NDArray[np.uint8]) -> None:
    codes = bytes_at(address, num_rows * num_bytes)
    whole = num_rows - num_rows % BLOCK_ROWS
    at = 0
    for first in range(0, whole, BLOCK_ROWS):
        for b in range(num_bytes):
            for place in range(_HALF):
                row = first + row_in_block(place)
                near, far = codes[row * num_bytes + b], codes[(row + _HALF) * num_bytes + b]
                packed[at + place] = (near & 15) | ((far & 15) << 4)
                packed[at + place + _HALF] = (near >> 4) | (far & 240)
            at += BLOCK_ROWS
    for b in range(num_bytes):
        for row in range(whole, num_rows):
            packed[at] = codes[row * num_bytes + b]
            at += 1


@warmup
def _warm() -> None:
    unpack_signs(pack_signs(np.zeros((2, 1), np.uint8)), 1)
