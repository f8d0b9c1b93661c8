"""FSST: each byte stands for a symbol of one to eight bytes, or escapes a literal byte."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba.np.numpy_support import carray

from lance_core.kernels.bitpacking import DONE
from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.memory import pointer_at

if TYPE_CHECKING:
    from numpy.typing import NDArray

ESCAPE = 255
SLACK = 8
"""Bytes that must be free behind the output: symbols are stored eight bytes at a time."""


@kernel
def expanded_offsets(
    offsets: NDArray[np.int64],
    data: NDArray[np.uint8],
    tables: NDArray[np.int64],
    lengths: NDArray[np.uint8],
    out: NDArray[np.int64],
) -> int:
    """Compute the offsets of the expanded values.

    Parameters
    ----------
    offsets, data
        Shapes ``(n + 1,)`` and ``(bytes,)``; the compressed values, offsets checked.
    tables
        Shape ``(n,)``; the number of each value's symbol table.
    lengths
        Shape ``(tables, 256)``; bytes of each symbol, 0 for codes without one.
    out
        Shape ``(n + 1,)``.

    Returns
    -------
    int
        ``DONE``, or the first value with an unknown code or a cut-off escape.
    """
    out[0] = 0
    for value in range(offsets.shape[0] - 1):
        size = 0
        table = tables[value]
        position = offsets[value]
        stop = offsets[value + 1]
        while position < stop:
            code = data[position]
            if code == ESCAPE:
                if position + 1 >= stop:
                    return value
                position += 1
                size += 1
            elif lengths[table, code] == 0:
                return value
            else:
                size += lengths[table, code]
            position += 1
        out[value + 1] = out[value] + size
    return DONE


@kernel
def expand(
    offsets: NDArray[np.int64],
    data: NDArray[np.uint8],
    tables: NDArray[np.int64],
    symbols: NDArray[np.uint64],
    lengths: NDArray[np.uint8],
    out_address: int,
) -> None:
    """Expand all values one after another to ``out_address``.

    The output has room for the last of ``expanded_offsets`` and ``SLACK`` bytes more. ``symbols``
    has shape ``(tables, 256)``, little endian, zero padded.
    """
    to = out_address
    for value in range(tables.shape[0]):
        table = tables[value]
        position = offsets[value]
        while position < offsets[value + 1]:
            code = data[position]
            if code == ESCAPE:
                position += 1
                carray(pointer_at(to), 1, np.uint8)[0] = data[position]
                to += 1
            else:
                carray(pointer_at(to), 1, np.uint64)[0] = symbols[table, code]
                to += lengths[table, code]
            position += 1


@warmup
def _warm() -> None:
    offsets = np.zeros(1, np.int64)
    data = np.empty(0, np.uint8)
    tables = np.empty(0, np.int64)
    lengths = np.zeros((1, 256), np.uint8)
    symbols = np.zeros((1, 256), np.uint64)
    expanded_offsets(offsets, data, tables, lengths, offsets.copy())
    expand(offsets, data, tables, symbols, lengths, offsets.ctypes.data)
