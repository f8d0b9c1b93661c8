"""What documents of each window can score at best, and which windows to look at first.

The bound of a window adds up the best weights of its postings in the order in which scores add up
theirs. Rounding never turns an order round, so no document of the window scores more, to the bit.
The most promising windows come first, and as soon as the best ``k`` documents are above the bounds
of the rest, the search is over (Mallia, Suel, Tonellotto: Faster Learned Sparse Retrieval with
Block-Max Pruning, 2024).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lance_core.kernels.compile import kernel
from lance_core.kernels.memory import float32_at, uint32_at
from lance_core.kernels.text_weights import NO_POSTING, WINDOW_SHIFT

if TYPE_CHECKING:
    from numpy.typing import NDArray

DOCS, WEIGHTS, STARTS, BEST, NUM_POSTINGS, SHIFT, GROUP = range(7)
"""Columns of a table of posting lists: addresses of four arrays (no best weights: 0), postings,
documents of a cell of the starts as a power of two, and number of the list's group."""

NUM_COLUMNS = 7

NUM_BUCKETS = 1024


class Lists(NamedTuple):
    """The posting lists of a query in one partition, in the order in which scores add them up.

    Parameters
    ----------
    table
        Shape ``(m, NUM_COLUMNS)``.
    rarities
        Shape ``(m,)``: what the weights of each list are multiplied with.
    num_groups
        How many groups of lists a document must be in, each in one list at least; 0: any list
        will do. Groups are numbered from 0, and lists are ordered by them. What a document scores
        in a group is added up first.
    """

    table: NDArray[np.int64]
    rarities: NDArray[np.float32]
    num_groups: int


@kernel(ordered=True)
def add_dense(best: NDArray[np.float32], rarity: np.float32, bounds: NDArray[np.float32]) -> None:
    """Add a list of which the best weight in each window is known; compiles to vectors."""
    for window in range(bounds.shape[0]):
        before = bounds[window]
        more = np.float32(max(before, np.float32(0)) + np.float32(rarity * best[window]))
        bounds[window] = more if best[window] >= np.float32(0) else before


@kernel(ordered=True)
def add_sparse(
    docs: NDArray[np.uint32],
    weights: NDArray[np.float32],
    rarity: np.float32,
    bounds: NDArray[np.float32],
) -> None:
    """Add a list posting by posting."""
    place, size = 0, docs.shape[0]
    while place < size:
        window = docs[place] >> np.uint32(WINDOW_SHIFT)
        best = weights[place]
        place += 1
        while place < size and docs[place] >> np.uint32(WINDOW_SHIFT) == window:
            best = max(best, weights[place])
            place += 1
        before = max(bounds[window], np.float32(0))
        bounds[window] = np.float32(before + np.float32(rarity * best))


@kernel
def reach_dense(best: NDArray[np.float32], group: int, reached: NDArray[np.int32]) -> None:
    """Count a group for windows that have one of its postings and all groups before."""
    for window in range(reached.shape[0]):
        is_next = best[window] >= np.float32(0) and reached[window] == group
        reached[window] += np.int32(is_next)


@kernel
def reach_sparse(docs: NDArray[np.uint32], group: int, reached: NDArray[np.int32]) -> None:
    """Do as `reach_dense` posting by posting."""
    for doc in docs:
        window = doc >> np.uint32(WINDOW_SHIFT)
        reached[window] += np.int32(reached[window] == group)


@kernel
def have_company(table: NDArray[np.int64]) -> bool:
    """Tell whether a group has several lists, whose scores are then added up by themselves."""
    have = False
    for index in range(1, table.shape[0]):
        have |= table[index, GROUP] == table[index - 1, GROUP]
    return have


@kernel(ordered=True)
def add_list(
    table: NDArray[np.int64],
    index: int,
    rarity: np.float32,
    bounds: NDArray[np.float32],
    reached: NDArray[np.int32],
) -> None:
    """Add a list to bounds, and to what windows have reached unless that does not matter."""
    size, best, group = table[index, NUM_POSTINGS], table[index, BEST], table[index, GROUP]
    if best != 0:
        weights = float32_at(best, bounds.shape[0])
        add_dense(weights, rarity, bounds)
        if reached.shape[0] > 0:
            reach_dense(weights, group, reached)
    else:
        docs = uint32_at(table[index, DOCS], size)
        add_sparse(docs, float32_at(table[index, WEIGHTS], size), rarity, bounds)
        if reached.shape[0] > 0:
            reach_sparse(docs, group, reached)


