"""The numbers of JSONB (file format, section 2.5), and its words inside kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

SCALAR, ARRAY, OBJECT = 0x20000000, 0x80000000, 0x40000000
CONTAINER_KIND, CONTAINER_SIZE = 0xE0000000, 0x1FFFFFFF
NULL, STRING, NUMBER, FALSE, TRUE, NESTED = range(6)
KIND_SHIFT, LENGTH = 28, 0x0FFFFFFF
WORD_BYTES = 4
DOUBLE_BYTES = 8
ZERO, NAN, INFINITY, NEGATIVE_INFINITY = 0x00, 0x10, 0x20, 0x30
NEGATIVE, POSITIVE, DOUBLE = 0x40, 0x50, 0x60


@kernel
def word_at(data: NDArray[np.uint8], at: int) -> int:
    """Return the big-endian word at ``at``."""
    high = np.int64(data[at]) << 24 | np.int64(data[at + 1]) << 16
    low = np.int64(data[at + 2]) << 8 | np.int64(data[at + 3])
    return high | low  # type: ignore[return-value]  # an int64


@kernel
def put_word(data: NDArray[np.uint8], at: int, word: int) -> None:
    """Write a big-endian word at ``at``."""
    for byte in range(4):
        data[at + byte] = np.uint8((word >> (24 - 8 * byte)) & 0xFF)


@kernel
def integer_at(data: NDArray[np.uint8], start: int, end: int) -> np.uint64:
    """Return the big-endian integer of up to 8 bytes in ``[start, end)``."""
    value = np.uint64(0)
    for at in range(start, end):
        value = (value << np.uint64(8)) | np.uint64(data[at])
    return value


@kernel
def put_integer(data: NDArray[np.uint8], at: int, value: np.uint64, width: int) -> None:
    """Write the low ``width`` bytes of ``value``, big endian."""
    for byte in range(width):
        data[at + byte] = np.uint8((value >> np.uint64(8 * (width - 1 - byte))) & np.uint64(0xFF))
