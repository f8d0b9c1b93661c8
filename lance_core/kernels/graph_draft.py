"""A graph that is being built, and the memory that threads build it with."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from lance_core.kernels.compile import kernel
from lance_core.kernels.memory import prefetch_bytes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_LINK_BYTES = 4


class Draft(NamedTuple):
    """A graph that is being built.

    Parameters
    ----------
    links
        The lists of all graph rows, level 0 first, each its length and then room for its links.
    upper_nodes
        Nodes of all upper levels, ascending within each.
    bounds
        Upper level ``l`` (from 1) has the nodes ``upper_nodes[bounds[l - 1]:bounds[l]]``.
    num_nodes, wide, narrow
        Nodes, and how many neighbours they may have on level 0 and above.
    slack
        How many more there is room for, at least 1.
    """

    links: NDArray[np.uint32]
    upper_nodes: NDArray[np.uint32]
    bounds: NDArray[np.int64]
    num_nodes: int
    wide: int
    narrow: int
    slack: int


class Workspace(NamedTuple):
    """Memory of one thread.

    Parameters
    ----------
    visited
        A bit per node, all clear between searches.
    marked
        Room for all nodes: those whose bits are set.
    pool
        Room for the candidates of a search.
    nodes, distances
        Room for the neighbours of a node, to be scored together.
    chosen
        Room for as many.
    """

    visited: NDArray[np.uint64]
    marked: NDArray[np.uint32]
    pool: NDArray[np.uint64]
    nodes: NDArray[np.uint32]
    distances: NDArray[np.float32]
    chosen: NDArray[np.uint32]


@kernel
def list_of_row(draft: Draft, row: int) -> int:
    """Return where the list of a graph row begins."""
    wide, narrow = 1 + draft.wide + draft.slack, 1 + draft.narrow + draft.slack
    num_upper = max(row - draft.num_nodes, 0)
    return (row - num_upper) * wide + num_upper * narrow


@kernel
def list_of(draft: Draft, level: int, node: int) -> int:
    """Return where the list of a node begins; the node must be on the level."""
    if level == 0:
        return list_of_row(draft, node)
    low, high = int(draft.bounds[level - 1]), int(draft.bounds[level])
    while low < high:
        middle = (low + high) >> 1
        if draft.upper_nodes[middle] < node:
            low = middle + 1
        else:
            high = middle
    return list_of_row(draft, draft.num_nodes + low)


@kernel
def most_neighbours(draft: Draft, level: int) -> int:
    """Return how many neighbours a node of a finished graph may have on a level."""
    return draft.wide if level == 0 else draft.narrow


@kernel
def write_list(draft: Draft, place: int, nodes: NDArray[np.uint32], count: int) -> None:
    """Write the list that begins at ``place``."""
    draft.links[place] = count
    for i in range(count):
        draft.links[place + 1 + i] = nodes[i]


@kernel
def prefetch_list(draft: Draft, level: int, node: int) -> None:
    """Ask for a list of level 0; those above are few enough to be in caches."""
    if level == 0:
        place = draft.links.ctypes.data + _LINK_BYTES * list_of_row(draft, node)
        prefetch_bytes(place, _LINK_BYTES * (1 + draft.wide))
