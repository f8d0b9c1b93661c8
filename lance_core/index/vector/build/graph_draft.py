"""What a graph begins with: the levels of its nodes, and memory for its links."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lance_core.kernels.graph_draft import Draft, Workspace

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lance_core.index.vector.build.model import GraphParameters

_SEED = 42


class Levels(NamedTuple):
    """Which nodes are on which levels.

    Parameters
    ----------
    order
        The nodes that are added one by one, uint32, in the order of that: copies are not.
    of_node
        The highest level of each, int8.
    nodes
        Nodes of all levels one after the other, uint32, ascending within each.
    offsets
        Where each level begins, and the end, int64.
    """

    order: NDArray[np.uint32]
    of_node: NDArray[np.int8]
    nodes: NDArray[np.uint32]
    offsets: NDArray[np.int64]


def draw_levels(num_nodes: int, copies: NDArray[np.uint32], parameters: GraphParameters) -> Levels:
    """Draw levels: each has the ``m``-th part of the nodes of that below it."""
    generator = np.random.default_rng(_SEED)
    heights = generator.standard_exponential(num_nodes) / np.log(parameters.max_connections)
    of_node = np.minimum(heights, parameters.max_level - 1).astype(np.int8)
    of_node[copies] = 0
    drawn = np.delete(np.arange(num_nodes, dtype=np.uint32), copies)
    generator.shuffle(drawn)
    order = drawn[np.argsort(-of_node[drawn], kind="stable")]
    of_levels = [np.flatnonzero(of_node >= level) for level in range(parameters.max_level)]
    return Levels(
        order,
        of_node,
        np.concatenate(of_levels).astype(np.uint32),
        np.cumsum([0, *map(len, of_levels)]),
    )


def empty_draft(levels: Levels, parameters: GraphParameters) -> Draft:
    """Return a graph without links."""
    num_nodes = len(levels.of_node)
    num_upper = len(levels.nodes) - num_nodes
    narrow = parameters.max_connections
    wide, slack = 2 * narrow, narrow // 2
    num_links = num_nodes * (1 + wide + slack) + num_upper * (1 + narrow + slack)
    return Draft(
        links=np.zeros(num_links, np.uint32),
        upper_nodes=levels.nodes[num_nodes:],
        bounds=levels.offsets[1:] - num_nodes,
        num_nodes=num_nodes,
        wide=wide,
        narrow=narrow,
        slack=slack,
    )


def workspace(draft: Draft, parameters: GraphParameters) -> Workspace:
    """Return what one thread needs to build a graph."""
    longest = draft.wide + draft.slack
    return Workspace(
        visited=np.zeros((draft.num_nodes >> 6) + 1, np.uint64),
        marked=np.empty(draft.num_nodes, np.uint32),
        pool=np.empty(max(parameters.ef_construction, longest), np.uint64),
        nodes=np.empty(longest, np.uint32),
        distances=np.empty(longest, np.float32),
        chosen=np.empty(longest, np.uint32),
    )
