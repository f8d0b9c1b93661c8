"""Sixteen look-ups at once: sums over 32 rows of codes that are packed as files hold them.

A row's code is a string of nibbles, and each nibble picks one of sixteen whole numbers of its
table. The code is written for vectors of sixteen bytes and leaves it to LLVM to find the
instruction that picks sixteen bytes by sixteen nibbles (seen on x86-64 from v2 on, where it is one;
elsewhere the picking falls apart into single bytes: slow, but right).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numba.core.base import BaseContext

LANES = 16
"""Rows whose low nibbles share a vector with the high nibbles of as many others."""

MOST_GROUPS = 256
"""So many numbers of eight bits add up to less than sixteen bits can hold."""

_NIBBLE_BITS = 4
_BYTE_BITS = 8
_NUMBER = ir.IntType(64)
_INDEX = ir.IntType(32)
_BYTE, _WORD = ir.IntType(8), ir.IntType(16)
_BYTES, _WORDS = ir.VectorType(_BYTE, LANES), ir.VectorType(_WORD, LANES // 2)


def _all(lane: ir.IntType, count: int, value: int) -> ir.Constant:
    return ir.Constant(ir.VectorType(lane, count), [value] * count)


def _at(builder: ir.IRBuilder, address: ir.Value, kind: ir.VectorType) -> ir.Value:
    return builder.inttoptr(address, kind.as_pointer())


def _nibbles(builder: ir.IRBuilder, packed: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Return the low and the high nibbles of sixteen bytes.

    Shifted as words and masked: of a shift of bytes LLVM makes a Galois field product where there
    is one, which is slower (64,000 rows of 128 dimensions: 0.048 ms, with the product 0.073).
    """
    mask = _all(_BYTE, LANES, 15)
    shifted = builder.lshr(builder.bitcast(packed, _WORDS), _all(_WORD, LANES // 2, _NIBBLE_BITS))
    return builder.and_(packed, mask), builder.and_(builder.bitcast(shifted, _BYTES), mask)


def _pick(builder: ir.IRBuilder, table: ir.Value, nibbles: ir.Value) -> ir.Value:
    """Return ``table[nibbles]``; a shape that LLVM makes one instruction of where there is one."""
    picked = ir.Constant(_BYTES, ir.Undefined)
    for lane in range(LANES):
        here = ir.Constant(_INDEX, lane)
        place = builder.zext(builder.extract_element(nibbles, here), _INDEX)
        picked = builder.insert_element(picked, builder.extract_element(table, place), here)
    return picked


class _PairSums:
    """Sums of the bytes of sixteen lanes, kept in sixteen bits without widening every vector.

    ``both`` adds pairs of bytes as if they were one number, ``upper`` the upper byte of each pair;
    at the end the upper sums are taken out of the others.
    """

    def __init__(self, builder: ir.IRBuilder) -> None:
        self._builder = builder
        self._shift = _all(_WORD, LANES // 2, _BYTE_BITS)
        self._both = self._new_sum()
        self._upper = self._new_sum()

    def _new_sum(self) -> ir.Value:
        # At the start of the function: elsewhere the stack would grow with every block of rows.
        with self._builder.goto_entry_block():
            place = self._builder.alloca(_WORDS)
        self._builder.store(_all(_WORD, LANES // 2, 0), place)
        return place

    def add(self, numbers: ir.Value) -> None:
        builder = self._builder
        pairs = builder.bitcast(numbers, _WORDS)
        builder.store(builder.add(builder.load(self._both), pairs), self._both)
        upper = builder.lshr(pairs, self._shift)
        builder.store(builder.add(builder.load(self._upper), upper), self._upper)

    def store(self, address: ir.Value) -> None:
        """Write the sums of the even lanes, then those of the odd ones."""
        builder = self._builder
        odd = builder.load(self._upper)
        even = builder.sub(builder.load(self._both), builder.shl(odd, self._shift))
        builder.store(even, _at(builder, address, _WORDS), align=1)
        behind = builder.add(address, ir.Constant(_NUMBER, LANES))
        builder.store(odd, _at(builder, behind, _WORDS), align=1)


def _sum_block(
    typing_context: object, codes: object, table: object, num_groups: object, sums: object
) -> object:
    def codegen(
        context: BaseContext, builder: ir.IRBuilder, signature: object, args: Sequence[ir.Value]
    ) -> ir.Value:
        codes_address, table_address, count, sums_address = args
        first, second = _PairSums(builder), _PairSums(builder)
        with cgutils.for_range(builder, count, intp=_NUMBER) as loop:
            behind = builder.mul(loop.index, ir.Constant(_NUMBER, LANES))
            packed = builder.load(_at(builder, builder.add(codes_address, behind), _BYTES), align=1)
            numbers = builder.load(
                _at(builder, builder.add(table_address, behind), _BYTES), align=1
            )
            low, high = _nibbles(builder, packed)
            first.add(_pick(builder, numbers, low))
            second.add(_pick(builder, numbers, high))
        first.store(sums_address)
        second.store(builder.add(sums_address, ir.Constant(_NUMBER, 2 * LANES)))
        return ir.Constant(cgutils.voidptr_t, None)

    return types.void(types.int64, types.int64, types.int64, types.int64), codegen


sum_block = cast("Callable[[int, int, int, int], None]", intrinsic(_sum_block))
"""Sum the numbers of 32 rows; inside kernels only.

Takes four addresses or counts: where the codes lie, 16 bytes per group, whose low nibbles are those
of rows 0, 8, 1, 9, .. 7, 15 and whose high nibbles are those of the sixteen rows behind; where the
tables lie, 16 bytes per group; the number of groups, at most `MOST_GROUPS`; and where to write the
uint16 sums of the 32 rows, in their order.
"""
