"""Packing extra codes of RaBitQ, one a byte, into the bytes of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel
from lance_core.kernels.rq_extra import FIRST, LENGTH, MASK, SHIFT

if TYPE_CHECKING:
    from numpy.typing import NDArray


@kernel
def pack_fields(
    codes: NDArray[np.uint8],
    fields: NDArray[np.int64],
    dimensions: NDArray[np.int64],
    units: NDArray[np.int64],
    packed: NDArray[np.uint8],
) -> None:
    """Pack codes of shape ``(n, d)``.

    Parameters
    ----------
    fields
        Shape ``(f, 4)``, as `lance_core.kernels.rq_extra` takes them.
    dimensions
        Shape ``(w,)``: which dimension each byte of each field holds; ``d`` and more for padding.
    units
        Shape ``(w,)``: which bit of the code is the lowest there, counted from 0.
    packed
        Shape ``(n, row_bytes)``, zeros: receives rows with all planes behind their other bytes.
    """
    num_rows, dimension = codes.shape
    for i in range(num_rows):
        own, row = codes[i], packed[i]
        w = 0
        for f in range(len(fields)):
            shift, mask = fields[f, SHIFT], fields[f, MASK]
            first = fields[f, FIRST]
            for b in range(first, first + fields[f, LENGTH]):
                if dimensions[w] < dimension:
                    bits = (np.int64(own[dimensions[w]]) >> units[w]) & mask
                    row[b] |= np.uint8(bits << shift)
                w += 1
