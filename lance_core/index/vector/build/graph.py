"""Building the graphs of IVF_HNSW: one per partition, over its rows as they are stored.

Nodes are added in an order drawn at random, those of high levels first: searches then begin at the
same node from the first to the last, and a batch of nodes is spread over the whole partition
however its rows are sorted. What is built depends on the rows and the seed only, not on threads.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from lance_core.errors import InvalidRequestError
from lance_core.index.vector.build.graph_rows import RowSpace, row_space
from lance_core.index.vector.build.model import GraphParameters
from lance_core.kernels.graph_build import (
    Draft,
    Workspace,
    batch_end,
    link_back,
    link_forward,
    link_serially,
)
from lance_core.kernels.graph_finish import link_unreached, pack_lists, score_links

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from concurrent.futures import Future

    from numpy.typing import NDArray

    from lance_core.index.vector.build.model import VectorModel
    from lance_core.kernels.graph_rows import GraphRows

GRAPH_SCHEMA = pa.schema(
    [
        pa.field("__vector_id", pa.uint32()),
        pa.field("__neighbors", pa.list_(pa.uint32())),
        pa.field("_distance", pa.list_(pa.float32())),
    ]
)
"""Columns of ``index.idx`` (vector index page, section 4.5)."""

_SEED = 42
_NUM_THREADS = 2
_PREFETCH_DISTANCE = 2  # as pylance writes it
_MANY_ROWS = 1 << 16
"""A partition of so many keeps both threads busy alone."""
_SERIAL_ROWS = 1 << 12
"""Until a partition has so many, batches are too small to be split."""
_MOST_LINKS = (1 << 31) - 1


@dataclass(frozen=True, slots=True, eq=False)
class PartitionGraph:
    """The graph of one partition.

    Parameters
    ----------
    rows
        `GRAPH_SCHEMA`: level 0 first, nodes ascending within each level.
    level_offsets
        ``max_level + 1`` numbers: level ``l`` is the rows from ``level_offsets[l]`` up to
        ``level_offsets[l + 1]``.
    entry_point
        Where searches begin: a node of the highest level. None in an empty partition.
    """

    rows: pa.RecordBatch
    level_offsets: tuple[int, ...]
    entry_point: int | None


class _Levels(NamedTuple):
    """Which nodes are on which levels.

    Parameters
    ----------
    order
        All nodes, uint32, in the order in which they are added.
    of_node
        The highest level of each, int8.
    nodes
        Nodes of all levels one after the other, uint32, ascending within each.
    offsets
        As in `PartitionGraph`, int64.
    """

    order: NDArray[np.uint32]
    of_node: NDArray[np.int8]
    nodes: NDArray[np.uint32]
    offsets: NDArray[np.int64]


class GraphBuilder:
    """Builds the graphs of a model's partitions.

    Parameters
    ----------
    model
        A model with ``graph``.

    Raises
    ------
    UnsupportedFeatureError
        There are no graphs over its codes.

    Notes
    -----
    A partition needs ``4 * (2 m + 1)`` bytes a row beside its codes, and while it is finished as
    much as that again for distances: with ``m`` 20 about 330 bytes. Rows that are no float32 or
    bytes are copied, and so are codes of 4 bits.
    """

    __slots__ = ("_parameters", "_space")

    def __init__(self, model: VectorModel) -> None:
        self._parameters = GraphParameters() if model.graph is None else model.graph
        self._space: RowSpace = row_space(model)

    def build_all(self, partitions: Iterable[NDArray[np.generic]]) -> Iterator[PartitionGraph]:
        """Build the graphs of partitions in their order, small ones two at a time.

        Parameters
        ----------
        partitions
            The coded rows of each, see `build`; asked for when a thread is free.
        """
        with ThreadPoolExecutor(_NUM_THREADS) as pool:
            under_way: list[Future[PartitionGraph]] = []
            for codes in partitions:
                is_large = len(codes) >= _MANY_ROWS
                while len(under_way) >= (1 if is_large else _NUM_THREADS):
                    yield under_way.pop(0).result()
                if is_large:
                    yield self._build(codes, pool)
                else:
                    under_way.append(pool.submit(self._build, codes, None))
            for future in under_way:
                yield future.result()

    def build(self, codes: NDArray[np.generic]) -> PartitionGraph:
        """Build the graph of one partition, on two threads where it is large.

        Parameters
        ----------
        codes
            Shape ``(n, width)``: vectors (FLAT; of unit length with cosine), SQ codes, or PQ codes
            row by row, two in a byte if they have 4 bits.

        Raises
        ------
        LimitExceededError
            The partition has more links than a list array can hold.
        """
        with ThreadPoolExecutor(_NUM_THREADS) as pool:
            return self._build(codes, pool if len(codes) >= _MANY_ROWS else None)

    def metadata(self, graphs: Iterable[PartitionGraph]) -> str:
        """Return what ``lance:hnsw`` says about the graphs of all partitions.

        Notes
        -----
        Vector index page, section 4.5.
        """
        params = {
            "max_level": self._parameters.max_level,
            "m": self._parameters.max_connections,
            "ef_construction": self._parameters.ef_construction,
            "prefetch_distance": _PREFETCH_DISTANCE,
        }
        return json.dumps([_header(graph, params) for graph in graphs])

    def _build(self, codes: NDArray[np.generic], pool: ThreadPoolExecutor | None) -> PartitionGraph:
        num_nodes, parameters = len(codes), self._parameters
        if num_nodes == 0:
            offsets = (0,) * (parameters.max_level + 1)
            return PartitionGraph(pa.RecordBatch.from_pylist([], GRAPH_SCHEMA), offsets, None)
        most = (_MOST_LINKS // (2 * parameters.max_connections + 1)) >> 1
        if num_nodes > most:
            raise InvalidRequestError(
                f"a graph over the {num_nodes} rows of one partition has too many links, at most"
                f" {most} rows can have one: ask for more partitions"
            )
        prepared = self._space.prepare(codes)
        rows = self._space.bind(prepared)
        levels = _draw_levels(num_nodes, parameters)
        draft = _empty_draft(levels, parameters)
        works = [_workspace(num_nodes, parameters) for _ in range(1 if pool is None else 2)]
        _link(rows, draft, levels, parameters.ef_construction, works, pool)
        return _finish(rows, draft, levels, parameters, works, pool)


def _draw_levels(num_nodes: int, parameters: GraphParameters) -> _Levels:
    """Draw levels: each has the ``m``-th part of the nodes of that below it."""
    generator = np.random.default_rng(_SEED)
    heights = generator.standard_exponential(num_nodes) / np.log(parameters.max_connections)
    of_node = np.minimum(heights, parameters.max_level - 1).astype(np.int8)
    drawn = generator.permutation(num_nodes).astype(np.uint32)
    order = drawn[np.argsort(-of_node[drawn], kind="stable")]
    of_levels = [np.flatnonzero(of_node >= level) for level in range(parameters.max_level)]
    return _Levels(
        order,
        of_node,
        np.concatenate(of_levels).astype(np.uint32),
        np.cumsum([0, *map(len, of_levels)]),
    )


def _empty_draft(levels: _Levels, parameters: GraphParameters) -> Draft:
    num_nodes = len(levels.order)
    narrow = parameters.max_connections
    wide = 2 * narrow
    num_upper = len(levels.nodes) - num_nodes
    return Draft(
        np.zeros(num_nodes * (wide + 1) + num_upper * (narrow + 1), np.uint32),
        levels.nodes[num_nodes:],
        levels.offsets[1:] - num_nodes,
        num_nodes,
        wide,
        narrow,
    )


def _workspace(num_nodes: int, parameters: GraphParameters) -> Workspace:
    wide = 2 * parameters.max_connections
    return Workspace(
        np.zeros((num_nodes >> 6) + 1, np.uint64),
        np.empty(num_nodes, np.uint32),
        np.empty(max(parameters.ef_construction, wide + 1), np.uint64),
        np.empty(wide, np.uint32),
        np.empty(wide, np.float32),
        np.empty(wide, np.uint32),
    )


def _link(
    rows: GraphRows,
    draft: Draft,
    levels: _Levels,
    ef: int,
    works: list[Workspace],
    pool: ThreadPoolExecutor | None,
) -> None:
    """Add all nodes, the first of which has no neighbours yet."""
    order, of_node, num_nodes = levels.order, levels.of_node, len(levels.order)
    num_serial = num_nodes if pool is None else min(_SERIAL_ROWS, num_nodes)
    start = link_serially(rows, draft, order, of_node, 1, num_serial, ef, works[0])
    while pool is not None and start < num_nodes:
        end, num_parts = batch_end(start, num_nodes), len(works)
        forward = [
            pool.submit(
                link_forward, rows, draft, order, of_node, start + part, end, num_parts, ef, work
            )
            for part, work in enumerate(works)
        ]
        for done in forward:
            done.result()
        back = [
            pool.submit(link_back, rows, draft, order, of_node, start, end, part, num_parts, work)
            for part, work in enumerate(works)
        ]
        for done in back:
            done.result()
        start = end


def _finish(
    rows: GraphRows,
    draft: Draft,
    levels: _Levels,
    parameters: GraphParameters,
    works: list[Workspace],
    pool: ThreadPoolExecutor | None,
) -> PartitionGraph:
    """Link what cannot be reached, and turn lists into columns."""
    num_nodes, num_rows = draft.num_nodes, len(levels.nodes)
    link_unreached(
        rows,
        draft,
        int(levels.order[0]),
        parameters.ef_construction,
        np.empty(num_nodes, np.uint32),
        np.empty(num_nodes, np.uint32),
        np.zeros((num_nodes >> 6) + 1, np.uint64),
        works[0],
    )
    offsets = np.empty(num_rows + 1, np.int32)
    pack_lists(draft, offsets)
    links = draft.links[: offsets[-1]]
    distances = np.empty(len(links), np.float32)
    bounds = [num_rows * part // len(works) for part in range(len(works) + 1)]
    scored = map if pool is None else pool.map
    list(
        scored(
            lambda first, stop: score_links(
                rows, levels.nodes, offsets, links, distances, first, stop
            ),
            bounds[:-1],
            bounds[1:],
        )
    )
    lists = [
        pa.ListArray.from_arrays(pa.array(offsets), pa.array(values))
        for values in (links, distances)
    ]
    batch = pa.RecordBatch.from_arrays([pa.array(levels.nodes), *lists], schema=GRAPH_SCHEMA)
    return PartitionGraph(batch, tuple(levels.offsets.tolist()), int(levels.order[0]))


def _header(graph: PartitionGraph, params: dict[str, int]) -> str:
    if graph.entry_point is None:
        return ""
    header = {
        "entry_point": graph.entry_point,
        "params": params,
        "level_offsets": graph.level_offsets,
    }
    return json.dumps(header, separators=(",", ":"))
