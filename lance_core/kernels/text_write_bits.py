"""Numbers of posting lists to bytes, packed in lanes or as varints; `text_bits` reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel
from lance_core.kernels.text_bits import SLOTS, WORD_BITS

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LOW_BITS = 127


@kernel
def signed(number: np.unsignedinteger) -> int:
    """Return a number as one that may be calculated with: `int` keeps it unsigned in kernels."""
    return np.int64(number)  # type: ignore[return-value]  # numbers of kernels are int64


@kernel
def bits_of(number: int) -> int:
    """Return how many bits a number takes; none for 0."""
    size = 0
    while number > 0:
        number >>= 1
        size += 1
    return size


@kernel
def put_varint(out: NDArray[np.uint8], at: int, number: int) -> int:
    """Write a number as a varint; returns the position behind."""
    while number > _LOW_BITS:
        out[at] = number & _LOW_BITS | 128
        number >>= 7
        at += 1
    out[at] = number
    return at + 1


@kernel
def put_word(out: NDArray[np.uint8], at: int, word: int) -> int:
    """Write 32 bits in little-endian order; returns the position behind."""
    for index in range(4):
        out[at + index] = (word >> (8 * index)) & 255
    return at + 4


@kernel
def pack_lanes(
    values: NDArray[np.uint32],
    start: int,
    width: int,
    lanes: int,
    out: NDArray[np.uint8],
    at: int,
) -> int:
    """Pack the lowest ``width`` bits of ``32 * lanes`` values; returns the position behind."""
    mask = (np.uint64(1) << np.uint64(width)) - np.uint64(1)
    for lane in range(lanes):
        held, bits, word = np.uint64(0), 0, at + 4 * lane
        for slot in range(SLOTS):
            held |= (np.uint64(values[start + slot * lanes + lane]) & mask) << np.uint64(bits)
            bits += width
            if bits >= WORD_BITS:
                put_word(out, word, signed(held & np.uint64(0xFFFFFFFF)))
                held >>= np.uint64(WORD_BITS)
                bits -= WORD_BITS
                word += 4 * lanes
    return at + 4 * lanes * width


@kernel
def put_packed_small(
    values: NDArray[np.uint32], start: int, out: NDArray[np.uint8], at: int
) -> int:
    """Write 128 numbers behind a byte that tells their width; returns the position behind."""
    most = np.uint32(0)
    for index in range(start, start + 4 * SLOTS):
        most |= values[index]
    width = bits_of(signed(most))
    out[at] = width
    return pack_lanes(values, start, width, 4, out, at + 1)
