"""Rows of a fragment that a set holds, a few at a time."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from lance_core.row_set import bitmap_offsets, to_ordinals

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyroaring import BitMap

_BLOCK_WORDS = 1024
_WORD_BITS = 64


class MaskedRows:
    """The members of a dense bitset over row offsets, by their places.

    Parameters
    ----------
    words
        The bitset.
    num_rows
        How many members it has.
    """

    def __init__(self, words: NDArray[np.uint64], num_rows: int) -> None:
        self._words = words
        self._num_rows = num_rows

    def __len__(self) -> int:
        return self._num_rows

    def row_offsets(self, start: int, stop: int) -> NDArray[np.int64]:
        """Return the members of places ``[start, stop)``, in ascending order."""
        before = self._before_blocks
        first = int(np.searchsorted(before, start, side="right")) - 1
        end = int(np.searchsorted(before, stop, side="left"))
        words = self._words[first * _BLOCK_WORDS : end * _BLOCK_WORDS]
        members = to_ordinals(words)[start - before[first] : stop - before[first]]
        return members.astype(np.int64) + first * _BLOCK_WORDS * _WORD_BITS

    @cached_property
    def _before_blocks(self) -> NDArray[np.int64]:
        """Members before each block of words, shape ``(b + 1,)``."""
        counts = np.bitwise_count(self._words).astype(np.int64)
        starts = np.arange(0, len(counts), _BLOCK_WORDS)
        return np.concatenate(([0], np.cumsum(np.add.reduceat(counts, starts))))


class BitmapRows:
    """The members of a bitmap of row offsets, by their places."""

    def __init__(self, offsets: BitMap) -> None:
        self._offsets = offsets

    def __len__(self) -> int:
        return len(self._offsets)

    def row_offsets(self, start: int, stop: int) -> NDArray[np.int64]:
        """Return the members of places ``[start, stop)``, in ascending order."""
        is_whole = start == 0 and stop == len(self)
        some = self._offsets if is_whole else self._offsets[start:stop]
        return bitmap_offsets(some).astype(np.int64)
