"""Hamming distances: how many bits differ between vectors of bytes.

Whole vectors are compared 8 bytes at a time. Of a length that is no multiple of 8, the last 8 bytes
are read once more and those that were counted before are shifted out, so that nothing outside the
vector is touched: it may be the last of a mapped file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np
from numba.core import types
from numba.extending import intrinsic

from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.memory import address_of, bytes_at, uint64_at

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from llvmlite import ir
    from numba.core.base import BaseContext
    from numpy.typing import NDArray

_WORD_BYTES = 8


def _popcount(typing_context: object, word: object) -> object:
    def codegen(
        context: BaseContext, builder: ir.IRBuilder, signature: object, args: Sequence[ir.Value]
    ) -> ir.Value:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), codegen


popcount = cast("Callable[[np.uint64], np.uint64]", intrinsic(_popcount))
"""Count the bits of a word that are set; inside kernels only."""


@kernel
def hamming_distance(row: int, query: int, width: int) -> np.float32:
    """Return the number of differing bits of two vectors of ``width`` bytes at two addresses."""
    differing = np.uint64(0)
    num_words = width // _WORD_BYTES
    words, asked = uint64_at(row, num_words), uint64_at(query, num_words)
    for i in range(num_words):
        differing += popcount(words[i] ^ asked[i])
    rest = width % _WORD_BYTES
    if rest == 0:
        return np.float32(differing)
    if num_words == 0:
        few, asked_few = bytes_at(row, width), bytes_at(query, width)
        for i in range(width):
            differing += popcount(np.uint64(few[i] ^ asked_few[i]))
        return np.float32(differing)
    last = width - _WORD_BYTES
    counted = np.uint64(8 * (_WORD_BYTES - rest))
    gap = uint64_at(row + last, 1)[0] ^ uint64_at(query + last, 1)[0]
    return np.float32(differing + popcount(gap >> counted))


@kernel
def differing_bits(numbers: NDArray[np.float32], query: NDArray[np.float32]) -> np.float32:
    """Return the hamming distance of bytes that are held as floats, both of shape ``(d,)``."""
    differing = np.uint64(0)
    for j in range(len(query)):
        differing += popcount(np.uint64(np.uint8(numbers[j]) ^ np.uint8(query[j])))
    return np.float32(differing)


@kernel
def as_bytes(numbers: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Return whole numbers from 0 to 255 as bytes, shape ``(d,)``."""
    codes = np.empty(len(numbers), np.uint8)
    for j in range(len(numbers)):
        codes[j] = np.uint8(numbers[j])
    return codes


@warmup
def _warm() -> None:
    numbers = np.ones(9, np.float32)
    codes = as_bytes(numbers)
    hamming_distance(address_of(codes), address_of(codes), len(codes))
    differing_bits(numbers, numbers)
