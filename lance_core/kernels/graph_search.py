"""Searching a graph that is being built for what lies near one of its own rows."""

from __future__ import annotations

import numpy as np

from lance_core.kernels.compile import kernel
from lance_core.kernels.graph_draft import Draft, Workspace, list_of, prefetch_list
from lance_core.kernels.graph_pool import (
    insert_entry,
    is_nearer,
    mark_seen,
    next_unseen,
    pool_entry,
    pool_node,
)
from lance_core.kernels.graph_rows import GraphRows, pair_distance, score_pairs
from lance_core.kernels.hnsw_beam import mark


@kernel
def descend_level(
    rows: GraphRows, draft: Draft, node: int, level: int, nearest: int, work: Workspace
) -> int:
    """Walk over a level while a neighbour is strictly nearer to ``node``; return the last."""
    best = pool_entry(pair_distance(rows, node, nearest), nearest)
    before = -1
    while before != pool_node(best):
        before = pool_node(best)
        place = list_of(draft, level, before)
        count = int(np.int64(draft.links[place]))
        nodes = draft.links[place + 1 : place + 1 + count]
        score_pairs(rows, node, nodes, count, work.distances)
        for i in range(count):
            entry = pool_entry(work.distances[i], int(np.int64(nodes[i])))
            if is_nearer(entry, best):
                best = entry
    return pool_node(best)


@kernel
def search_level(
    rows: GraphRows, draft: Draft, node: int, level: int, start: int, ef: int, work: Workspace
) -> int:
    """Collect in ``work.pool`` the ``ef`` nearest to ``node`` that a beam reaches; return how many.

    The beam begins at the node ``start``.
    """
    pool, marked = work.pool, work.marked
    pool[0] = pool_entry(pair_distance(rows, node, start), start)
    mark(work.visited, start)
    marked[0] = start
    size, place, num_marked = 1, 0, 1
    while place < size:
        behind = pool_node(pool[place])
        mark_seen(pool, place)
        count = list_unvisited(draft, list_of(draft, level, behind), work)
        following = next_unseen(pool, size, place)
        if following < size:  # most often the next one, so that its neighbours are there then
            prefetch_list(draft, level, pool_node(pool[following]))
        score_pairs(rows, node, work.nodes, count, work.distances)
        place = following
        for i in range(count):
            marked[num_marked + i] = work.nodes[i]
            entry = pool_entry(work.distances[i], int(np.int64(work.nodes[i])))
            if size < ef or is_nearer(entry, pool[ef - 1]):
                place = min(place, insert_entry(pool, size, ef, entry))
                size = min(size + 1, ef)
        num_marked += count
        place = next_unseen(pool, size, place)
    for i in range(num_marked):
        work.visited[marked[i] >> np.uint32(6)] = np.uint64(0)
    return size


@kernel
def list_unvisited(draft: Draft, place: int, work: Workspace) -> int:
    """Mark and list those of a list not seen before; return their number."""
    count = 0
    for i in range(int(np.int64(draft.links[place]))):
        neighbour = draft.links[place + 1 + i]
        if mark(work.visited, int(np.int64(neighbour))):
            work.nodes[count] = neighbour
            count += 1
    return count
