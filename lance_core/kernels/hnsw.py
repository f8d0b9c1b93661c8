"""Searching partitions that hold HNSW graphs over whole vectors or codes.

One traversal for all storages; what a row's distance is stands in
`lance_core.kernels.hnsw_scoring`. A partition of which the filter leaves few rows is scanned.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.distance import DOT, L2
from lance_core.kernels.hnsw_beam import (
    Graph,
    Scratch,
    descend,
    search_beam,
)
from lance_core.kernels.hnsw_offer import SCAN_ROWS, offer_found, scan
from lance_core.kernels.hnsw_scoring import (
    BYTES,
    SCALAR_CODES,
    VECTORS,
    Scorer,
    constants,
    write_bytes,
)
from lance_core.kernels.hnsw_two_hop import Waypoints, mark_passing, search_two_hop
from lance_core.kernels.hnsw_wanted import (
    Wanted,
    count_passing,
    is_bounded,
    key_range,
)
from lance_core.kernels.memory import address_of
from lance_core.kernels.pq_table import fill_table
from lance_core.kernels.sq_distance import quantise
from lance_core.kernels.topk import TopRows

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SCAN_BELOW_PERCENT = 10


@dataclass(frozen=True, slots=True, eq=False)
class GraphStorage:
    """How the rows of all partitions of a segment are stored.

    Parameters
    ----------
    rows
        What they are: a number of `lance_core.kernels.hnsw_scoring`.
    metric
        Code of `lance_core.kernels.distance`.
    row_bytes, width
        Bytes of a row; numbers or codes in it.
    start, end
        The range that byte codes divide (vector index page, section 4.3).
    centroids
        Shape ``(P, d)``: what codes of a product quantiser are residuals of; without rows where
        they are codes of the vectors.
    codebook
        Shape ``(m, d / m, K)``: per sub-vector and sub-dimension the values of all codes; without
        rows where there is none.
    """

    rows: int
    metric: int
    row_bytes: int
    width: int
    start: float = 0.0
    end: float = 0.0
    centroids: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 1), np.float32))
    codebook: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 1, 1), np.float32))


def search_graphs(
    blocks: NDArray[np.int64],
    probes: NDArray[np.int64],
    query: NDArray[np.float32],
    storage: GraphStorage,
    words: NDArray[np.uint64],
    top: TopRows,
    *,
    ef: int,
    upper: float | None,
    is_fast: bool,
) -> None:
    """Offer to ``top`` the nearest rows that walks through the graphs of some partitions reach.

    Parameters
    ----------
    blocks
        Shape ``(n, 9)``, C-contiguous and writable. Per partition: address of its rows, one after
        the other, codes too; address of its uint32 ordinals; number of rows; addresses of the
        arrays of its graph in the order of `lance_core.index.vector.hnsw_graph.GraphArrays`. The
        caller keeps the memory alive.
    probes
        Shape ``(n,)``: the partitions, to find their centroids.
    query
        Shape ``(d,)``, C-contiguous and writable; of unit length for cosine.
    storage
        What the rows are.
    words
        Dense bitset over ordinals; only rows whose bit is set are kept, all are walked through.
    top
        Receives the nearest rows; NaN distances never enter.
    ef
        How many rows of a partition a walk keeps, at least as many as are wanted.
    upper
        The upper bound of distances that ``top`` was made with.
    is_fast
        Where a filter keeps some of a partition's rows, do not score the others.

    Notes
    -----
    Vector index page, section 5.
    """
    _search_graphs(
        blocks,
        probes,
        query,
        storage.rows,
        storage.metric,
        storage.row_bytes,
        storage.width,
        (storage.start, storage.end),
        storage.centroids,
        storage.codebook,
        np.empty(storage.codebook.shape[::2], np.float32),
        np.empty(len(query), np.int16),
        address_of(words),
        len(words),
        top.keys,
        top.state,
        top.k,
        top.lower,
        np.float32(np.nan) if upper is None else np.float32(upper),
        ef,
        is_fast,
    )


@kernel
def _search_graphs(
    blocks: NDArray[np.int64],
    probes: NDArray[np.int64],
    query: NDArray[np.float32],
    rows: int,
    metric: int,
    row_bytes: int,
    width: int,
    bounds: tuple[float, float],
    centroids: NDArray[np.float32],
    codebook: NDArray[np.float32],
    table: NDArray[np.float32],
    codes: NDArray[np.int16],
    words_address: int,
    num_words: int,
    keys: NDArray[np.uint64],
    state: NDArray[np.uint64],
    k: int,
    lower: np.float32,
    upper: np.float32,
    ef: int,
    is_fast: bool,
) -> None:
    most_rows = 0
    for block in range(len(blocks)):
        most_rows = max(most_rows, blocks[block, 2])
    scratch = make_scratch(most_rows, min(ef, most_rows))
    waypoints = make_waypoints(most_rows if is_fast else 0)
    first, limit = key_range(lower, upper)
    factor, offset = constants(rows, metric, query, bounds, width)
    prepared = prepare(rows, metric, query, bounds, centroids, codebook, table, codes)
    for block in range(len(blocks)):
        num_nodes = blocks[block, 2]
        if num_nodes == 0:
            continue
        if len(centroids) > 0:
            fill_table(query - centroids[probes[block]], codebook, table, metric == DOT)
        address = blocks[block, 0]
        scorer = Scorer(rows, metric, address, row_bytes, prepared, width, factor, offset)
        wanted = Wanted(blocks[block, 1], words_address, num_words, first, limit)
        graph = graph_of(blocks, block)
        if is_fast:
            num_passing = mark_passing(wanted, num_nodes, waypoints.passing)
        else:
            num_passing = count_passing(wanted, num_nodes, few_rows(num_nodes))
        if is_scanned(num_nodes, num_passing, ef, is_fast):
            scan(scorer, wanted, num_nodes, scratch, keys, state, k, lower)
        else:
            count = walk(graph, scorer, wanted, scratch, waypoints, ef, k, num_passing, is_fast)
            offer_found(wanted, scratch, count, keys, state, k, lower)


@kernel
def few_rows(num_nodes: int) -> int:
    """Return the number of rows below which those that pass are scanned."""
    return num_nodes * _SCAN_BELOW_PERCENT // 100


@kernel
def is_scanned(num_nodes: int, num_passing: int, ef: int, is_fast: bool) -> bool:
    """Tell whether all rows that pass are scored, without a walk.

    Because they are few, or because a walk would keep every row that it can reach.
    """
    if num_passing < few_rows(num_nodes):
        return True
    return ef >= num_nodes and not (is_fast and num_passing < num_nodes)


@kernel
def prepare(
    rows: int,
    metric: int,
    query: NDArray[np.float32],
    bounds: tuple[float, float],
    centroids: NDArray[np.float32],
    codebook: NDArray[np.float32],
    table: NDArray[np.float32],
    codes: NDArray[np.int16],
) -> int:
    """Return the address of the query as rows are compared with.

    Tables of residuals are filled later, for each partition.
    """
    if rows == SCALAR_CODES:
        quantise(query, bounds[0], bounds[1], codes)
        return codes.ctypes.data
    if rows == BYTES:
        write_bytes(query, codes.ctypes.data)
        return codes.ctypes.data
    if len(codebook) == 0:
        return query.ctypes.data
    if len(centroids) == 0:
        fill_table(query, codebook, table, metric == DOT)
    return table.ctypes.data


@kernel
def graph_of(blocks: NDArray[np.int64], block: int) -> Graph:
    """Return the graph in a row of the table of partitions."""
    return Graph(
        blocks[block, 2],
        blocks[block, 3],
        blocks[block, 4],
        blocks[block, 5],
        blocks[block, 6],
        blocks[block, 7],
        blocks[block, 8],
    )


@kernel
def walk(
    graph: Graph,
    scorer: Scorer,
    wanted: Wanted,
    scratch: Scratch,
    waypoints: Waypoints,
    ef: int,
    k: int,
    num_passing: int,
    is_fast: bool,
) -> int:
    """Collect near rows in ``scratch.results``; return how many.

    With ``is_fast``, ``waypoints.passing`` holds the ``num_passing`` rows that pass.
    """
    entry = descend(graph, scorer, scratch)
    if is_fast and num_passing < graph.num_nodes:
        count = search_two_hop(graph, scorer, wanted, scratch, waypoints, entry, ef, num_passing)
        if count >= min(k, num_passing) or is_bounded(wanted):
            return count
    return search_beam(graph, scorer, wanted, scratch, entry, ef)


@kernel
def make_scratch(num_rows: int, num_results: int) -> Scratch:
    """Allocate memory for partitions of up to ``num_rows`` rows."""
    return Scratch(
        np.empty((num_rows >> 6) + 1, np.uint64),
        np.empty(num_rows, np.uint64),
        np.empty(num_results, np.uint64),
        np.empty(max(num_rows, SCAN_ROWS), np.uint32),
        np.empty(max(num_rows, SCAN_ROWS), np.float32),
    )


@kernel
def make_waypoints(num_rows: int) -> Waypoints:
    """Allocate the queue of a two-hop search."""
    return Waypoints(
        np.empty((num_rows >> 6) + 1, np.uint64),
        np.empty((num_rows >> 6) + 1, np.uint64),
        np.empty((num_rows >> 6) + 1, np.uint64),
        np.empty(num_rows, np.uint32),
        np.empty(3, np.int64),
    )


@warmup
def _warm() -> None:
    vectors = np.ones((2, 4), np.float32)
    ordinals = np.arange(2, dtype=np.uint32)
    offsets = np.arange(3, dtype=np.uint32)
    neighbours = np.array([1, 0], np.uint32)
    levels = np.zeros(3, np.uint32)
    arrays = [offsets, neighbours, levels, ordinals, offsets, neighbours]
    row = [address_of(vectors), address_of(ordinals), 2, *map(address_of, arrays)]
    storage = GraphStorage(VECTORS, L2, row_bytes=16, width=4)
    search_graphs(
        np.array([row], np.int64),
        np.zeros(1, np.int64),
        vectors[0].copy(),
        storage,
        np.ones(1, np.uint64),
        TopRows(1, 2),
        ef=1,
        upper=None,
        is_fast=False,
    )
