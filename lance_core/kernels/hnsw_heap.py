"""Heaps of nodes by distance, ties in the order in which pylance takes them.

An entry holds the distance in its high half, as in the keys of `lance_core.kernels.topk`, and the
node in its low half; only the high halves are compared. Which of several nodes at the same
distance comes out first depends on how a heap moves its entries, and decides which nodes a search
visits. pylance uses the binary heap of Rust's standard library: a new entry rises while it is
strictly nearer; after a removal the last entry sinks to the bottom, past the right one of two
equal children, and rises from there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel, warmup

if TYPE_CHECKING:
    from numpy.typing import NDArray

_HALF = np.uint64(32)


@kernel(ordered=True)
def raise_entry(heap: NDArray[np.uint64], place: int) -> None:
    """Let the entry at ``place`` rise while it is strictly nearer than its parent."""
    entry = heap[place]
    distance = entry >> _HALF
    while place > 0:
        parent = (place - 1) >> 1
        above = heap[parent]
        if distance >= above >> _HALF:
            break
        heap[place] = above
        place = parent
    heap[place] = entry


@kernel(ordered=True)
def push_entry(heap: NDArray[np.uint64], size: int, entry: np.uint64) -> None:
    """Add an entry to a heap of ``size`` entries, for which there is room."""
    heap[size] = entry
    raise_entry(heap, size)


@kernel(ordered=True)
def pop_entry(heap: NDArray[np.uint64], size: int) -> np.uint64:
    """Remove and return the nearest of ``size`` entries, at least one."""
    nearest: np.uint64 = heap[0]
    size -= 1
    last = heap[size]
    place = 0
    child = 1
    while child + 1 < size:
        child += int(heap[child] >> _HALF >= heap[child + 1] >> _HALF)
        heap[place] = heap[child]
        place = child
        child = 2 * place + 1
    if child + 1 == size:
        heap[place] = heap[child]
        place = child
    heap[place] = last
    raise_entry(heap, place)
    return nearest


@warmup
def _warm() -> None:
    heap = np.empty(2, np.uint64)
    push_entry(heap, 0, np.uint64(1))
    pop_entry(heap, 1)
