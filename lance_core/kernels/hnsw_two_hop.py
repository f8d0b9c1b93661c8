"""Walking level 0 of an HNSW graph through the rows that pass a filter only.

What pylance does when a filter keeps some of a partition's rows and an approximate answer is good
enough: rows that fail are not scored but looked through, to the neighbours behind them (vector
index page, section 5, ``approx_mode="fast"``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lance_core.kernels.compile import kernel
from lance_core.kernels.hamming import popcount
from lance_core.kernels.hnsw_beam import (
    Graph,
    Scratch,
    keep,
    mark,
    node_of,
    prefetch_links,
)
from lance_core.kernels.hnsw_heap import pop_entry, push_entry
from lance_core.kernels.hnsw_scoring import Scorer, prefetch_nodes, score_nodes
from lance_core.kernels.memory import uint32_at, uint64_at
from lance_core.kernels.topk import pack_key

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lance_core.kernels.hnsw_wanted import Wanted

_HALF = np.uint64(32)
_NUM_SEEDS = 16
_WORD_BITS = 64
_WAYPOINTS_PER_RESULT = 4


class Waypoints(NamedTuple):
    """Rows that fail, for when the search is stuck; for partitions of up to ``n`` rows.

    Parameters
    ----------
    passing
        Bitset of ``n`` bits: rows that pass, by node, so that they need not be looked up.
    explored
        Bitset of ``n`` bits: rows that were looked through.
    queued
        Bitset of ``n`` bits: rows that were put in the queue.
    queue
        Room for ``n`` nodes, first in, first out.
    state
        How many were put in, taken out, and may still be looked through.
    """

    passing: NDArray[np.uint64]
    explored: NDArray[np.uint64]
    queued: NDArray[np.uint64]
    queue: NDArray[np.uint32]
    state: NDArray[np.int64]


@kernel
def search_two_hop(
    graph: Graph,
    scorer: Scorer,
    wanted: Wanted,
    scratch: Scratch,
    waypoints: Waypoints,
    entry: np.uint64,
    ef: int,
    num_passing: int,
) -> int:
    """Collect near nodes among the ``num_passing`` that pass; return how many, at most ``ef``."""
    num_words = (graph.num_nodes >> 6) + 1
    visited, candidates, results = scratch.visited, scratch.candidates, scratch.results
    visited[:num_words] = np.uint64(0)
    waypoints.explored[:num_words] = np.uint64(0)
    waypoints.queued[:num_words] = np.uint64(0)
    waypoints.state[0], waypoints.state[1] = 0, 0
    waypoints.state[2] = _WAYPOINTS_PER_RESULT * ef
    mark(visited, node_of(entry))
    candidates[0] = entry
    num_candidates, num_results = 1, 0
    if is_set(waypoints.passing, node_of(entry)):
        num_results = keep(wanted, results, num_results, ef, entry)
    count = list_seeds(graph, scratch, waypoints, num_passing)
    is_certain = True
    while True:
        score_nodes(scorer, scratch.nodes, count, scratch.distances)
        for i in range(count):
            key = pack_key(scratch.distances[i], scratch.nodes[i])
            if is_certain or num_results < ef or key >> _HALF <= ~results[0] >> _HALF:
                num_results = keep(wanted, results, num_results, ef, key)
                push_entry(candidates, num_candidates, key)
                num_candidates += 1
        if num_candidates == 0:
            if num_results >= min(ef, num_passing):
                break
            count = list_behind_waypoints(graph, scratch, waypoints)
            is_certain = True
            if count == 0:
                break
            continue
        nearest = pop_entry(candidates, num_candidates)
        num_candidates -= 1
        if num_results == ef and nearest >> _HALF > ~results[0] >> _HALF:
            break
        count = list_two_hops(graph, scratch, waypoints, node_of(nearest))
        prefetch_nodes(scorer, scratch.nodes, count)
        is_certain = False
    return num_results


@kernel
def mark_passing(wanted: Wanted, num_nodes: int, passing: NDArray[np.uint64]) -> int:
    """Write the bits of the nodes that pass; return how many there are."""
    ordinals = uint32_at(wanted.ordinals, num_nodes)
    words = uint64_at(wanted.words, wanted.num_words)
    count = 0
    for start in range(0, num_nodes, _WORD_BITS):
        bits = np.uint64(0)
        for node in range(start, min(start + _WORD_BITS, num_nodes)):
            ordinal = ordinals[node]
            bit = words[ordinal >> np.uint32(6)] >> np.uint64(ordinal & np.uint32(63))
            bits |= (bit & np.uint64(1)) << np.uint64(node & 63)
        passing[start >> 6] = bits
        count += int(np.int64(popcount(bits)))
    return count


@kernel
def list_seeds(graph: Graph, scratch: Scratch, waypoints: Waypoints, num_passing: int) -> int:
    """Mark and list up to sixteen rows that pass, at even distances in row order."""
    step = max(num_passing // _NUM_SEEDS, 1)
    last = min((_NUM_SEEDS - 1) * step, num_passing - 1)
    count, before, wanted = 0, 0, 0
    for word in range((graph.num_nodes + _WORD_BITS - 1) >> 6):
        bits = waypoints.passing[word]
        behind = before + int(np.int64(popcount(bits)))
        while wanted < behind and wanted <= last:
            node = (word << 6) + place_of_bit(bits, wanted - before)
            if mark(scratch.visited, node):
                scratch.nodes[count] = node
                count += 1
            wanted += step
        before = behind
    return count


@kernel
def place_of_bit(bits: np.uint64, number: int) -> int:
    """Return where the bit lies that has ``number`` set bits below it."""
    place = 0
    while True:
        if (bits >> np.uint64(place)) & np.uint64(1):
            if number == 0:
                return place
            number -= 1
        place += 1


@kernel
def list_behind_waypoints(graph: Graph, scratch: Scratch, waypoints: Waypoints) -> int:
    """List the new rows behind the first waypoint that has some, 0 if none has or may be asked."""
    state = waypoints.state
    while state[1] < state[0] and state[2] > 0:
        waypoint = int(np.int64(waypoints.queue[state[1]]))
        state[1] += 1
        if not mark(waypoints.explored, waypoint):
            continue
        state[2] -= 1
        count = list_passing(graph, scratch, waypoints, waypoint, 0)
        if count > 0:
            return count
    return 0


@kernel
def list_passing(
    graph: Graph, scratch: Scratch, waypoints: Waypoints, node: int, count: int
) -> int:
    """Append the neighbours that pass and are new; put those that fail in the queue."""
    offsets = uint32_at(graph.offsets, graph.num_nodes + 1)
    start, end = int(np.int64(offsets[node])), int(np.int64(offsets[node + 1]))
    neighbours = uint32_at(graph.neighbours, end)
    for at in range(start, end):
        neighbour = int(np.int64(neighbours[at]))
        if is_set(waypoints.passing, neighbour):
            if mark(scratch.visited, neighbour):
                scratch.nodes[count] = neighbour
                count += 1
        elif not is_set(waypoints.explored, neighbour) and mark(waypoints.queued, neighbour):
            # In the queue once is enough: later places would be skipped.
            waypoints.queue[waypoints.state[0]] = neighbour
            waypoints.state[0] += 1
    return count


@kernel
def list_two_hops(graph: Graph, scratch: Scratch, waypoints: Waypoints, node: int) -> int:
    """List the new rows that pass among the neighbours, and behind neighbours that fail."""
    offsets = uint32_at(graph.offsets, graph.num_nodes + 1)
    start, end = int(np.int64(offsets[node])), int(np.int64(offsets[node + 1]))
    neighbours = uint32_at(graph.neighbours, end)
    for at in range(start, end):
        neighbour = int(np.int64(neighbours[at]))
        if not is_set(waypoints.passing, neighbour):
            prefetch_links(graph, neighbour)
    count = 0
    for at in range(start, end):
        neighbour = int(np.int64(neighbours[at]))
        if is_set(waypoints.passing, neighbour):
            if mark(scratch.visited, neighbour):
                scratch.nodes[count] = neighbour
                count += 1
        elif mark(waypoints.explored, neighbour):
            count = list_passing(graph, scratch, waypoints, neighbour, count)
    return count


@kernel
def is_set(bits: NDArray[np.uint64], node: int) -> bool:
    """Tell whether the bit of a node is set."""
    return bool((bits[node >> 6] >> np.uint64(node & 63)) & np.uint64(1))
