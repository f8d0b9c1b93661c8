"""Row addresses or ids, as index files list them, made into sets of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.name_bits import note_highest, set_names
from lance_core.row_set import bitmap_of_words, bitmaps_by_fragment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.index.scalar.fragment_rows import FragmentRows

_MANY = 1 << 15
"""From so many on, setting bits takes less time than sorting."""

_MOST_FRAGMENTS = 1 << 16
_WORD_BITS = 64
_BITS_PER_NAME = 16
"""Where fewer bits are set bitmaps list them, and sorting takes less time than finding them."""
_CONTAINER_WORDS = 1024


def rows_of_names(parts: Sequence[NDArray[np.uint64]]) -> FragmentRows:
    """Return the set of rows of some lists of names, in any order, repeats allowed."""
    if sum(map(len, parts)) >= _MANY:
        rows = _by_bits(parts)
        if rows is not None:
            return rows
    return bitmaps_by_fragment(np.concatenate([*parts, np.zeros(0, np.uint64)]))


def _by_bits(parts: Sequence[NDArray[np.uint64]]) -> FragmentRows | None:
    """Return the rows by setting a bit for each; None where that would take too many bits."""
    highest = np.full(_MOST_FRAGMENTS, -1, np.int64)
    if not all(note_highest(names, highest) for names in parts):
        return None
    fragment_ids = np.flatnonzero(highest >= 0)
    sizes = (highest[fragment_ids] // (_CONTAINER_WORDS * _WORD_BITS) + 1) * _CONTAINER_WORDS
    ends = np.cumsum(sizes)
    if ends[-1] * _WORD_BITS > sum(map(len, parts)) * _BITS_PER_NAME:
        return None
    starts = np.zeros(_MOST_FRAGMENTS, np.int64)
    starts[fragment_ids] = ends - sizes
    words = np.zeros(ends[-1], np.uint64)
    for names in parts:
        set_names(names, starts, words)
    own = np.split(words, ends[:-1])
    return {
        key: bitmap_of_words(each) for key, each in zip(fragment_ids.tolist(), own, strict=True)
    }
