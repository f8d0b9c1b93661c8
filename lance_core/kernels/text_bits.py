"""Numbers of posting lists: packed in lanes, or one after another in as many bytes as they need.

Packed are 32 numbers for each lane of 32-bit words (scalar index page, 8.5): number ``i`` is in
lane ``i % lanes``, and lanes take turns word by word. Four lanes hold 128 numbers, eight 256.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

WORD_BITS = 32
SLOTS = 32
TOO_SHORT = -1

_GOES_ON = 128
"""The bit of a varint's byte that says that another follows."""


@kernel
def unpack_lanes(
    view: NDArray[np.uint8],
    at: int,
    width: int,
    lanes: int,
    out: NDArray[np.uint32],
    start: int,
) -> None:
    """Unpack ``32 * lanes`` numbers of ``width`` bits, at most 32, to ``out`` from ``start`` on.

    The caller has checked that ``4 * lanes * width`` bytes are there.
    """
    if width == 0:
        out[start : start + SLOTS * lanes] = 0
        return
    mask = (np.uint64(1) << np.uint64(width)) - np.uint64(1)
    for lane in range(lanes):
        held, bits, word = np.uint64(0), 0, at + 4 * lane
        for slot in range(SLOTS):
            if bits < width:
                held |= np.uint64(word_at(view, word)) << np.uint64(bits)
                bits += WORD_BITS
                word += 4 * lanes
            out[start + slot * lanes + lane] = np.uint32(held & mask)
            held >>= np.uint64(width)
            bits -= width


@kernel
def byte_at(view: NDArray[np.uint8], at: int) -> int:
    """Return the byte at a position as a signed number, which may be calculated with."""
    return np.int64(view[at])  # type: ignore[return-value]  # `int` keeps it unsigned in kernels


@kernel
def word_at(view: NDArray[np.uint8], at: int) -> np.uint32:
    """Return the little-endian 32-bit number at a position."""
    return (
        np.uint32(view[at])
        | np.uint32(view[at + 1]) << np.uint32(8)
        | np.uint32(view[at + 2]) << np.uint32(16)
        | np.uint32(view[at + 3]) << np.uint32(24)
    )


@kernel
def varint_at(view: NDArray[np.uint8], at: int, end: int) -> tuple[int, int]:
    """Return a varint of 32 bits and the position behind it, ``TOO_SHORT`` if it does not fit."""
    number = 0
    for shift in range(0, 35, 7):
        if at >= end:
            return 0, TOO_SHORT
        byte = byte_at(view, at)
        at += 1
        number |= (byte & (_GOES_ON - 1)) << shift
        if byte < _GOES_ON:
            return (number, at) if number >> WORD_BITS == 0 else (0, TOO_SHORT)
    return 0, TOO_SHORT
