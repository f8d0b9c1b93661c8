"""HNSW graphs of partitions: what ``index.idx`` says about them, decoded and checked.

Kernels follow neighbours without looking, so every id is checked here, once per loaded partition.
Facts: vector index page, section 4.5.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lance_core.errors import CorruptFileError
from lance_core.index.registry import UnusableSegmentError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    from numpy.typing import NDArray

GRAPH_COLUMNS = ("__vector_id", "__neighbors")
"""The columns of ``index.idx`` that a search needs; ``_distance`` is left unread."""

_KEY = "lance:hnsw"
_MAX_LINKS = 0xFFFF_FFFF


@dataclass(frozen=True, slots=True)
class GraphHeader:
    """The graph of one partition with rows.

    Parameters
    ----------
    entry_point
        Node where searches begin.
    level_offsets
        Level ``l`` is the graph rows from ``level_offsets[l]`` up to ``level_offsets[l + 1]``,
        counted from the partition's first. Ascending; surplus rows are never read.
    """

    entry_point: int
    level_offsets: tuple[int, ...]


class GraphArrays(NamedTuple):
    """The graph of one partition, as kernels take it; memory of its own, all uint32.

    Parameters
    ----------
    offsets, neighbours
        Level 0: the neighbours of node ``i`` are ``neighbours[offsets[i]:offsets[i + 1]]``, in
        stored order; ``offsets`` has one entry more than there are nodes.
    levels
        The entry point, the number ``u`` of upper levels, and ``u + 1`` positions: upper level
        ``l`` (from 1) has the nodes ``upper_nodes[levels[l + 1]:levels[l + 2]]``.
    upper_nodes
        Nodes of all upper levels, ascending within each.
    upper_offsets, upper_neighbours
        Neighbours of each of these, like those of level 0.
    """

    offsets: NDArray[np.uint32]
    neighbours: NDArray[np.uint32]
    levels: NDArray[np.uint32]
    upper_nodes: NDArray[np.uint32]
    upper_offsets: NDArray[np.uint32]
    upper_neighbours: NDArray[np.uint32]


NO_GRAPH = GraphArrays(
    np.zeros(1, np.uint32),
    np.zeros(0, np.uint32),
    np.zeros(3, np.uint32),
    np.zeros(0, np.uint32),
    np.zeros(1, np.uint32),
    np.zeros(0, np.uint32),
)
"""The graph of a partition without rows."""


def read_graph_headers(metadata: Mapping[str, str], path: str) -> list[GraphHeader | None]:
    """Read ``lance:hnsw`` from the schema metadata of ``index.idx``.

    Returns
    -------
    list[GraphHeader | None]
        One per partition; None where the partition is declared empty.

    Raises
    ------
    CorruptFileError
        The entry contradicts the format.
    UnusableSegmentError
        There is no such entry.
    """
    text = metadata.get(_KEY)
    if text is None:
        raise UnusableSegmentError("its files describe no HNSW graph")
    texts = _parsed(text, path)
    if not isinstance(texts, list) or not all(isinstance(each, str) for each in texts):
        raise CorruptFileError(path, f'metadata "{_KEY}" is no JSON array of strings')
    return [None if each == "" else _header(each, path) for each in texts]


def decode_graph(
    vector_ids: pa.Array,
    neighbours: pa.Array,
    header: GraphHeader | None,
    num_nodes: int,
    path: str,
) -> GraphArrays:
    """Turn the graph rows of one partition into arrays.

    Parameters
    ----------
    vector_ids
        ``__vector_id`` of the rows, uint32.
    neighbours
        ``__neighbors`` of the rows, lists of uint32.
    header
        None for a partition that is declared empty.
    num_nodes
        Rows of the partition in the storage.

    Raises
    ------
    CorruptFileError
        Level 0 does not hold each node in order, an id is not below ``num_nodes``, something is
        null, or levels lie outside the rows.

    Notes
    -----
    Releases up to 10.0.0 stored node 0 on all levels without counting it in ``level_offsets``, so
    that upper levels begin too early. pylance uses the offsets as they stand, and so does this: a
    later row replaces an earlier one of the same node, and a node without a row has no neighbours.
    """
    if num_nodes == 0:
        return NO_GRAPH
    if header is None:
        raise CorruptFileError(path, f"a partition of {num_nodes} rows has no graph")
    _check_header(header, num_nodes, len(vector_ids), path)
    bounds = header.level_offsets
    num_used = bounds[-1]
    nodes, starts, links = _rows(vector_ids[:num_used], neighbours[:num_used], path)
    for ids in (nodes, links):
        if len(ids) > 0 and int(ids.max()) >= num_nodes:
            raise CorruptFileError(path, f"a node of a graph of {num_nodes} is {int(ids.max())}")
    if bounds[1] != num_nodes or not np.array_equal(nodes[:num_nodes], np.arange(num_nodes)):
        raise CorruptFileError(path, f"level 0 of a graph does not hold its {num_nodes} nodes")
    lengths = np.diff(starts)
    if lengths.min() < 0 or lengths.max() > num_nodes or starts[-1] != len(links):
        raise CorruptFileError(path, f"a node has more neighbours than there are: {num_nodes}")
    own_starts = starts.astype(np.uint32)
    end = int(starts[num_nodes])
    return GraphArrays(
        own_starts[: num_nodes + 1].copy(),
        links[:end].copy(),
        *_upper_levels(nodes, own_starts, links, header),
    )


def _parsed(text: str, path: str) -> object:
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CorruptFileError(path, f'metadata "{_KEY}" is no JSON: {error}') from error
    return value


def _header(text: str, path: str) -> GraphHeader:
    value = _parsed(text, path)
    if not isinstance(value, dict):
        raise CorruptFileError(path, f'an entry of "{_KEY}" is no JSON object')
    offsets = value.get("level_offsets")
    # An entry for an empty partition need not name an entry point.
    entry_point = value.get("entry_point", 0)
    if not isinstance(offsets, list) or not all(map(_is_count, (entry_point, *offsets))):
        raise CorruptFileError(path, f'an entry of "{_KEY}" holds no list of level offsets')
    return GraphHeader(entry_point, tuple(offsets))


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_LINKS


def _check_header(header: GraphHeader, num_nodes: int, num_rows: int, path: str) -> None:
    if header.entry_point >= num_nodes:
        raise CorruptFileError(
            path, f"the entry point of a graph of {num_nodes} nodes is {header.entry_point}"
        )
    bounds = np.array(header.level_offsets, np.int64)
    if len(bounds) <= 1 or bounds[0] != 0 or (np.diff(bounds) < 0).any() or bounds[-1] > num_rows:
        raise CorruptFileError(
            path, f"levels of a graph lie at {bounds[:10].tolist()} of its {num_rows} rows"
        )


def _rows(
    vector_ids: pa.Array, neighbours: pa.Array, path: str
) -> tuple[NDArray[np.uint32], NDArray[np.int64], NDArray[np.uint32]]:
    """Return the node of each row, where its neighbours begin (and the end), and all neighbours."""
    links = neighbours.flatten()
    if vector_ids.null_count > 0 or neighbours.null_count > 0 or links.null_count > 0:
        raise CorruptFileError(path, "a node or neighbour of a graph is null")
    if len(links) > _MAX_LINKS:
        raise CorruptFileError(path, f"a graph has {len(links)} links")
    starts: NDArray[np.int64] = neighbours.offsets.to_numpy(zero_copy_only=True).astype(np.int64)
    return (
        vector_ids.to_numpy(zero_copy_only=True),
        starts - starts[0],
        links.to_numpy(zero_copy_only=True),
    )


def _upper_levels(
    nodes: NDArray[np.uint32],
    starts: NDArray[np.uint32],
    links: NDArray[np.uint32],
    header: GraphHeader,
) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint32]]:
    bounds = header.level_offsets
    filled = [(a, b) for a, b in pairwise(bounds[1:]) if a < b]
    rows = [start + _last_of_each(nodes[start:stop]) for start, stop in filled]
    chosen = np.concatenate([np.zeros(0, np.int64), *rows])
    ends_of_levels = np.cumsum([0, *map(len, rows)])
    lengths = (starts[chosen + 1] - starts[chosen]).astype(np.int64)
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    places = np.arange(int(ends[-1])) + np.repeat(starts[chosen] - ends[:-1], lengths)
    return (
        np.array([header.entry_point, len(rows), *ends_of_levels], np.uint32),
        nodes[chosen],
        ends.astype(np.uint32),
        links[places],
    )


def _last_of_each(nodes: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return the positions of the last row of each node, by node."""
    order = np.argsort(nodes, kind="stable")
    is_last = np.append(nodes[order[1:]] != nodes[order[:-1]], True)
    last: NDArray[np.int64] = order[is_last]
    return last
