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
from lance_core.kernels.memory import bytes_at, float32_at, int16_at, prefetch_bytes

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

_NUM_NIBBLES = 16
_NUM_CODES = 256


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
    step = np.float32(np.float32(bounds[1] - bounds[0]) / np.float32(255))
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


@kernel(ordered=True)
def quantise(
    query: NDArray[np.float32], bounds: tuple[float, float], codes: NDArray[np.int16]
) -> None:
    """Write the byte code of each number, as pylance does (vector index page, section 4.3)."""
    start, end = bounds
    for j in range(len(query)):
        scaled = (np.float64(query[j]) - start) * 255 / (end - start)
        # Written so that NaN, as without a range, becomes 0.
        codes[j] = np.int16(min(scaled, 255.0)) if scaled > 0 else np.int16(0)


@kernel
def prefetch_nodes(scorer: Scorer, nodes: NDArray[np.uint32], count: int) -> None:
    """Ask for the rows of the first ``count`` of ``nodes``."""
    for i in range(count):
        prefetch_bytes(scorer.rows + int(np.int64(nodes[i])) * scorer.row_bytes, scorer.row_bytes)


@kernel(ordered=True)
def score_nodes(
    scorer: Scorer, nodes: NDArray[np.uint32], count: int, distances: NDArray[np.float32]
) -> None:
    """Write the distances of the first ``count`` of ``nodes``."""
    if scorer.storage == VECTORS:
        query = float32_at(scorer.query, scorer.width)
        for i in range(count):
            vector = float32_at(_row(scorer, nodes[i]), scorer.width)
            distances[i] = exact_distance(vector, query, scorer.factor, scorer.metric)
    elif scorer.storage == SCALAR_CODES:
        for i in range(count):
            gaps = squared_gaps(_row(scorer, nodes[i]), scorer.query, scorer.width)
            distances[i] = np.float32(gaps) * scorer.factor
    elif scorer.storage == SCALAR_CODES_DOT:
        for i in range(count):
            total = product_of_codes(_row(scorer, nodes[i]), scorer.query, scorer.width)
            distances[i] = np.float32(1) - (scorer.offset + scorer.factor * total)
    elif scorer.storage == PRODUCT_CODES:
        for i in range(count):
            total = sum_of_entries(_row(scorer, nodes[i]), scorer.query, scorer.width)
            distances[i] = total - scorer.offset
    else:
        for i in range(count):
            total = sum_of_nibbles(_row(scorer, nodes[i]), scorer.query, scorer.width)
            distances[i] = total - scorer.offset


@kernel
def _row(scorer: Scorer, node: np.uint32) -> int:
    return scorer.rows + int(np.int64(node)) * scorer.row_bytes


@kernel
def squared_gaps(row: int, query: int, width: int) -> np.int32:
    """Return the squared l2 distance of byte codes and int16 codes.

    Every step is cast: numba would widen the sums, which then cost three times as much.
    """
    codes = bytes_at(row, width)
    asked = int16_at(query, width)
    total = np.int32(0)
    for j in range(width):
        gap = np.int16(np.int16(codes[j]) - asked[j])
        total = np.int32(total + np.int32(np.int32(gap) * np.int32(gap)))
    return total


@kernel
def product_of_codes(row: int, query: int, width: int) -> np.float32:
    """Return the inner product of byte codes and a float32 query."""
    codes = bytes_at(row, width)
    asked = float32_at(query, width)
    total = np.float32(0)
    for j in range(width):
        total += np.float32(codes[j]) * asked[j]
    return total


@kernel(ordered=True)
def sum_of_entries(row: int, table: int, width: int) -> np.float32:
    """Add one table entry per byte, in order, as pylance does."""
    codes = bytes_at(row, width)
    entries = float32_at(table, width * _NUM_CODES)
    total = np.float32(0)
    for j in range(width):
        total += entries[j * _NUM_CODES + codes[j]]
    return total


@kernel(ordered=True)
def sum_of_nibbles(row: int, table: int, width: int) -> np.float32:
    """Add one table entry per 4-bit code, in order, as pylance does; ``width`` is even."""
    codes = bytes_at(row, width >> 1)
    entries = float32_at(table, width * _NUM_NIBBLES)
    total = np.float32(0)
    for b in range(width >> 1):
        place = 2 * b * _NUM_NIBBLES
        total += entries[place + (codes[b] & np.uint8(15))]
        total += entries[place + _NUM_NIBBLES + (codes[b] >> np.uint8(4))]
    return total
