"""Rows of several fields of variable width, side by side (file format, section 5.12)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.bitpacking import DONE
from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.gather import offset_at

if TYPE_CHECKING:
    from numpy.typing import NDArray


@kernel
def find_fields(
    addresses: NDArray[np.int64],
    sizes: NDArray[np.int64],
    value_bytes: NDArray[np.int64],
    length_bytes: NDArray[np.int64],
    blank: int,
    field_addresses: NDArray[np.int64],
    field_sizes: NDArray[np.int64],
) -> int:
    """Find the fields of each row.

    Parameters
    ----------
    addresses, sizes
        Shape ``(n,)``; where each row lies and its bytes; a row of no bytes is null.
    value_bytes, length_bytes
        Shape ``(f,)``; the width of each field, or 0 and the width (4 or 8) of the length that
        stands before it.
    blank
        Address of as many bytes as the widest field has: what fields of a null row hold.
    field_addresses, field_sizes
        Shape ``(f, n)``; receive where the fields lie.

    Returns
    -------
    int
        ``DONE``, or the first row whose fields do not fill it.
    """
    for row in range(addresses.shape[0]):
        at = addresses[row]
        end = at + sizes[row]
        for field in range(value_bytes.shape[0]):
            size = value_bytes[field]
            if sizes[row] == 0:
                field_addresses[field, row] = blank
                field_sizes[field, row] = size
                continue
            if length_bytes[field] > 0:
                if length_bytes[field] > end - at:
                    return row
                size = offset_at(at, 0, length_bytes[field])
                at += length_bytes[field]
            if size < 0 or size > end - at:
                return row
            field_addresses[field, row] = at
            field_sizes[field, row] = size
            at += size
        if at != end:
            return row
    return DONE


@warmup
def _warm() -> None:
    none = np.empty(0, np.int64)
    table = np.empty((0, 0), np.int64)
    find_fields(none, none, none, none, 0, table, table)
