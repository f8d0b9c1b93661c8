"""Distances of single rows of a partition, whatever they are stored as.

Graph searches score a few rows here and a few there, so what depends on the storage is decided
once per handful of rows. A `Scorer` says all about the rows of one partition; it holds addresses
and numbers only, because passing arrays on costs more than a handful of rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lance_core.kernels.compile import kernel
from lance_core.kernels.distance import DOT, exact_distance, inner_product
from lance_core.kernels.hamming import hamming_distance
from lance_core.kernels.memory import bytes_at, float32_at, int16_at, prefetch_bytes
from lance_core.kernels.pq_table import NUM_CODES, NUM_NIBBLES
from lance_core.kernels.sq_distance import LARGEST_CODE, squared_code_gap, weighted_codes

if TYPE_CHECKING:
    from numpy.typing import NDArray

VECTORS = 0
"""Rows are float32 vectors, the query one too; ``factor`` is its norm."""
SCALAR_CODES = 1
"""Rows are bytes, the query is int16 codes; ``factor`` scales the squared l2 of codes."""
SCALAR_CODES_DOT = 2
"""Rows are bytes, the query is float32: ``1 - (offset + factor * sum)``."""
PRODUCT_CODES = 3
"""Rows are bytes, the query is a table of 256 float32 per byte; ``offset`` is taken off."""
PRODUCT_NIBBLES = 4
"""Rows are pairs of 4-bit codes, low half first, the query is a table of 16 float32 per code."""
BYTES = 5
"""Rows are bytes, the query too, compared bit by bit."""


class Scorer(NamedTuple):
    """How the rows of one partition are scored.

    Parameters
    ----------
    storage
        What rows are: one of the numbers of this module.
    metric
        Code of `lance_core.kernels.distance`, for whole vectors.
    rows, row_bytes
        Address of the first row, and how far they lie apart.
    query, width
        Address of the query, prepared as the storage wants it; numbers or codes of a row.
    factor, offset
        What the sums are turned into distances with.
    """

    storage: int
    metric: int
    rows: int
    row_bytes: int
    query: int
    width: int
    factor: np.float32
    offset: np.float32


@kernel
def constants(
    storage: int,
    metric: int,
    query: NDArray[np.float32],
    bounds: tuple[float, float],
    width: int,
) -> tuple[np.float32, np.float32]:
    """Return factor and offset of a `Scorer` for a query.

    ``bounds`` is the range that byte codes divide.
    """
    step = np.float32(np.float32(bounds[1] - bounds[0]) / np.float32(LARGEST_CODE))
    if storage == VECTORS:
        return np.sqrt(inner_product(query, query)), np.float32(0)
    if storage == SCALAR_CODES:
        return step * step, np.float32(0)
    if storage == SCALAR_CODES_DOT:
        total = np.float32(0)
        for value in query:
            total += value
        return step, np.float32(bounds[0]) * total
    return np.float32(1), np.float32(width - 1 if metric == DOT else 0)


@kernel
def write_bytes(query: NDArray[np.float32], address: int) -> None:
    """Write whole numbers from 0 to 255 as bytes."""
    written = bytes_at(address, len(query))
    for j in range(len(query)):
        written[j] = np.uint8(query[j])


@kernel
def prefetch_nodes(scorer: Scorer, nodes: NDArray[np.uint32], count: int) -> None:
    """Ask for the rows of the first ``count`` of ``nodes``."""
    for i in range(count):
        prefetch_bytes(scorer.rows + int(np.int64(nodes[i])) * scorer.row_bytes, scorer.row_bytes)


@kernel
def score_nodes(
    scorer: Scorer, nodes: NDArray[np.uint32], count: int, distances: NDArray[np.float32]
) -> None:
    """Write the distances of the first ``count`` of ``nodes``."""
    for i in range(count):
        distances[i] = score_row(scorer, scorer.rows + int(np.int64(nodes[i])) * scorer.row_bytes)


@kernel(ordered=True)
def score_row(scorer: Scorer, row: int) -> np.float32:
    """Return the distance of the row at an address."""
    width = scorer.width
    if scorer.storage == SCALAR_CODES:
        gaps = squared_code_gap(bytes_at(row, width), int16_at(scorer.query, width))
        return np.float32(gaps) * scorer.factor
    if scorer.storage == SCALAR_CODES_DOT:
        total = weighted_codes(bytes_at(row, width), float32_at(scorer.query, width))
        return np.float32(1) - (scorer.offset + scorer.factor * total)
    if scorer.storage == PRODUCT_CODES:
        return sum_of_entries(row, scorer.query, width) - scorer.offset
    if scorer.storage == PRODUCT_NIBBLES:
        return sum_of_nibbles(row, scorer.query, width) - scorer.offset
    if scorer.storage == BYTES:
        return hamming_distance(row, scorer.query, width)
    query = float32_at(scorer.query, width)
    return exact_distance(float32_at(row, width), query, scorer.factor, scorer.metric)


@kernel(ordered=True)
def sum_of_entries(row: int, table: int, width: int) -> np.float32:
    """Add one table entry per byte, in order, as pylance does."""
    codes = bytes_at(row, width)
    entries = float32_at(table, width * NUM_CODES)
    total = np.float32(0)
    for j in range(width):
        total += entries[j * NUM_CODES + codes[j]]
    return total


@kernel(ordered=True)
def sum_of_nibbles(row: int, table: int, width: int) -> np.float32:
    """Add one table entry per 4-bit code, in order, as pylance does; ``width`` is even."""
    codes = bytes_at(row, width >> 1)
    entries = float32_at(table, width * NUM_NIBBLES)
    total = np.float32(0)
    for b in range(width >> 1):
        place = 2 * b * NUM_NIBBLES
        total += entries[place + (codes[b] & np.uint8(15))]
        total += entries[place + NUM_NIBBLES + (codes[b] >> np.uint8(4))]
    return total
