"""The nearest nodes that a search has seen, sorted, with a mark on those it has looked behind.

For the few hundred candidates of a graph builder a sorted array costs less than two heaps, and what
it leaves is in the order in which neighbours are chosen. An entry holds the distance as in the keys
of `lance_core.kernels.topk`, then 31 bits of the node, then the mark, so that entries sort by
distance and then by node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel
from lance_core.kernels.topk import pack_key

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_NODES = 1 << 31
"""A node must be below this."""

_NODE = np.uint64(0xFFFF_FFFF)
_HALF = np.uint64(32)
_SEEN = np.uint64(1)


@kernel
def pool_entry(distance: np.float32, node: int) -> np.uint64:
    """Return the entry of a node that nobody has looked behind."""
    return pack_key(distance, np.uint32(node << 1))


@kernel
def pool_node(entry: np.uint64) -> int:
    """Return the node of an entry."""
    return int(np.int64((entry & _NODE) >> _SEEN))


@kernel
def is_nearer(entry: np.uint64, other: np.uint64) -> bool:
    """Tell whether an entry is strictly nearer than another."""
    return bool(entry >> _HALF < other >> _HALF)


@kernel
def insert_entry(pool: NDArray[np.uint64], size: int, room: int, entry: np.uint64) -> int:
    """Put an entry in its place among the ``size`` nearest; return the place.

    A pool of ``room`` entries loses its farthest. The entry must be nearer than that.
    """
    low, high = 0, size
    while low < high:
        middle = (low + high) >> 1
        if pool[middle] < entry:
            low = middle + 1
        else:
            high = middle
    last = min(size, room - 1)
    for place in range(last, low, -1):
        pool[place] = pool[place - 1]
    pool[low] = entry
    return low


@kernel
def next_unseen(pool: NDArray[np.uint64], size: int, place: int) -> int:
    """Return the first place from ``place`` on that has no mark, ``size`` if all have."""
    while place < size and pool[place] & _SEEN != np.uint64(0):
        place += 1
    return place


@kernel
def mark_seen(pool: NDArray[np.uint64], place: int) -> None:
    """Mark an entry as looked behind."""
    pool[place] |= _SEEN


@kernel
def clear_seen(pool: NDArray[np.uint64], place: int) -> None:
    """Take the mark off an entry."""
    pool[place] &= ~_SEEN
