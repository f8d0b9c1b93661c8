"""Building the graphs of IVF_HNSW: one per partition, over its rows as they are stored.

Nodes are added in an order drawn at random, those of high levels first: searches then begin at the
same node from the first to the last, and a batch of nodes is spread over the whole partition
however its rows are sorted. What is built depends on the rows and the seed only, not on threads.
"""

from __future__ import annotations

import json
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.errors import InvalidRequestError
from lance_core.index.vector.build.assign import NUM_THREADS
from lance_core.index.vector.build.graph_copies import find_copies
from lance_core.index.vector.build.graph_draft import draw_levels, empty_draft, workspace
from lance_core.index.vector.build.graph_rows import RowSpace, row_space
from lance_core.index.vector.build.model import GraphParameters
from lance_core.kernels.graph_build import batch_end, link_back, link_forward, link_serially
from lance_core.kernels.graph_finish import (
    hang_copies,
    link_unreached,
    pack_lists,
    score_links,
    shorten_lists,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from concurrent.futures import Future

    from numpy.typing import NDArray

    from lance_core.index.vector.build.graph_copies import RowCopies
    from lance_core.index.vector.build.graph_draft import Levels
    from lance_core.index.vector.build.model import VectorModel
    from lance_core.kernels.graph_draft import Draft, Workspace
    from lance_core.kernels.graph_rows import GraphRows

GRAPH_SCHEMA = pa.schema(
    [
        pa.field("__vector_id", pa.uint32()),
        pa.field("__neighbors", pa.list_(pa.uint32())),
        pa.field("_distance", pa.list_(pa.float32())),
    ]
)
"""Columns of ``index.idx`` (vector index page, section 4.5)."""

_UNDER_WAY = NUM_THREADS + 1  # or a thread would wait while a graph is written
_PREFETCH_DISTANCE = 2  # as pylance writes it
_MANY_ROWS = 1 << 16
"""A partition of so many keeps both threads busy alone."""
_SERIAL_ROWS = 1 << 12
"""Until a partition has so many, batches are too small to be split."""
_LINK_BYTES = 18
"""For each of `GraphBuilder`'s ``m``: links, and distances in the end."""
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
    A partition needs about ``10 m`` bytes a row beside its codes, and up to ``8 m`` more for
    distances when it is finished: 360 bytes a row with ``m`` 20. Vectors that are no float32 are
    copied, and so are codes of 4 bits.
    """

    __slots__ = ("_parameters", "_space")

    def __init__(self, model: VectorModel) -> None:
        self._parameters = GraphParameters() if model.graph is None else model.graph
        self._space: RowSpace = row_space(model)

    @property
    def row_bytes(self) -> int:
        """About the bytes that a row of a partition needs, beside its codes."""
        return _LINK_BYTES * self._parameters.max_connections

    def build_all(
        self, partitions: Iterable[NDArray[np.generic]], memory_bytes: int
    ) -> Iterator[PartitionGraph]:
        """Build the graphs of partitions in their order, small ones two at a time.

        Parameters
        ----------
        partitions
            The coded rows of each, see `build`; asked for when a thread is free.
        memory_bytes
            What several graphs may take that are under way together.
        """
        most_rows = memory_bytes // self.row_bytes
        with ThreadPoolExecutor(NUM_THREADS) as pool:
            under_way: deque[Future[PartitionGraph]] = deque()
            lengths: deque[int] = deque()
            for codes in partitions:
                is_large = len(codes) >= _MANY_ROWS
                most = 0 if is_large else max(most_rows - len(codes), 0)
                limit = 1 if is_large else _UNDER_WAY
                while len(under_way) >= limit or sum(lengths) > most:
                    lengths.popleft()
                    yield under_way.popleft().result()
                if is_large:
                    yield self._build(codes, pool)
                else:
                    under_way.append(pool.submit(self._build, codes, None))
                    lengths.append(len(codes))
            while len(under_way) > 0:
                yield under_way.popleft().result()

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
        with ThreadPoolExecutor(NUM_THREADS) as pool:
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
        # Upper levels have about half a list per node at most, of half the length.
        # A node has 2 m links on level 0 and about m / (m - 1) on all levels above.
        most = _MOST_LINKS // (2 * parameters.max_connections + 2)
        if num_nodes > most:
            raise InvalidRequestError(
                f"a graph over the {num_nodes} rows of one partition has too many links, at most"
                f" {most} rows can have one: ask for more partitions"
            )
        prepared = self._space.prepare(codes)
        rows = self._space.bind(prepared)
        copies = find_copies(prepared)
        levels = draw_levels(num_nodes, copies.rows, parameters)
        draft = empty_draft(levels, parameters)
        num_parts = 1 if pool is None else NUM_THREADS
        team = _Team(pool, [workspace(draft, parameters) for _ in range(num_parts)])
        _link(rows, draft, levels, parameters.ef_construction, team)
        return _finish(rows, draft, levels, copies, parameters.ef_construction, team)


@dataclass(frozen=True, slots=True)
class _Team:
    """The threads that build one graph, each with memory of its own; None = this one alone."""

    pool: ThreadPoolExecutor | None
    works: Sequence[Workspace]

    def run(self, call: Callable[[int, Workspace], object]) -> None:
        """Do all parts, named by their numbers, and wait for them."""
        mapped = map if self.pool is None else self.pool.map
        deque(mapped(call, range(len(self.works)), self.works), maxlen=0)

    def share(self, count: int, call: Callable[[int, int, Workspace], object]) -> None:
        """Do a number of things, split into as many ranges as there are threads."""
        num_parts = len(self.works)
        bounds = [count * part // num_parts for part in range(num_parts + 1)]
        self.run(lambda part, work: call(bounds[part], bounds[part + 1], work))


def _link(rows: GraphRows, draft: Draft, levels: Levels, ef: int, team: _Team) -> None:
    """Add all nodes; the first has no neighbours then."""
    order, of_node, num_nodes = levels.order, levels.of_node, len(levels.order)
    num_serial = num_nodes if len(team.works) == 1 else min(_SERIAL_ROWS, num_nodes)
    start = link_serially(rows, draft, order, of_node, 1, num_serial, ef, team.works[0])
    while start < num_nodes:
        end = batch_end(start, num_nodes)
        _link_batch(rows, draft, levels, start, end, ef, team)
        start = end


def _link_batch(
    rows: GraphRows, draft: Draft, levels: Levels, start: int, end: int, ef: int, team: _Team
) -> None:
    forward = partial(link_forward, rows, draft, levels.order, levels.of_node, start, end)
    back = partial(link_back, rows, draft, levels.order, levels.of_node, start, end)
    team.run(lambda part, work: forward(part, len(team.works), ef, work))
    team.run(lambda part, work: back(part, len(team.works), work))


def _finish(
    rows: GraphRows, draft: Draft, levels: Levels, copies: RowCopies, ef: int, team: _Team
) -> PartitionGraph:
    """Link what cannot be reached, and turn lists into columns."""
    nodes, num_nodes = levels.nodes, draft.num_nodes
    entry_point = int(levels.order[0])
    team.share(len(nodes), partial(shorten_lists, rows, draft, nodes))
    hang_copies(draft, copies.rows, copies.originals)
    parents, waiting = np.empty((2, num_nodes), np.uint32)
    reached = np.zeros((num_nodes >> 6) + 1, np.uint64)
    link_unreached(rows, draft, entry_point, ef, parents, waiting, reached, team.works[0])
    offsets = np.empty(len(nodes) + 1, np.int32)
    pack_lists(draft, offsets)
    links = draft.links[: offsets[-1]]
    distances = np.empty(len(links), np.float32)
    score = partial(score_links, rows, nodes, offsets, links, distances)
    team.share(len(nodes), lambda start, stop, _: score(start, stop))
    columns = [
        pa.array(nodes),
        pa.ListArray.from_arrays(pa.array(offsets), pa.array(links)),
        pa.ListArray.from_arrays(pa.array(offsets), pa.array(distances)),
    ]
    return PartitionGraph(
        pa.RecordBatch.from_arrays(columns, schema=GRAPH_SCHEMA),
        tuple(levels.offsets.tolist()),
        entry_point,
    )


def _header(graph: PartitionGraph, params: dict[str, int]) -> str:
    if graph.entry_point is None:
        return ""
    header = {
        "entry_point": graph.entry_point,
        "params": params,
        "level_offsets": graph.level_offsets,
    }
    return json.dumps(header, separators=(",", ":"))
