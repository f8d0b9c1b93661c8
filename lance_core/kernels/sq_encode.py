"""Coding vectors by scalar quantisation: one byte a coordinate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel
from lance_core.kernels.memory import float32_at

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LARGEST = 255.0


@kernel(ordered=True)
def encode_scalars(address: int, start: float, end: float, codes: NDArray[np.uint8]) -> None:
    """Write the codes of the float32 numbers at an address, shape ``(n,)``; all 0 without a range.

    Notes
    -----
    Vector index page, section 4.3: float64, cut off and not rounded, as pylance 14.0.2 does.
    """
    numbers = float32_at(address, len(codes))
    gap = end - start
    if gap == 0:
        codes[:] = 0
        return
    for i in range(len(codes)):
        level = (np.float64(numbers[i]) - start) * _LARGEST / gap
        codes[i] = np.uint8(min(max(level, 0.0), _LARGEST))
