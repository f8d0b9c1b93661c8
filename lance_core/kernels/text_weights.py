"""Weights of postings, and where they lie among documents.

Documents are looked at in windows of 64 with numbers next to each other: one word of a bit set.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel, warmup

if TYPE_CHECKING:
    from numpy.typing import NDArray

WINDOW_SHIFT = 6
"""Document ``d`` is in window ``d >> WINDOW_SHIFT``."""

NO_POSTING = np.float32(-1)
"""Stands in tables of best weights for windows without a posting."""

_SATURATION = np.float32(1.2)
_BY_LENGTH = np.float32(0.75)
_HALF = np.float32(0.5)


@kernel(ordered=True)
def weigh(
    docs: NDArray[np.uint32],
    frequencies: NDArray[np.uint32],
    lengths: NDArray[np.uint32],
    mean_length: np.float32,
    weights: NDArray[np.float32],
) -> None:
    """Write what each posting weighs, before its token's rarity comes in.

    Parameters
    ----------
    docs, frequencies
        Of a posting list, shape ``(n,)``; documents are less than ``len(lengths)``.
    lengths
        Tokens of each document.
    mean_length
        Of all documents that are searched.
    weights
        Shape ``(n,)``, written: not negative.

    Notes
    -----
    Scalar index page, 8.7: every operation rounds to float32.
    """
    one, base = np.float32(1), np.float32(np.float32(1) - _BY_LENGTH)
    top = np.float32(_SATURATION + one)
    for place in range(docs.shape[0]):
        frequency = np.float32(frequencies[place])
        length = np.float32(np.float32(_BY_LENGTH * np.float32(lengths[docs[place]])) / mean_length)
        damping = np.float32(_SATURATION * np.float32(base + length))
        weights[place] = np.float32(np.float32(top * frequency) / np.float32(frequency + damping))


@kernel(ordered=True, brief=True)
def rarity_of(num_docs: int, document_frequency: int) -> np.float32:
    """Return what the weights of a token are multiplied with that some of all documents have.

    Notes
    -----
    Scalar index page, 8.7, but for the logarithm: pylance takes C's ``logf``, which is one bit off
    in one of ten thousand cases, and so does compiled code (observed with 14.0.2).
    """
    having = np.float32(document_frequency)
    lacking = np.float32(max(np.float32(num_docs) - having, np.float32(0)))
    odds = np.float32(np.float32(lacking + _HALF) / np.float32(having + _HALF))
    return np.float32(math.log(np.float32(odds + np.float32(1))))


@kernel
def write_starts(docs: NDArray[np.uint32], shift: int, starts: NDArray[np.uint32]) -> None:
    """Write for each cell of ``2 ** shift`` documents its first posting, and the end of the last.

    ``starts`` has one entry more than there are cells, and documents lie in these.
    """
    place = np.int64(0)
    for cell in range(starts.shape[0]):
        while place < docs.shape[0] and np.int64(docs[place]) >> shift < cell:
            place += 1
        starts[cell] = place


@kernel
def write_best(
    docs: NDArray[np.uint32], weights: NDArray[np.float32], best: NDArray[np.float32]
) -> None:
    """Write the best weight in each window, or ``NO_POSTING``."""
    best[:] = NO_POSTING
    for place in range(docs.shape[0]):
        window = docs[place] >> np.uint32(WINDOW_SHIFT)
        best[window] = max(best[window], weights[place])


@warmup
def _warm() -> None:
    docs = np.zeros(1, np.uint32)
    weights = np.zeros(1, np.float32)
    weigh(docs, docs, docs, np.float32(1), weights)
    rarity_of(1, 1)
    write_starts(docs, WINDOW_SHIFT, np.zeros(2, np.uint32))
    write_best(docs, weights, np.zeros(1, np.float32))
