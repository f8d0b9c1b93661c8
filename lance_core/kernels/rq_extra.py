"""Extra codes of RaBitQ: more bits of every dimension, summed from their packed bytes.

A row is read only when its sign code did not rule it out, so its bytes stay packed. All layouts are
runs of bytes that hold the same bits of other dimensions at the same places: a *field* is a shift
and a mask over a run of bytes, with one weight per byte. The inner product of a query with the
codes is then a sum over fields, whatever the number of bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel
from lance_core.kernels.memory import bytes_at, float32_at

if TYPE_CHECKING:
    from numpy.typing import NDArray

FIRST = 0
LENGTH = 1
SHIFT = 2
MASK = 3
_FLOAT_BYTES = 4


@kernel(ordered=True)
def fill_weights(
    query: NDArray[np.float32],
    dimensions: NDArray[np.int64],
    factors: NDArray[np.float32],
    weights: NDArray[np.float32],
) -> None:
    """Write the weight of every byte of every field, all of shape ``(w,)``.

    Parameters
    ----------
    query
        Shape ``(d,)``, rotated.
    dimensions
        Which dimension a byte holds; ``d`` and more for padding.
    factors
        What the lowest bit of the field counts.
    """
    for i in range(len(weights)):
        dimension = dimensions[i]
        value = query[dimension] if dimension < len(query) else np.float32(0)
        weights[i] = value * factors[i]


@kernel
def sum_fields(
    row_address: int, fields: NDArray[np.int64], weights: NDArray[np.float32]
) -> np.float32:
    """Return the inner product of the query with the codes of the row that lies at an address.

    Parameters
    ----------
    fields
        Shape ``(f, 4)``: first byte, number of bytes, shift and mask of each field.
    weights
        Shape ``(w,)``: those of the first field, then those of the next.
    """
    total = np.float32(0)
    weights_address = weights.ctypes.data
    for f in range(len(fields)):
        length = fields[f, LENGTH]
        total += sum_field(
            bytes_at(row_address + fields[f, FIRST], length),
            np.uint32(fields[f, SHIFT]),
            np.uint32(fields[f, MASK]),
            float32_at(weights_address, length),
        )
        weights_address += length * _FLOAT_BYTES
    return total


@kernel
def sum_field(
    values: NDArray[np.uint8], shift: np.uint32, mask: np.uint32, weights: NDArray[np.float32]
) -> np.float32:
    """Return the weighted sum of one field."""
    total = np.float32(0)
    for i in range(len(values)):
        code = np.uint32(np.uint32(np.uint32(values[i]) >> shift) & mask)
        total += np.float32(np.int32(code)) * weights[i]
    return total
