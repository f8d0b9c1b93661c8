"""Putting several fields of variable width side by side: the reverse of ``packed_rows``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.memory import bytes_at

if TYPE_CHECKING:
    from numpy.typing import NDArray


@kernel
def join_fields(
    addresses: NDArray[np.int64],
    offsets: NDArray[np.int64],
    length_bytes: NDArray[np.int64],
    row_offsets: NDArray[np.int64],
    out: NDArray[np.uint8],
) -> None:
    """Write the fields of each row, behind their lengths where they have some.

    Parameters
    ----------
    addresses, length_bytes
        Shape ``(f,)``; where the bytes of each field lie, and the width of the length before it
        or 0.
    offsets
        Shape ``(f, n + 1)``; of the values of each field.
    row_offsets
        Shape ``(n + 1,)``; where rows go; a row of no bytes is null and has no fields.
    out
        Shape ``(row_offsets[-1],)``.
    """
    for row in range(row_offsets.shape[0] - 1):
        to = row_offsets[row]
        if to == row_offsets[row + 1]:
            continue
        for field in range(addresses.shape[0]):
            start = offsets[field, row]
            size = offsets[field, row + 1] - start
            for byte in range(length_bytes[field]):
                out[to + byte] = (size >> (8 * byte)) & 0xFF
            to += length_bytes[field]
            out[to : to + size] = bytes_at(addresses[field] + start, size)
            to += size


@warmup
def _warm() -> None:
    none = np.empty(0, np.int64)
    join_fields(
        none, np.empty((0, 1), np.int64), none, np.zeros(1, np.int64), np.empty(0, np.uint8)
    )
