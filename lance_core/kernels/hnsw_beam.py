"""Walking one HNSW graph: down the upper levels, then a beam over level 0.

Both visit nodes in the order in which pylance does (vector index page, section 5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lance_core.kernels.compile import kernel
from lance_core.kernels.hnsw_heap import pop_entry, push_entry
from lance_core.kernels.hnsw_scoring import Scorer, prefetch_nodes, score_nodes
from lance_core.kernels.hnsw_wanted import Wanted, passes
from lance_core.kernels.memory import prefetch_bytes, uint32_at
from lance_core.kernels.topk import pack_key

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NODE = np.uint64(0xFFFF_FFFF)
_HALF = np.uint64(32)
_ID_BYTES = 4


class Graph(NamedTuple):
    """The graph of one partition: number of nodes, and where its uint32 arrays lie.

    They are those of `lance_core.index.vector.hnsw_graph.GraphArrays`, checked there.
    """

    num_nodes: int
    offsets: int
    neighbours: int
    levels: int
    upper_nodes: int
    upper_offsets: int
    upper_neighbours: int


class Scratch(NamedTuple):
    """Memory of one search, for partitions of up to ``n`` rows.

    Parameters
    ----------
    visited
        Bitset of ``n`` bits.
    candidates
        Room for ``n`` entries of a heap, nearest first.
    results
        Room for ``min(ef, n)`` entries of a heap, farthest first: all bits of keys are turned.
    nodes, distances
        Room for ``n`` nodes to be scored together.
    """

    visited: NDArray[np.uint64]
    candidates: NDArray[np.uint64]
    results: NDArray[np.uint64]
    nodes: NDArray[np.uint32]
    distances: NDArray[np.float32]


@kernel
def node_of(key: np.uint64) -> int:
    """Return the node of a heap entry."""
    return int(np.int64(key & _NODE))


@kernel
def keep(
    wanted: Wanted, results: NDArray[np.uint64], num_results: int, ef: int, key: np.uint64
) -> int:
    """Add a node that passes to the ``ef`` nearest; return how many there are.

    A full heap takes only what is strictly nearer than its farthest.
    """
    if key < wanted.lower or key >= wanted.limit:
        return num_results
    turned = ~key
    if num_results < ef:
        push_entry(results, num_results, turned)
        return num_results + 1
    if turned >> _HALF > results[0] >> _HALF:
        pop_entry(results, num_results)
        push_entry(results, num_results - 1, turned)
    return num_results


@kernel
def key_of(scorer: Scorer, scratch: Scratch, node: int) -> np.uint64:
    """Score one node."""
    scratch.nodes[0] = node
    score_nodes(scorer, scratch.nodes, 1, scratch.distances)
    return pack_key(scratch.distances[0], np.uint32(node))


@kernel
def descend(graph: Graph, scorer: Scorer, scratch: Scratch) -> np.uint64:
    """Walk to the nearest node that the upper levels lead to; return its key.

    On each level from the highest down: move to the nearest neighbour while one is strictly nearer.
    """
    levels = uint32_at(graph.levels, 2)
    num_levels = int(np.int64(levels[1]))
    bounds = uint32_at(graph.levels + 2 * _ID_BYTES, num_levels + 1)
    best = key_of(scorer, scratch, int(np.int64(levels[0])))
    for level in range(num_levels - 1, -1, -1):
        first, stop = int(np.int64(bounds[level])), int(np.int64(bounds[level + 1]))
        node = -1
        while node != node_of(best):
            node = node_of(best)
            count = upper_neighbours(graph, first, stop, node, scratch.nodes)
            prefetch_nodes(scorer, scratch.nodes, count)
            score_nodes(scorer, scratch.nodes, count, scratch.distances)
            for i in range(count):
                key = pack_key(scratch.distances[i], scratch.nodes[i])
                if key >> _HALF < best >> _HALF:
                    best = key
    return best


@kernel
def upper_neighbours(
    graph: Graph, first: int, stop: int, node: int, nodes: NDArray[np.uint32]
) -> int:
    """Copy the neighbours of a node on the upper level ``first:stop``; return their number.

    A node that is not on the level has none.
    """
    of_level = uint32_at(graph.upper_nodes, stop)
    low, high = first, stop
    while low < high:
        middle = (low + high) >> 1
        if of_level[middle] < node:
            low = middle + 1
        else:
            high = middle
    if low == stop or of_level[low] != node:
        return 0
    offsets = uint32_at(graph.upper_offsets, stop + 1)
    start, end = int(np.int64(offsets[low])), int(np.int64(offsets[low + 1]))
    neighbours = uint32_at(graph.upper_neighbours, end)
    for i in range(end - start):
        nodes[i] = neighbours[start + i]
    return end - start


@kernel
def search_beam(
    graph: Graph, scorer: Scorer, wanted: Wanted, scratch: Scratch, entry: np.uint64, ef: int
) -> int:
    """Collect the ``ef`` nearest nodes that a beam from ``entry`` reaches; return their number.

    Nodes that do not pass are walked through and never kept.
    """
    visited, candidates, results = scratch.visited, scratch.candidates, scratch.results
    visited[: (graph.num_nodes >> 6) + 1] = np.uint64(0)
    mark(visited, node_of(entry))
    num_candidates, num_results = 1, 0
    candidates[0] = entry
    if passes(wanted, node_of(entry)):
        num_results = keep(wanted, results, num_results, ef, entry)
    while num_candidates > 0:
        nearest = pop_entry(candidates, num_candidates)
        num_candidates -= 1
        if num_results == ef and nearest >> _HALF > ~results[0] >> _HALF:
            break
        count = unvisited_neighbours(graph, scorer, node_of(nearest), scratch)
        if num_candidates > 0:  # most often the next one, so that its neighbours are there then
            prefetch_links(graph, node_of(candidates[0]))
        score_nodes(scorer, scratch.nodes, count, scratch.distances)
        for i in range(count):
            key = pack_key(scratch.distances[i], scratch.nodes[i])
            if num_results == ef and key >> _HALF > ~results[0] >> _HALF:
                continue
            if passes(wanted, int(np.int64(scratch.nodes[i]))):
                num_results = keep(wanted, results, num_results, ef, key)
            push_entry(candidates, num_candidates, key)
            num_candidates += 1
    return num_results


@kernel
def prefetch_links(graph: Graph, node: int) -> None:
    """Ask for the list of neighbours of a node."""
    offsets = uint32_at(graph.offsets, graph.num_nodes + 1)
    start, end = int(np.int64(offsets[node])), int(np.int64(offsets[node + 1]))
    prefetch_bytes(graph.neighbours + _ID_BYTES * start, _ID_BYTES * (end - start))


@kernel
def unvisited_neighbours(graph: Graph, scorer: Scorer, node: int, scratch: Scratch) -> int:
    """Mark and list the neighbours not seen before, and ask for their rows."""
    offsets = uint32_at(graph.offsets, graph.num_nodes + 1)
    start, end = int(np.int64(offsets[node])), int(np.int64(offsets[node + 1]))
    neighbours = uint32_at(graph.neighbours, end)
    count = 0
    for at in range(start, end):
        neighbour = neighbours[at]
        if mark(scratch.visited, int(np.int64(neighbour))):
            scratch.nodes[count] = neighbour
            count += 1
    prefetch_nodes(scorer, scratch.nodes, count)
    return count


@kernel
def mark(bits: NDArray[np.uint64], node: int) -> bool:
    """Set the bit of a node; tell whether it was clear."""
    bit = np.uint64(1) << np.uint64(node & 63)
    word = bits[node >> 6]
    bits[node >> 6] = word | bit
    return bool(word & bit == np.uint64(0))
