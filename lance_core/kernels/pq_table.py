"""Distance tables of a product quantiser, summed in the order in which pylance sums.

How pylance 14.0.2 forms the sum over the ``w`` dimensions of a sub-vector depends on ``w``
(observed on x86 with AVX-512, l2 and dot, w from 3 to 128; every table entry equal):

* below 8: one after the other;
* 8 to 16: in eight lanes, the second eight of 16 by fused multiply-add, the lanes summed as a tree
  of halves; dimensions 8 to ``w - 1`` of a sub-vector below 16 one after the other, then added;
* above 16: in sixteen lanes, these summed one after the other; what is left of the last sixteen
  one after the other, then added.

Every operation runs over the 256 codes (16 of 4-bit codes) at once, so the order costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np
from numba.core import types
from numba.extending import intrinsic

from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.memory import float32_at

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from llvmlite import ir
    from numba.core.base import BaseContext
    from numpy.typing import NDArray

NUM_CODES = 256
NUM_NIBBLES = 16

_FEW = 8
_MANY = 16
_HALF = 4
_EIGHT_BYTES = 8 * 4
_ENTRIES_BYTES = NUM_CODES * 4


def _fused(typing_context: object, a: object, b: object, c: object) -> object:
    def codegen(
        context: BaseContext, builder: ir.IRBuilder, signature: object, args: Sequence[ir.Value]
    ) -> ir.Value:
        return builder.fma(*args)

    return types.float32(types.float32, types.float32, types.float32), codegen


fused_multiply_add = cast(
    "Callable[[np.float32, np.float32, np.float32], np.float32]", intrinsic(_fused)
)
"""Return ``a * b + c`` of float32, rounded once; inside kernels only."""


@kernel(ordered=True)
def product(q: np.float32, value: np.float32, is_dot: bool) -> np.float32:
    """Return what one dimension adds: ``q * value``, or the square of their gap."""
    gap = q - value
    return q * value if is_dot else gap * gap


@kernel(ordered=True)
def fill_table(
    query: NDArray[np.float32],
    codebook: NDArray[np.float32],
    table: NDArray[np.float32],
    is_dot: bool,
) -> None:
    """Write the distance of each part of ``query`` to each code.

    Parameters
    ----------
    query
        Shape ``(d,)``: the query, or its residual.
    codebook
        Shape ``(m, d / m, c)``; ``c`` codes, 256 or 16.
    table
        Shape ``(m, c)``: receives squared l2 distances, or ``1 - q.c``.
    """
    width = codebook.shape[1]
    num_codes = codebook.shape[2]
    if width == _FEW and num_codes == NUM_CODES and not is_dot:
        # The usual case: by address, because counting views costs as much as the sums.
        for j in range(len(codebook)):
            square_eight_lanes(
                query.ctypes.data + j * _EIGHT_BYTES,
                codebook.ctypes.data + j * _FEW * _ENTRIES_BYTES,
                table.ctypes.data + j * _ENTRIES_BYTES,
            )
        return
    scratch = np.empty((_HALF, num_codes), np.float32)
    for j in range(len(codebook)):
        part = query[j * width : (j + 1) * width]
        if width < _FEW:
            table[j] = np.float32(0)
            add_in_order(part, codebook[j], table[j], is_dot)
        elif width <= _MANY:
            sum_eight_lanes(part, codebook[j], table[j], scratch, is_dot)
        else:
            sum_sixteen_lanes(part, codebook[j], table[j], scratch[0], is_dot)
        if is_dot:
            row = table[j]
            for c in range(num_codes):
                row[c] = np.float32(1) - row[c]


@kernel(ordered=True)
def add_in_order(
    part: NDArray[np.float32],
    values: NDArray[np.float32],
    row: NDArray[np.float32],
    is_dot: bool,
) -> None:
    """Add the products of all dimensions, one after the other."""
    for s in range(len(part)):
        q = part[s]
        of_codes = values[s]
        for c in range(len(row)):
            row[c] += product(q, of_codes[c], is_dot)


@kernel(ordered=True)
def add_rest(
    part: NDArray[np.float32],
    values: NDArray[np.float32],
    row: NDArray[np.float32],
    rest: NDArray[np.float32],
    is_dot: bool,
) -> None:
    """Sum the products of the last dimensions by themselves, then add the sum."""
    rest[:] = np.float32(0)
    add_in_order(part, values, rest, is_dot)
    for c in range(len(row)):
        row[c] += rest[c]


@kernel(ordered=True)
def sum_eight_lanes(
    part: NDArray[np.float32],
    values: NDArray[np.float32],
    row: NDArray[np.float32],
    scratch: NDArray[np.float32],
    is_dot: bool,
) -> None:
    """Write the sum of 8 to 16 products in eight lanes."""
    if len(part) < _MANY and len(row) == NUM_CODES and not is_dot:
        square_eight_lanes(part.ctypes.data, values.ctypes.data, row.ctypes.data)
    else:
        for lane in range(_HALF):
            sum_two_lanes(part[lane:], values[lane:], scratch[lane], len(part) == _MANY, is_dot)
        s0, s1, s2, s3 = scratch[0], scratch[1], scratch[2], scratch[3]
        for c in range(len(row)):
            row[c] = (s0[c] + s2[c]) + (s1[c] + s3[c])
    if _FEW < len(part) < _MANY:
        add_rest(part[_FEW:], values[_FEW:], row, scratch[0], is_dot)


@kernel(ordered=True)
def square_eight_lanes(part_address: int, values_address: int, row_address: int) -> None:
    """Write the sum of the first eight squared gaps to 256 codes, as a tree of halves."""
    part = float32_at(part_address, _FEW)
    row = float32_at(row_address, NUM_CODES)
    q0, q1, q2, q3 = part[0], part[1], part[2], part[3]
    q4, q5, q6, q7 = part[4], part[5], part[6], part[7]
    v0 = float32_at(values_address, NUM_CODES)
    v1 = float32_at(values_address + _ENTRIES_BYTES, NUM_CODES)
    v2 = float32_at(values_address + 2 * _ENTRIES_BYTES, NUM_CODES)
    v3 = float32_at(values_address + 3 * _ENTRIES_BYTES, NUM_CODES)
    v4 = float32_at(values_address + 4 * _ENTRIES_BYTES, NUM_CODES)
    v5 = float32_at(values_address + 5 * _ENTRIES_BYTES, NUM_CODES)
    v6 = float32_at(values_address + 6 * _ENTRIES_BYTES, NUM_CODES)
    v7 = float32_at(values_address + 7 * _ENTRIES_BYTES, NUM_CODES)
    for c in range(NUM_CODES):
        a, b, d, e = q0 - v0[c], q1 - v1[c], q2 - v2[c], q3 - v3[c]
        f, g, h, i = q4 - v4[c], q5 - v5[c], q6 - v6[c], q7 - v7[c]
        row[c] = ((a * a + f * f) + (d * d + h * h)) + ((b * b + g * g) + (e * e + i * i))


@kernel(ordered=True)
def sum_two_lanes(
    part: NDArray[np.float32],
    values: NDArray[np.float32],
    out: NDArray[np.float32],
    is_full: bool,
    is_dot: bool,
) -> None:
    """Write the sum of lanes 0 and 4: one product each, or two when ``is_full``."""
    q0, q4 = part[0], part[4]
    v0, v4 = values[0], values[4]
    if not is_full:
        for c in range(len(out)):
            out[c] = product(q0, v0[c], is_dot) + product(q4, v4[c], is_dot)
        return
    q8, q12 = part[8], part[12]
    v8, v12 = values[8], values[12]
    if is_dot:
        for c in range(len(out)):
            a, b = q0 * v0[c], q4 * v4[c]
            out[c] = fused_multiply_add(q8, v8[c], a) + fused_multiply_add(q12, v12[c], b)
    else:
        for c in range(len(out)):
            a, b, d, e = q0 - v0[c], q4 - v4[c], q8 - v8[c], q12 - v12[c]
            out[c] = fused_multiply_add(d, d, a * a) + fused_multiply_add(e, e, b * b)


@kernel(ordered=True)
def sum_sixteen_lanes(
    part: NDArray[np.float32],
    values: NDArray[np.float32],
    row: NDArray[np.float32],
    scratch: NDArray[np.float32],
    is_dot: bool,
) -> None:
    """Write the sum of more than 16 products in sixteen lanes."""
    whole = len(part) // _MANY * _MANY
    row[:] = np.float32(0)
    if whole == _MANY:  # one product per lane
        add_in_order(part[:_MANY], values[:_MANY], row, is_dot)
    else:
        for lane in range(_MANY):
            scratch[:] = np.float32(0)
            for s in range(lane, whole, _MANY):
                add_in_order(part[s : s + 1], values[s : s + 1], scratch, is_dot)
            for c in range(len(row)):
                row[c] += scratch[c]
    if whole < len(part):
        add_rest(part[whole:], values[whole:], row, scratch, is_dot)


@warmup
def _warm() -> None:
    codebook = np.ones((1, 4, NUM_CODES), np.float32)
    fill_table(np.ones(4, np.float32), codebook, np.empty((1, NUM_CODES), np.float32), True)
