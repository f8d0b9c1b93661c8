"""One row of a bit-packed block at once: all its lanes are one vector.

The vectors are as long as a row, 128 bytes, and LLVM cuts them into what the machine has. A loop
over the lanes takes ten times as long (1,024 values of 64 bits: 850 ns against 80): LLVM must
look at every row whether what is written lies where it reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from numba.np.numpy_support import as_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numba.core.base import BaseContext
    from numba.core.typing.templates import Signature
    from numpy.typing import NDArray

ROW_BYTES = 128
"""Bytes of a row of any T: ``1024 / T`` lanes of T bits."""

_NUMBER = ir.IntType(64)
_INDEX = ir.IntType(32)


def _bits_of(array: types.Array) -> int:
    return 8 * int(as_dtype(array.dtype).itemsize)


class _Row:
    """Makes the code for rows of the elements of an array."""

    def __init__(
        self, context: BaseContext, builder: ir.IRBuilder, array: types.Array, value: ir.Value
    ) -> None:
        self._builder = builder
        view = context.make_array(array)  # type: ignore[no-untyped-call]  # numba has no types there
        self._array = view(context, builder, value)
        self._bits = _bits_of(array)
        self._lane = ir.IntType(self._bits)
        self._lanes = ROW_BYTES * 8 // self._bits
        self._row = ir.VectorType(self._lane, self._lanes)

    def load(self, address: ir.Value) -> ir.Value:
        place = self._builder.inttoptr(address, self._row.as_pointer())
        return self._builder.load(place, align=1)

    def store(self, row: ir.Value, start: ir.Value) -> None:
        place = self._builder.gep(self._array.data, [start])
        place = self._builder.bitcast(place, self._row.as_pointer())
        self._builder.store(row, place, align=1)

    def in_all_lanes(self, number: ir.Value) -> ir.Value:
        if self._bits < _NUMBER.width:
            number = self._builder.trunc(number, self._lane)
        nothing = ir.Constant(self._row, ir.Undefined)
        one = self._builder.insert_element(nothing, number, ir.Constant(_INDEX, 0))
        to_first = ir.Constant(ir.VectorType(_INDEX, self._lanes), [0] * self._lanes)
        return self._builder.shuffle_vector(one, nothing, to_first)

    def shifted_right(self, row: ir.Value, shift: ir.Value) -> ir.Value:
        return self._builder.lshr(row, self.in_all_lanes(shift))

    def shifted_left_by_rest(self, row: ir.Value, shift: ir.Value) -> ir.Value:
        rest = self._builder.sub(ir.Constant(_NUMBER, self._bits), shift)
        return self._builder.shl(row, self.in_all_lanes(rest))


def _element_bits(typing_context: object, array: types.Array) -> object:
    def codegen(
        context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]
    ) -> ir.Value:
        return ir.Constant(_NUMBER, _bits_of(array))

    return types.int64(array), codegen


def _unpack_row(
    typing_context: object,
    address: object,
    shift: object,
    mask: object,
    out: types.Array,
    start: object,
) -> object:
    def codegen(
        context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]
    ) -> ir.Value:
        row = _Row(context, builder, out, args[3])
        values = row.shifted_right(row.load(args[0]), args[1])
        row.store(builder.and_(values, row.in_all_lanes(args[2])), args[4])
        return ir.Constant(cgutils.voidptr_t, None)

    return types.void(types.int64, types.int64, types.uint64, out, types.int64), codegen


def _unpack_split_row(
    typing_context: object,
    address: object,
    shift: object,
    mask: object,
    out: types.Array,
    start: object,
) -> object:
    def codegen(
        context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]
    ) -> ir.Value:
        row = _Row(context, builder, out, args[3])
        behind = builder.add(args[0], ir.Constant(_NUMBER, ROW_BYTES))
        low = row.shifted_right(row.load(args[0]), args[1])
        high = row.shifted_left_by_rest(row.load(behind), args[1])
        values = builder.and_(builder.or_(low, high), row.in_all_lanes(args[2]))
        row.store(values, args[4])
        return ir.Constant(cgutils.voidptr_t, None)

    return types.void(types.int64, types.int64, types.uint64, out, types.int64), codegen


element_bits = cast("Callable[[NDArray[np.unsignedinteger]], int]", intrinsic(_element_bits))
"""Return the bits of an array's elements, which the compiler knows; inside kernels only."""

unpack_row = cast(
    "Callable[[int, int, np.uint64, NDArray[np.unsignedinteger], int], None]",
    intrinsic(_unpack_row),
)
"""Write ``(lane >> shift) & mask`` of every lane of the row at an address; inside kernels only.

Takes the address, the shift (less than the bits of an element), the mask, and an array with the
position from which on the row is written.
"""

unpack_split_row = cast(
    "Callable[[int, int, np.uint64, NDArray[np.unsignedinteger], int], None]",
    intrinsic(_unpack_split_row),
)
"""As `unpack_row`, for values whose upper bits are the lowest of the row behind; no shift of 0."""
