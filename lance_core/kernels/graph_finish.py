"""Finishing a graph: every node is made reachable, lists move together, links get distances."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel
from lance_core.kernels.graph_build import shorten_list
from lance_core.kernels.graph_draft import (
    Draft,
    Workspace,
    list_of,
    list_of_row,
    most_neighbours,
)
from lance_core.kernels.graph_pool import pool_node
from lance_core.kernels.graph_rows import GraphRows, score_pairs
from lance_core.kernels.graph_search import search_level
from lance_core.kernels.hnsw_beam import mark

if TYPE_CHECKING:
    from numpy.typing import NDArray


@kernel
def shorten_lists(
    rows: GraphRows,
    draft: Draft,
    nodes: NDArray[np.uint32],
    start: int,
    stop: int,
    work: Workspace,
) -> None:
    """Give the graph rows ``start:stop``, of ``nodes``, as many links as a finished graph may have.

    Parts can be shortened at once.
    """
    for row in range(start, stop):
        level = 0 if row < draft.num_nodes else 1
        most = most_neighbours(draft, level)
        node = int(np.int64(nodes[row]))
        shorten_list(rows, draft, list_of_row(draft, row), node, most, work)


@kernel
def hang_copies(draft: Draft, copies: NDArray[np.uint32], originals: NDArray[np.uint32]) -> None:
    """Link rows to copies of them, which have no links yet.

    The first copy takes a place in the list of the row, the last if there is no other; the others
    hang from it as a tree. Each leads back.

    Parameters
    ----------
    copies, originals
        As in `lance_core.index.vector.build.graph_copies.RowCopies`.
    """
    links, num_children = draft.links, draft.wide - 1
    start = 0
    while start < len(copies):
        original = int(np.int64(originals[start]))
        stop = start + 1
        while stop < len(copies) and int(np.int64(originals[stop])) == original:
            stop += 1
        place = list_of(draft, 0, original)
        count = min(int(np.int64(links[place])) + 1, draft.wide)
        links[place + count] = copies[start]
        links[place] = count
        for at in range(start, stop):
            place = list_of(draft, 0, int(np.int64(copies[at])))
            first = start + (at - start) * num_children + 1
            end = max(min(first + num_children, stop), first)
            links[place + 1] = original
            for child in range(first, end):
                links[place + 2 + child - first] = copies[child]
            links[place] = 1 + end - first
        start = stop


@kernel
def link_unreached(
    rows: GraphRows,
    draft: Draft,
    entry: int,
    ef: int,
    parents: NDArray[np.uint32],
    waiting: NDArray[np.uint32],
    reached: NDArray[np.uint64],
    work: Workspace,
) -> int:
    """Link nodes that cannot be reached from ``entry`` on level 0; return how many there were.

    Parameters
    ----------
    parents, waiting
        Room for all nodes.
    reached
        A bit per node, all clear.

    Notes
    -----
    Nodes are reached over a tree of links, and a link that is not in the tree can be given up. A
    tree has fewer links than nodes: some node has one to give up.
    """
    num_lost, cursor = 0, 0
    mark(reached, entry)
    spread(draft, entry, parents, waiting, reached)
    for node in range(draft.num_nodes):
        if is_marked(reached, node):
            continue
        num_lost += 1
        size = search_level(rows, draft, node, 0, entry, ef, work)
        parent = find_parent(draft, node, size, parents, work)
        while parent == -1:
            if is_marked(reached, cursor) and take(draft, cursor, node, parents):
                parent = cursor
            else:
                cursor = (cursor + 1) % draft.num_nodes
        mark(reached, node)
        parents[node] = parent
        spread(draft, node, parents, waiting, reached)
    return num_lost


@kernel
def find_parent(
    draft: Draft, lost: int, size: int, parents: NDArray[np.uint32], work: Workspace
) -> int:
    """Let one of the ``size`` nodes in the pool take a lost one; return which, -1 if none can.

    The nearest with room in its list, or the farthest with a link to give up. With dot all rows are
    near to the few longest: those would give up their links to each other, which most searches
    need (recall of 0.89 and not 0.93, 20,000 rows of 128 dimensions, beam of 15).
    """
    for i in range(size):
        parent = pool_node(work.pool[i])
        count = int(np.int64(draft.links[list_of(draft, 0, parent)]))
        if count < draft.wide and take(draft, parent, lost, parents):
            return parent
    for i in range(size - 1, -1, -1):
        parent = pool_node(work.pool[i])
        if take(draft, parent, lost, parents):
            return parent
    return -1


@kernel
def is_marked(bits: NDArray[np.uint64], node: int) -> bool:
    """Tell whether the bit of a node is set."""
    return bool((bits[node >> 6] >> np.uint64(node & 63)) & np.uint64(1))


@kernel
def spread(
    draft: Draft,
    start: int,
    parents: NDArray[np.uint32],
    waiting: NDArray[np.uint32],
    reached: NDArray[np.uint64],
) -> None:
    """Mark all that can be reached from a node that is marked."""
    waiting[0] = start
    num_waiting = 1
    while num_waiting > 0:
        num_waiting -= 1
        node = int(np.int64(waiting[num_waiting]))
        place = list_of(draft, 0, node)
        for i in range(int(np.int64(draft.links[place]))):
            neighbour = int(np.int64(draft.links[place + 1 + i]))
            if mark(reached, neighbour):
                parents[neighbour] = node
                waiting[num_waiting] = neighbour
                num_waiting += 1


@kernel
def take(draft: Draft, node: int, lost: int, parents: NDArray[np.uint32]) -> bool:
    """Put a lost node into the list of another, where there is room or a link to give up."""
    place = list_of(draft, 0, node)
    count = int(np.int64(draft.links[place]))
    if count < draft.wide:
        draft.links[place + 1 + count] = lost
        draft.links[place] = count + 1
        return True
    for at in range(place + count, place, -1):
        if int(np.int64(parents[int(np.int64(draft.links[at]))])) != node:
            draft.links[at] = lost
            return True
    return False


@kernel
def pack_lists(draft: Draft, offsets: NDArray[np.int32]) -> None:
    """Move the links of all lists to the beginning of ``draft.links``, one list after the other.

    Parameters
    ----------
    offsets
        One entry more than there are graph rows: receives where lists begin, and the end.
    """
    links = draft.links
    end = 0
    offsets[0] = 0
    for row in range(len(offsets) - 1):
        place = list_of_row(draft, row)
        count = int(np.int64(links[place]))
        for i in range(count):
            links[end + i] = links[place + 1 + i]
        end += count
        offsets[row + 1] = end


@kernel
def score_links(
    rows: GraphRows,
    nodes: NDArray[np.uint32],
    offsets: NDArray[np.int32],
    links: NDArray[np.uint32],
    distances: NDArray[np.float32],
    start: int,
    stop: int,
) -> None:
    """Write the distances of the links of the graph rows ``start:stop``."""
    for row in range(start, stop):
        first, end = offsets[row], offsets[row + 1]
        node = int(np.int64(nodes[row]))
        score_pairs(rows, node, links[first:end], end - first, distances[first:end])
