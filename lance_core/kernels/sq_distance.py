"""Distances between scalar-quantised vectors, and of a query to them.

Codes are bytes; the squared distance of two codes is a sum of whole numbers, so its order does not
matter. Each step is cast, because wider numbers in the inner loop cost three times as much
(hot-path page, section 3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

LARGEST_CODE = 255


@kernel(ordered=True)
def quantise(
    query: NDArray[np.float32], start: float, end: float, codes: NDArray[np.int16]
) -> None:
    """Write the code of each dimension of ``query``, both of shape ``(d,)``.

    Codes are cut off, not rounded, and kept within a byte; bounds that are equal make every code 0
    (vector index page, section 4.3).
    """
    span = end - start
    for j in range(len(query)):
        scaled = (np.float64(query[j]) - start) * LARGEST_CODE / span if span != 0 else 0.0
        # Written so that NaN becomes 0.
        codes[j] = np.int16(min(scaled, LARGEST_CODE)) if scaled > 0 else np.int16(0)


@kernel
def squared_code_gap(row: NDArray[np.uint8], codes: NDArray[np.int16]) -> np.int32:
    """Return the squared l2 distance of two codes of shape ``(d,)``, in steps of the bounds."""
    total = np.int32(0)
    for j in range(len(codes)):
        gap = np.int16(np.int16(row[j]) - codes[j])
        total = np.int32(total + np.int32(np.int32(gap) * np.int32(gap)))
    return total


@kernel
def weighted_codes(row: NDArray[np.uint8], query: NDArray[np.float32]) -> np.float32:
    """Return the inner product of a code and a query of shape ``(d,)``."""
    total = np.float32(0)
    for j in range(len(query)):
        total += np.float32(row[j]) * query[j]
    return total