@kernel(ordered=True)
def add_lists(
    lists: Lists,
    first: int,
    stop: int,
    bounds: NDArray[np.float32],
    reached: NDArray[np.int32],
    of_group: NDArray[np.float32],
) -> None:
    """Add some lists to bounds, all of them in order one call after the other.

    Parameters
    ----------
    lists
        The query's; those from ``first`` up to ``stop`` are added.
    bounds
        A number for each window, ``NO_POSTING`` before the first call.
    reached
        How many groups each window has, 0 before the first call; empty where that does not matter.
    of_group
        What windows have of the group that is being added, ``NO_POSTING`` before the first call;
        empty unless lists have company.
    """
    table, rarities, _ = lists
    if of_group.shape[0] == 0:
        for index in range(first, stop):
            add_list(table, index, rarities[index], bounds, reached)
        return
    for index in range(first, stop):
        add_list(table, index, rarities[index], of_group, reached)
        if index + 1 == table.shape[0] or table[index, GROUP] != table[index + 1, GROUP]:
            add_dense(of_group, np.float32(1), bounds)
            of_group[:] = NO_POSTING


@kernel(ordered=True)
def end_bounds(
    num_groups: int,
    reached: NDArray[np.int32],
    live: NDArray[np.uint64],
    bounds: NDArray[np.float32],
) -> None:
    """Turn bounds negative where no document can be found, after all lists were added."""
    for window in range(reached.shape[0]):
        if reached[window] < num_groups:
            bounds[window] = NO_POSTING
    for window in range(live.shape[0]):
        if live[window] == 0:
            bounds[window] = NO_POSTING


@kernel(ordered=True)
def write_bounds(lists: Lists, live: NDArray[np.uint64], bounds: NDArray[np.float32]) -> None:
    """Write the bound of each window, less than 0 where no document can be found.

    Parameters
    ----------
    lists
        The query's.
    live
        Bit set of documents that may be found, a word for each window; empty = all may be.
    bounds
        A number for each window.
    """
    table, _, num_groups = lists
    bounds[:] = NO_POSTING
    reached = np.zeros(bounds.shape[0] if num_groups > 0 else 0, np.int32)
    of_group = np.full(bounds.shape[0] if have_company(table) else 0, NO_POSTING)
    add_lists(lists, 0, table.shape[0], bounds, reached, of_group)
    end_bounds(num_groups, reached, live, bounds)


@kernel(ordered=True)
def bucket_of(bound: np.float32, scale: np.float32) -> int:
    """Return a number that is never less for a higher bound."""
    return min(int(np.float32(bound * scale)), NUM_BUCKETS - 1)


@kernel(ordered=True)
def order_windows(
    bounds: NDArray[np.float32], least: np.float32
) -> tuple[NDArray[np.uint32], np.float32]:
    """Sort windows with bounds of at least ``least``, which is not negative, into buckets.

    Returns
    -------
    tuple[NDArray[np.uint32], np.float32]
        Windows, those of the highest bucket first and ascending within one, and the scale of
        `bucket_of`.
    """
    highest = np.float32(0)
    for bound in bounds:
        highest = max(highest, bound)
    scale = np.float32(0)
    if highest > np.float32(0):
        scale = np.float32(np.float32(NUM_BUCKETS - 1) / highest)
    free = np.zeros(NUM_BUCKETS, np.int64)
    for bound in bounds:
        if bound >= least:
            free[bucket_of(bound, scale)] += 1
    total = np.int64(0)
    for bucket in range(NUM_BUCKETS - 1, -1, -1):
        size = free[bucket]
        free[bucket] = total
        total += size
    order = np.empty(total, np.uint32)
    for window in range(bounds.shape[0]):
        if bounds[window] >= least:
            bucket = bucket_of(bounds[window], scale)
            order[free[bucket]] = window
            free[bucket] += 1
    return order, scale
