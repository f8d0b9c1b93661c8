"""Memory by address inside kernels: views of it, and prefetching.

A kernel's signature depends on whether an array is writable, and views of a mapped file are not.
Addresses (int64) have one type only, and a table of them names any number of blocks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from numba.np.numpy_support import carray

from lance_core.kernels.compile import kernel

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from ctypes import c_void_p

    from numba.core.base import BaseContext
    from numpy.typing import NDArray

_READ = 0
_KEEP_IN_ALL_CACHES = 3
_DATA = 1
_CACHE_LINE_BYTES = 64


def _pointer(typing_context: object, address: object) -> object:
    def codegen(
        context: BaseContext, builder: ir.IRBuilder, signature: object, args: Sequence[ir.Value]
    ) -> ir.Value:
        return builder.inttoptr(args[0], cgutils.voidptr_t)

    return types.voidptr(types.int64), codegen


def _prefetch(typing_context: object, address: object) -> object:
    def codegen(
        context: BaseContext, builder: ir.IRBuilder, signature: object, args: Sequence[ir.Value]
    ) -> ir.Value:
        pointer = builder.inttoptr(args[0], cgutils.voidptr_t)
        number = ir.IntType(32)
        shape = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, number, number, number])
        name = "llvm.prefetch.p0"
        function = builder.module.globals.get(name)
        if function is None:
            function = ir.Function(builder.module, shape, name)
        hints = [number(_READ), number(_KEEP_IN_ALL_CACHES), number(_DATA)]
        builder.call(function, [pointer, *hints])
        return ir.Constant(cgutils.voidptr_t, None)

    return types.void(types.int64), codegen


pointer_at = cast("Callable[[int], c_void_p]", intrinsic(_pointer))
"""Turn an address into a pointer; inside kernels only."""

prefetch = cast("Callable[[int], None]", intrinsic(_prefetch))
"""Ask for the cache line at an address; any address is harmless. Inside kernels only."""


@kernel
def bytes_at(address: int, length: int) -> NDArray[np.uint8]:
    """View ``length`` bytes at ``address``; the caller keeps the memory alive."""
    view: NDArray[np.uint8] = carray(pointer_at(address), length, np.uint8)
    return view


@kernel
def int16_at(address: int, length: int) -> NDArray[np.int16]:
    """View ``length`` int16 at ``address``, which need not be aligned."""
    view: NDArray[np.int16] = carray(pointer_at(address), length, np.int16)
    return view


@kernel
def uint32_at(address: int, length: int) -> NDArray[np.uint32]:
    """View ``length`` little-endian uint32 at ``address``, which need not be aligned."""
    view: NDArray[np.uint32] = carray(pointer_at(address), length, np.uint32)
    return view


@kernel
def uint64_at(address: int, length: int) -> NDArray[np.uint64]:
    """View ``length`` little-endian uint64 at ``address``, which need not be aligned."""
    view: NDArray[np.uint64] = carray(pointer_at(address), length, np.uint64)
    return view


@kernel
def int64_at(address: int, length: int) -> NDArray[np.int64]:
    """View ``length`` int64 at ``address``, which need not be aligned."""
    view: NDArray[np.int64] = carray(pointer_at(address), length, np.int64)
    return view


@kernel
def int64_rows_at(address: int, num_rows: int, width: int) -> NDArray[np.int64]:
    """View rows of ``width`` int64 at ``address``, which need not be aligned."""
    view: NDArray[np.int64] = carray(pointer_at(address), (num_rows, width), np.int64)
    return view


@kernel
def float32_at(address: int, length: int) -> NDArray[np.float32]:
    """View ``length`` float32 at ``address``, which need not be aligned."""
    view: NDArray[np.float32] = carray(pointer_at(address), length, np.float32)
    return view


@kernel
def prefetch_bytes(address: int, length: int) -> None:
    """Ask for every cache line of a stretch of memory."""
    for line in range(0, length, _CACHE_LINE_BYTES):
        prefetch(address + line)


def address_of(array: NDArray[np.generic]) -> int:
    """Return where the first element of a C-contiguous array lies."""
    address: int = array.__array_interface__["data"][0]
    return address
