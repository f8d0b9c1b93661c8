"""Which vectors an index can hold, and vectors of unit length."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel
from lance_core.kernels.memory import float32_at

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FLOAT_BYTES = 4


@kernel
def mark_finite(address: int, dimension: int, are_finite: NDArray[np.bool_]) -> None:
    """Clear the marks of float32 vectors, shape ``(n, dimension)``, with a NaN or an infinity."""
    for i in range(len(are_finite)):
        vector = float32_at(address + i * dimension * _FLOAT_BYTES, dimension)
        total = np.float32(0)
        for j in range(dimension):
            total += vector[j] * np.float32(0)  # NaN for those, and for nothing else
        are_finite[i] &= total == 0


@kernel(ordered=True)
def normalise(address: int, unit: NDArray[np.float32], have_length: NDArray[np.bool_]) -> None:
    """Divide float32 vectors by their length, and clear the marks of those that have none.

    Parameters
    ----------
    address
        Where the vectors lie, shape ``(n, d)``, finite where ``have_length`` is set.
    unit
        Shape ``(n, d)``: receives vectors of unit length; others are left as they are.
    have_length
        Shape ``(n,)``.

    Notes
    -----
    Squares are added one after the other, as pylance 14.0.2 adds them. Of lengths that leave
    float32 it keeps NaN or nothing; these are measured by float64 here.
    """
    num_rows, dimension = unit.shape
    for i in range(num_rows):
        if not have_length[i]:
            continue
        vector = float32_at(address + i * dimension * _FLOAT_BYTES, dimension)
        square = np.float32(0)
        for j in range(dimension):
            square += vector[j] * vector[j]
        if np.float32(1e-30) < square < np.float32(np.inf):
            length = np.sqrt(square)
            for j in range(dimension):
                unit[i, j] = vector[j] / length
            continue
        wide = 0.0
        for j in range(dimension):
            wide += np.float64(vector[j]) * np.float64(vector[j])
        have_length[i] = wide > 0
        for j in range(dimension):
            unit[i, j] = np.float64(vector[j]) / np.sqrt(wide)
