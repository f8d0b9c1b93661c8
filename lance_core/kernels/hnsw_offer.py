"""Offering rows of a partition, named by their nodes, to the nearest rows of a search."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel
from lance_core.kernels.hnsw_beam import Scratch, node_of
from lance_core.kernels.hnsw_scoring import Scorer, prefetch_nodes, score_nodes
from lance_core.kernels.hnsw_wanted import Wanted, passes
from lance_core.kernels.memory import uint32_at, uint64_at
from lance_core.kernels.topk import distance_of, offer_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

SCAN_ROWS = 64
"""Rows that `scan` scores together."""


@kernel
def scan(
    scorer: Scorer,
    wanted: Wanted,
    num_nodes: int,
    scratch: Scratch,
    keys: NDArray[np.uint64],
    state: NDArray[np.uint64],
    k: int,
    lower: np.float32,
) -> None:
    """Offer every row that passes, some at a time."""
    count = 0
    for node in range(num_nodes):
        if passes(wanted, node):
            scratch.nodes[count] = node
            count += 1
        if count == SCAN_ROWS or (node + 1 == num_nodes and count > 0):
            prefetch_nodes(scorer, scratch.nodes, count)
            score_nodes(scorer, scratch.nodes, count, scratch.distances)
            offer_nodes(wanted, scratch, count, keys, state, k, lower)
            count = 0


@kernel
def offer_found(
    wanted: Wanted,
    scratch: Scratch,
    count: int,
    keys: NDArray[np.uint64],
    state: NDArray[np.uint64],
    k: int,
    lower: np.float32,
) -> None:
    """Offer the nodes that a walk has kept."""
    for i in range(count):
        key = ~scratch.results[i]
        scratch.nodes[i] = node_of(key)
        scratch.distances[i] = distance_of(key)
    offer_nodes(wanted, scratch, count, keys, state, k, lower)


@kernel
def offer_nodes(
    wanted: Wanted,
    scratch: Scratch,
    count: int,
    keys: NDArray[np.uint64],
    state: NDArray[np.uint64],
    k: int,
    lower: np.float32,
) -> None:
    """Offer the first ``count`` nodes with their distances; their ordinals take their place."""
    for i in range(count):
        node = int(np.int64(scratch.nodes[i]))
        scratch.nodes[i] = uint32_at(wanted.ordinals, node + 1)[node]
    words = uint64_at(wanted.words, wanted.num_words)
    offer_rows(scratch.distances[:count], scratch.nodes[:count], words, keys, state, k, lower)
