"""Distances between two stored rows of a partition, which graphs are built with.

What rows are is said by the numbers of `lance_core.kernels.hnsw_scoring`. The distance of two coded
rows is that of the vectors they stand for, so neither has to be decoded: product codes are looked
up in a table of the distances between any two codes of a sub-vector.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lance_core.kernels.compile import kernel
from lance_core.kernels.distance import COSINE, L2, inner_product, squared_l2
from lance_core.kernels.hamming import hamming_distance
from lance_core.kernels.hnsw_scoring import BYTES, PRODUCT_CODES, SCALAR_CODES, SCALAR_CODES_DOT
from lance_core.kernels.memory import bytes_at, float32_at, prefetch_bytes

if TYPE_CHECKING:
    from numpy.typing import NDArray


class GraphRows(NamedTuple):
    """The rows of one partition; the caller keeps the memory alive.

    Parameters
    ----------
    storage
        ``VECTORS`` (float32, of unit length with cosine), ``SCALAR_CODES``, ``SCALAR_CODES_DOT``,
        ``PRODUCT_CODES`` (one byte a code, of 4 bits too) or ``BYTES``.
    metric
        Code of `lance_core.kernels.distance`, for whole vectors.
    rows, row_bytes, width
        Address of the first row, how far rows lie apart, numbers or codes of a row.
    table, num_codes
        Address of float32 of shape ``(width, num_codes, num_codes)``: what two codes of a
        sub-vector add to the distance.
    start, step
        The vector that scalar codes stand for is ``start + step * code``.
    offset
        What sums of table entries are added to.
    """

    storage: int
    metric: int
    rows: int
    row_bytes: int
    width: int
    table: int
    num_codes: int
    start: np.float32
    step: np.float32
    offset: np.float32


@kernel
def pair_distance(rows: GraphRows, a: int, b: int) -> np.float32:
    """Return the distance of two rows."""
    one, other = rows.rows + a * rows.row_bytes, rows.rows + b * rows.row_bytes
    width = rows.width
    if rows.storage == SCALAR_CODES:
        gaps = squared_gap_of_codes(bytes_at(one, width), bytes_at(other, width))
        return np.float32(gaps) * (rows.step * rows.step)
    if rows.storage == SCALAR_CODES_DOT:
        return dot_of_codes(bytes_at(one, width), bytes_at(other, width), rows.start, rows.step)
    if rows.storage == PRODUCT_CODES:
        return rows.offset + sum_of_pairs(rows, one, other)
    if rows.storage == BYTES:
        return hamming_distance(one, other, width)
    if rows.metric == L2:
        return squared_l2(float32_at(one, width), float32_at(other, width))
    distance = np.float32(1) - inner_product(float32_at(one, width), float32_at(other, width))
    return np.float32(0) if rows.metric == COSINE and distance < 0 else distance


@kernel
def score_pairs(
    rows: GraphRows,
    row: int,
    others: NDArray[np.uint32],
    count: int,
    distances: NDArray[np.float32],
) -> None:
    """Write the distances of the first ``count`` of ``others`` to one row."""
    for i in range(count):
        other = int(np.int64(others[i]))
        prefetch_bytes(rows.rows + other * rows.row_bytes, rows.row_bytes)
    for i in range(count):
        distances[i] = pair_distance(rows, row, int(np.int64(others[i])))


@kernel
def squared_gap_of_codes(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> np.int32:
    """Return the squared l2 distance of two codes of shape ``(d,)``, in steps."""
    total = np.int32(0)
    for j in range(len(one)):
        gap = np.int16(np.int16(one[j]) - np.int16(other[j]))
        total = np.int32(total + np.int32(np.int32(gap) * np.int32(gap)))
    return total


@kernel
def dot_of_codes(
    one: NDArray[np.uint8], other: NDArray[np.uint8], start: np.float32, step: np.float32
) -> np.float32:
    """Return 1 less the inner product of the vectors that two codes stand for."""
    products, codes = np.int32(0), np.int32(0)
    for j in range(len(one)):
        a, b = np.int32(one[j]), np.int32(other[j])
        products = np.int32(products + np.int32(a * b))
        codes = np.int32(codes + np.int32(a + b))
    square = np.float32(len(one)) * start * start
    product = square + start * step * np.float32(codes) + step * step * np.float32(products)
    return np.float32(1) - product


@kernel
def sum_of_pairs(rows: GraphRows, one: int, other: int) -> np.float32:
    """Add the table entries of two product codes."""
    width, num_codes = rows.width, rows.num_codes
    a, b = bytes_at(one, width), bytes_at(other, width)
    entries = float32_at(rows.table, width * num_codes * num_codes)
    total = np.float32(0)
    for j in range(width):
        at = (j * num_codes + int(np.int64(a[j]))) * num_codes + int(np.int64(b[j]))
        total += entries[at]
    return total
