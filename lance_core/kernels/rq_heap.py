"""A heap of the nearest rows, over the keys of a `TopRows`.

RaBitQ skips rows by the worst distance of the rows kept at that moment, so it needs the true
``k``-th best after every row, which the buffer of a `TopRows` does not tell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel
from lance_core.kernels.topk import keep_smallest

if TYPE_CHECKING:
    from numpy.typing import NDArray


@kernel(ordered=True)
def open_heap(keys: NDArray[np.uint64], state: NDArray[np.uint64], k: int) -> None:
    """Turn the keys kept so far into a heap, the largest in front.

    ``keys`` and ``state`` are those of a `TopRows`; ``k`` is at least 1. The limit in ``state`` is
    afterwards the largest key when there are ``k``.
    """
    kept = int(np.int64(state[0]))
    if kept > k:
        keep_smallest(keys[:kept], k)
        kept = k
    for place in range(kept // 2 - 1, -1, -1):
        sink(keys, kept, place)
    if kept == k:
        state[1] = min(state[1], keys[0])
    state[0] = np.uint64(kept)


@kernel(ordered=True)
def push(keys: NDArray[np.uint64], state: NDArray[np.uint64], k: int, key: np.uint64) -> None:
    """Keep a key that is below the limit."""
    kept = int(np.int64(state[0]))
    if kept == k:
        keys[0] = key
        sink(keys, kept, 0)
    else:
        keys[kept] = key
        rise(keys, kept)
        kept += 1
        state[0] = np.uint64(kept)
    if kept == k:
        state[1] = keys[0]


@kernel(ordered=True)
def sink(keys: NDArray[np.uint64], count: int, place: int) -> None:
    """Move the key at ``place`` down until none below it is larger."""
    key = keys[place]
    child = 2 * place + 1
    while child < count:
        if child + 1 < count and keys[child + 1] > keys[child]:
            child += 1
        if keys[child] <= key:
            break
        keys[place] = keys[child]
        place = child
        child = 2 * place + 1
    keys[place] = key


@kernel(ordered=True)
def rise(keys: NDArray[np.uint64], place: int) -> None:
    """Move the key at ``place`` up until the one above it is not smaller."""
    key = keys[place]
    while place > 0:
        above = (place - 1) >> 1
        if keys[above] >= key:
            break
        keys[place] = keys[above]
        place = above
    keys[place] = key
