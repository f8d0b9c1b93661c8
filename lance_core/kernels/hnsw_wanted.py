"""Which rows of a partition may be found: the filter and the range of distances."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lance_core.kernels.compile import kernel
from lance_core.kernels.memory import uint32_at, uint64_at
from lance_core.kernels.topk import pack_key

# Distances of minus infinity and the first node, and of infinity and the last.
_FIRST_KEY = np.uint64(0x007F_FFFF_0000_0000)
_LAST_KEY = np.uint64(0xFF80_0000_FFFF_FFFF)
_BATCH = 64


class Wanted(NamedTuple):
    """Which nodes of a partition may be found.

    Parameters
    ----------
    ordinals
        Address of the uint32 ordinal of each node.
    words, num_words
        Address and length of the dense bitset over ordinals.
    lower, limit
        Keys ``lower <= key < limit`` lie in the range of distances.
    """

    ordinals: int
    words: int
    num_words: int
    lower: np.uint64
    limit: np.uint64


@kernel
def key_range(lower: np.float32, upper: np.float32) -> tuple[np.uint64, np.uint64]:
    """Return the first key in a range of distances, and the first behind it.

    Without bounds all distances but NaN are in the range.
    """
    first = pack_key(lower, np.uint32(0)) if lower > -np.inf else _FIRST_KEY
    limit = _LAST_KEY if np.isnan(upper) else pack_key(upper, np.uint32(0))
    return first, limit


@kernel
def passes(wanted: Wanted, node: int) -> bool:
    """Tell whether the mask lets a node be found."""
    ordinal = uint32_at(wanted.ordinals, node + 1)[node]
    word = uint64_at(wanted.words, wanted.num_words)[ordinal >> np.uint32(6)]
    return bool((word >> np.uint64(ordinal & np.uint32(63))) & np.uint64(1))


@kernel
def count_passing(wanted: Wanted, num_nodes: int, enough: int) -> int:
    """Count the rows that pass the filter, no further than to ``enough``."""
    ordinals = uint32_at(wanted.ordinals, num_nodes)
    words = uint64_at(wanted.words, wanted.num_words)
    count = 0
    for start in range(0, num_nodes, _BATCH):
        if count >= enough:
            break
        for node in range(start, min(start + _BATCH, num_nodes)):
            ordinal = ordinals[node]
            word = words[ordinal >> np.uint32(6)]
            count += int(np.int64((word >> np.uint64(ordinal & np.uint32(63))) & np.uint64(1)))
    return count


@kernel
def is_bounded(wanted: Wanted) -> bool:
    """Tell whether the range of distances has a bound."""
    return bool(wanted.lower != _FIRST_KEY or wanted.limit != _LAST_KEY)
