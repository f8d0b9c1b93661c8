"""Rows of a partition that are equal to an earlier one.

Searches would tell them apart by nothing, and their links would only lead to each other. So one of
each takes part in the graph, and the others hang from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SEED = 42
_BLOCK_ROWS = 1 << 14
_WORD_BYTES = (8, 4, 2, 1)


@dataclass(frozen=True, slots=True, eq=False)
class RowCopies:
    """Which rows are equal to which.

    Parameters
    ----------
    rows
        Shape ``(c,)``, uint32: those that are equal to another, together by that.
    originals
        Shape ``(c,)``, uint32: the first row that each is equal to.
    """

    rows: NDArray[np.uint32]
    originals: NDArray[np.uint32]


def find_copies(rows: NDArray[np.generic]) -> RowCopies:
    """Find rows that have the bytes of an earlier one; array of shape ``(n, width)``.

    Different rows of equal hash, of which there are hardly any, may leave copies unfound.
    """
    hashes = _hashes(rows)
    order = np.argsort(hashes, kind="stable")
    in_order = hashes[order]
    is_first = np.append(True, in_order[1:] != in_order[:-1])
    if is_first.all():
        return RowCopies(np.zeros(0, np.uint32), np.zeros(0, np.uint32))
    starts = np.flatnonzero(is_first)
    originals = order[starts[np.cumsum(is_first) - 1]]
    candidates, their_originals = order[~is_first], originals[~is_first]
    is_equal = np.empty(len(candidates), np.bool_)
    for start in range(0, len(candidates), _BLOCK_ROWS):
        part = slice(start, start + _BLOCK_ROWS)
        ours, others = _bytes_of(rows[candidates[part]]), _bytes_of(rows[their_originals[part]])
        is_equal[part] = (ours == others).all(axis=1)
    return RowCopies(
        candidates[is_equal].astype(np.uint32), their_originals[is_equal].astype(np.uint32)
    )


def _hashes(rows: NDArray[np.generic]) -> NDArray[np.uint64]:
    """Return a number per row: a sum of its words times odd numbers drawn at random."""
    row_bytes = rows.shape[1] * rows.itemsize
    word = next(size for size in _WORD_BYTES if row_bytes % size == 0)
    words = rows.view(np.dtype(f"u{word}"))
    generator = np.random.default_rng(_SEED)
    factors = generator.integers(0, 1 << 63, words.shape[1], np.uint64) * np.uint64(2)
    factors += np.uint64(1)
    hashes = np.empty(len(rows), np.uint64)
    for start in range(0, len(rows), _BLOCK_ROWS):
        part = slice(start, start + _BLOCK_ROWS)
        hashes[part] = words[part].astype(np.uint64) @ factors
    return hashes


def _bytes_of(rows: NDArray[np.generic]) -> NDArray[np.uint8]:
    return rows.view(np.uint8)
