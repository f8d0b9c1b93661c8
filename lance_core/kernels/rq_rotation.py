"""The rotation that RaBitQ applies to vectors before it keeps their signs.

Files describe it by sign bits of four rounds of flips and Hadamard transforms ("fast") or by an
orthogonal matrix. Both keep lengths and inner products, so only what is compared with codes has to
be rotated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel, warmup

if TYPE_CHECKING:
    from numpy.typing import NDArray

NUM_ROUNDS = 4


@kernel
def rotate(
    vector: NDArray[np.float32],
    signs: NDArray[np.float32],
    matrix: NDArray[np.float32],
    rotated: NDArray[np.float32],
) -> None:
    """Rotate a vector of shape ``(d,)`` into ``rotated``, which does not share its memory.

    Parameters
    ----------
    signs
        Shape ``(4, d)``: 1 or -1 per round and coordinate; not used with a matrix.
    matrix
        Shape ``(d, d)``; shape ``(0, d)`` for the fast rotation.
    """
    if len(matrix) == 0:
        rotated[:] = vector
        rotate_fast(rotated, signs)
        return
    for i in range(len(matrix)):
        row = matrix[i]
        total = np.float32(0)
        for j in range(len(vector)):
            total += row[j] * vector[j]
        rotated[i] = total


@kernel(ordered=True)
def rotate_fast(vector: NDArray[np.float32], signs: NDArray[np.float32]) -> None:
    """Rotate in place, every float rounded as pylance rounds it.

    Notes
    -----
    Vector index page, section 4.4: the transform runs over a power of two of coordinates, the first
    or the last ones in turn; where these are not all, sums and gaps of the two halves mix them.
    """
    dimension = len(vector)
    width = 1
    while 2 * width <= dimension:
        width *= 2
    gain = np.float32(1) / np.sqrt(np.float32(width))
    for turn in range(NUM_ROUNDS):
        flips = signs[turn]
        for j in range(dimension):
            vector[j] *= flips[j]
        first = 0 if turn % 2 == 0 else dimension - width
        transform(vector[first : first + width], gain)
        if width != dimension:
            mix_halves(vector)
    if width != dimension:
        for j in range(dimension):
            vector[j] *= np.float32(0.25)


@kernel(ordered=True)
def transform(values: NDArray[np.float32], gain: np.float32) -> None:
    """Apply the Walsh-Hadamard transform in natural order, in place, times ``gain``."""
    half = 1
    while half < len(values):
        for start in range(0, len(values), 2 * half):
            for i in range(start, start + half):
                a, b = values[i], values[i + half]
                values[i] = a + b
                values[i + half] = a - b
        half *= 2
    for i in range(len(values)):
        values[i] *= gain


@kernel(ordered=True)
def mix_halves(vector: NDArray[np.float32]) -> None:
    """Replace both halves by their sum and their difference."""
    half = len(vector) // 2
    for i in range(half):
        a, b = vector[i], vector[i + half]
        vector[i] = a + b
        vector[i + half] = a - b


@warmup
def _warm() -> None:
    vector, signs = np.ones(8, np.float32), np.ones((NUM_ROUNDS, 8), np.float32)
    rotate(vector, signs, np.empty((0, 8), np.float32), vector.copy())
