"""Document lengths as scores of blocks of 256 postings take them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_EXACT_BITS = 4


def rounded_lengths(lengths: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Round document lengths down to their four leading bits (scalar index page, 8.7)."""
    bits = np.frexp(lengths.astype(np.float64))[1]
    shifts = np.maximum(bits - _EXACT_BITS, 0).astype(np.uint32)
    rounded: NDArray[np.uint32] = lengths >> shifts << shifts
    return rounded
