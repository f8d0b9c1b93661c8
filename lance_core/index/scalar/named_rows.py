"""Row addresses or ids, as index files list them, made into sets of rows."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np
from pyroaring import BitMap

from lance_core.kernels.name_bits import note_highest, set_names
from lance_core.row_set import bitmaps_by_fragment, to_ordinals

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.index.scalar.fragment_rows import FragmentRows

_MANY = 1 << 15
"""From so many on, setting bits takes less time than sorting."""

_MOST_FRAGMENTS = 1 << 16
_WORD_BITS = 64
_CONTAINER_WORDS = 1024
_LONGEST_ARRAY = 4096
_HEAD = struct.Struct("<II")
_WITHOUT_RUNS = 12346


def rows_of_names(parts: Sequence[NDArray[np.uint64]]) -> FragmentRows:
    """Return the set of rows of some lists of names, in any order, repeats allowed."""
    if sum(map(len, parts)) >= _MANY:
        rows = _by_bits(parts)
        if rows is not None:
            return rows
    return bitmaps_by_fragment(np.concatenate([*parts, np.zeros(0, np.uint64)]))


def bitmap_of_words(words: NDArray[np.uint64]) -> BitMap:
    """Return the bitmap of a dense set, whose words are a multiple of ``_CONTAINER_WORDS``.

    Notes
    -----
    Built as the portable roaring format, in which parts of many members are plain bits.
    """
    parts = words.reshape(-1, _CONTAINER_WORDS)
    counts = np.bitwise_count(parts).sum(axis=1, dtype=np.int64)
    used = np.flatnonzero(counts)
    containers = [
        parts[each].tobytes()
        if counts[each] > _LONGEST_ARRAY
        else to_ordinals(parts[each]).astype("<u2").tobytes()
        for each in used.tolist()
    ]
    sizes = np.array(list(map(len, containers)), np.int64)
    heads = np.stack([used, counts[used] - 1], axis=1).astype("<u2")
    places = _HEAD.size + heads.nbytes + 4 * len(used) + np.cumsum(sizes) - sizes
    head = _HEAD.pack(_WITHOUT_RUNS, len(used)) + heads.tobytes() + places.astype("<u4").tobytes()
    return BitMap.deserialize(b"".join([head, *containers]))


def _by_bits(parts: Sequence[NDArray[np.uint64]]) -> FragmentRows | None:
    """Return the rows by setting a bit for each; None where that would take too many bits."""
    highest = np.full(_MOST_FRAGMENTS, -1, np.int64)
    if not all(note_highest(names, highest) for names in parts):
        return None
    fragment_ids = np.flatnonzero(highest >= 0)
    sizes = (highest[fragment_ids] // (_CONTAINER_WORDS * _WORD_BITS) + 1) * _CONTAINER_WORDS
    ends = np.cumsum(sizes)
    if ends[-1] > sum(map(len, parts)):
        return None  # the bits would take more memory than the names
    starts = np.zeros(_MOST_FRAGMENTS, np.int64)
    starts[fragment_ids] = ends - sizes
    words = np.zeros(ends[-1], np.uint64)
    for names in parts:
        set_names(names, starts, words)
    own = np.split(words, ends[:-1])
    return {
        key: bitmap_of_words(each) for key, each in zip(fragment_ids.tolist(), own, strict=True)
    }
