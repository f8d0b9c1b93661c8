"""Tables from which the inner product of a query with sign codes is summed.

A code has one bit per dimension; the inner product adds the query's values where it is set. pylance
rounds the sums of every four dimensions to whole numbers between 0 and 255 (65535 in its accurate
mode), so that a sum over a code is exact and sixteen rows are looked up at once. Other rows take
floats, from tables for whole bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel
from lance_core.kernels.memory import bytes_at, float32_at
from lance_core.kernels.rq_lanes import MOST_GROUPS, sum_block
from lance_core.kernels.rq_signs import BLOCK_ROWS

if TYPE_CHECKING:
    from numpy.typing import NDArray

NUM_ENTRIES = 256
GROUP_ENTRIES = 16

_GROUP_BITS = 4
_BYTE_BITS = 8
_WORD_BYTES = 2
_FLOAT_BYTES = 4


@kernel(ordered=True)
def fill_groups(query: NDArray[np.float32], groups: NDArray[np.float32]) -> None:
    """Write the sum of each choice among every four dimensions.

    Parameters
    ----------
    query
        Shape ``(d,)``, rotated.
    groups
        Shape ``(d / 4, 16)``: entry ``v`` receives the sum over the bits set in ``v``, added from
        the highest bit down, as pylance 14.0.2 does: another order may round otherwise.
    """
    for g in range(len(groups)):
        row = groups[g]
        row[0] = np.float32(0)
        for bit in range(_GROUP_BITS - 1, -1, -1):
            value = query[_GROUP_BITS * g + bit]
            for v in range(0, GROUP_ENTRIES, 2 << bit):
                row[v + (1 << bit)] = row[v] + value


@kernel(ordered=True)
def join_floats(groups: NDArray[np.float32], table: NDArray[np.float32]) -> None:
    """Write the float sums for whole bytes of code; ``table`` has shape ``(d / 8, 256)``."""
    for b in range(len(table)):
        low, row = groups[2 * b], table[b]
        for upper in range(GROUP_ENTRIES):
            value = groups[2 * b + 1, upper]
            for v in range(GROUP_ENTRIES):
                row[GROUP_ENTRIES * upper + v] = low[v] + value


@kernel(ordered=True)
def round_groups(
    groups: NDArray[np.float32],
    levels: np.float32,
    lower: NDArray[np.uint8],
    upper: NDArray[np.uint8],
) -> tuple[np.float32, np.float32]:
    """Write the sums rounded to whole numbers.

    Parameters
    ----------
    groups
        Shape ``(d / 4, 16)``.
    levels
        The largest whole number: 255 or 65535.
    lower, upper
        Shape ``(d / 4, 16)``: the two bytes of each number.

    Returns
    -------
    tuple
        ``step`` and ``offset``: ``step * whole + offset`` is about the float sum over a code.
    """
    lowest, highest = np.float32(0), np.float32(0)
    for g in range(len(groups)):
        for v in range(GROUP_ENTRIES):
            lowest = min(lowest, groups[g, v])
            highest = max(highest, groups[g, v])
    width = highest - lowest
    # Multiplied by a quotient, as pylance does: a quotient of products rounds otherwise at times.
    scale = np.float32(0) if width == 0 else levels / width
    for g in range(len(groups)):
        for v in range(GROUP_ENTRIES):
            whole = np.int32(np.rint((groups[g, v] - lowest) * scale))
            lower[g, v] = np.uint8(whole & 255)
            upper[g, v] = np.uint8((whole >> _BYTE_BITS) & 255)
    return width / levels, np.float32(len(groups)) * lowest


@kernel(ordered=True)
def sum_blocks(
    codes_address: int,
    table: NDArray[np.uint8],
    weight: np.uint32,
    part: NDArray[np.uint16],
    sums: NDArray[np.uint32],
) -> None:
    """Add the numbers of full blocks of rows.

    Parameters
    ----------
    codes_address
        Where the packed codes lie.
    table
        Shape ``(d / 4, 16)``: the numbers.
    weight
        What each counts.
    part
        Shape ``(n,)`` or longer, scratch.
    sums
        Shape ``(n,)``, ``n`` a multiple of 32.
    """
    num_groups = len(table)
    block_bytes = num_groups * GROUP_ENTRIES
    num_blocks = len(sums) // BLOCK_ROWS
    parts = part.ctypes.data
    for group in range(0, num_groups, MOST_GROUPS):
        behind = group * GROUP_ENTRIES
        numbers = table.ctypes.data + behind
        count = min(MOST_GROUPS, num_groups - group)
        for block in range(num_blocks):
            codes = codes_address + block * block_bytes + behind
            sum_block(codes, numbers, count, parts + block * BLOCK_ROWS * _WORD_BYTES)
        for i in range(len(sums)):
            sums[i] += np.uint32(part[i]) * weight


@kernel(ordered=True)
def sum_floats(
    codes_address: int, stride: int, table: NDArray[np.float32], sums: NDArray[np.float32]
) -> None:
    """Sum the floats of rows whose codes lie column after column.

    Parameters
    ----------
    codes_address
        Where the first column's codes of these rows lie; each next column is ``stride`` behind.
    table
        Shape ``(d / 8, 256)``.
    sums
        Shape ``(n,)``.
    """
    sums[:] = np.float32(0)
    for j in range(len(table)):
        codes = bytes_at(codes_address + j * stride, len(sums))
        entries = float32_at(table.ctypes.data + j * NUM_ENTRIES * _FLOAT_BYTES, NUM_ENTRIES)
        for i in range(len(sums)):
            sums[i] += entries[codes[i]]
