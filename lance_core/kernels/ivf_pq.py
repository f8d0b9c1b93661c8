"""Searching partitions that hold 8-bit product-quantiser codes.

Every sum is formed in the order in which pylance forms it, so distances are equal bit for bit.
Passes over four columns of codes were the fastest of those measured (hot-path page, section 3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.memory import (
    address_of,
    bytes_at,
    prefetch_bytes,
    uint32_at,
    uint64_at,
)
from lance_core.kernels.pq_table import NUM_CODES, fill_table
from lance_core.kernels.topk import TopRows, offer_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray


def search_pq(
    blocks: NDArray[np.int64],
    probes: NDArray[np.int64],
    query: NDArray[np.float32],
    centroids: NDArray[np.float32],
    codebook: NDArray[np.float32],
    words: NDArray[np.uint64],
    top: TopRows,
    *,
    is_dot: bool,
) -> None:
    """Offer every row of some partitions to ``top``.

    Parameters
    ----------
    blocks
        Shape ``(n, 3)``, C-contiguous and writable. Per partition: address of its codes, one column
        of ``rows`` bytes per sub-vector; address of its uint32 ordinals; number of rows. The caller
        keeps the memory alive.
    probes
        Shape ``(n,)``: the partitions, to find their centroids.
    query
        Shape ``(d,)``, C-contiguous and writable; of unit length for cosine.
    centroids
        Shape ``(P, d)``, C-contiguous and writable.
    codebook
        Shape ``(m, d / m, 256)``: per sub-vector and sub-dimension the values of all codes.
    words
        Dense bitset over ordinals; only rows whose bit is set are kept.
    top
        Receives the nearest rows; NaN distances never enter.
    is_dot
        Codes are those of the vectors and distances ``1 - q.x``; otherwise codes are those of the
        residuals and distances squared l2.

    Notes
    -----
    Vector index page, section 4.2.
    """
    _search_pq(
        blocks,
        probes,
        query,
        centroids,
        codebook,
        address_of(words),
        len(words),
        top.keys,
        top.state,
        top.k,
        top.lower,
        is_dot,
    )


@kernel(ordered=True)
def sum_codes(
    codes_address: int,
    count: int,
    table: NDArray[np.float32],
    distances: NDArray[np.float32],
) -> None:
    """Write the sum of table entries of ``count`` rows whose codes lie column after column."""
    num_columns = len(table)
    singles = num_columns % 4
    distances[:count] = np.float32(0)
    for j in range(singles):
        column = bytes_at(codes_address + j * count, count)
        entries = table[j]
        for i in range(count):
            distances[i] += entries[column[i]]
    for j in range(singles, num_columns, 4):
        add_four_columns(codes_address + j * count, count, table[j:], distances)


@kernel(ordered=True)
def add_four_columns(
    codes_address: int,
    count: int,
    table: NDArray[np.float32],
    distances: NDArray[np.float32],
) -> None:
    """Add the table entries of four columns of codes, one after the other."""
    c0 = bytes_at(codes_address, count)
    c1 = bytes_at(codes_address + count, count)
    c2 = bytes_at(codes_address + 2 * count, count)
    c3 = bytes_at(codes_address + 3 * count, count)
    t0, t1, t2, t3 = table[0], table[1], table[2], table[3]
    for i in range(count):
        distances[i] = (((distances[i] + t0[c0[i]]) + t1[c1[i]]) + t2[c2[i]]) + t3[c3[i]]


@kernel(ordered=True)
def _search_pq(
    blocks: NDArray[np.int64],
    probes: NDArray[np.int64],
    query: NDArray[np.float32],
    centroids: NDArray[np.float32],
    codebook: NDArray[np.float32],
    words_address: int,
    num_words: int,
    keys: NDArray[np.uint64],
    state: NDArray[np.uint64],
    k: int,
    lower: np.float32,
    is_dot: bool,
) -> None:
    words = uint64_at(words_address, num_words)
    num_columns = len(codebook)
    table = np.empty((num_columns, NUM_CODES), np.float32)
    if is_dot:
        fill_table(query, codebook, table, is_dot)
    most_rows = 0
    for block in range(len(blocks)):
        most_rows = max(most_rows, blocks[block, 2])
    distances = np.empty(most_rows, np.float32)
    for block in range(len(blocks)):
        count = blocks[block, 2]
        if block + 1 < len(blocks):
            # Columns of codes are too short for the processor to see them coming.
            prefetch_bytes(blocks[block + 1, 0], blocks[block + 1, 2] * num_columns)
        if not is_dot:
            fill_table(query - centroids[probes[block]], codebook, table, is_dot)
        sum_codes(blocks[block, 0], count, table, distances)
        if is_dot:
            distances[:count] -= np.float32(num_columns - 1)
        ordinals = uint32_at(blocks[block, 1], count)
        offer_rows(distances[:count], ordinals, words, keys, state, k, lower)


@warmup
def _warm() -> None:
    codes = np.zeros(2, np.uint8)
    ordinals = np.arange(2, dtype=np.uint32)
    blocks = np.array([[address_of(codes), address_of(ordinals), 2]], np.int64)
    search_pq(
        blocks,
        np.zeros(1, np.int64),
        np.ones(4, np.float32),
        np.ones((1, 4), np.float32),
        np.ones((1, 4, NUM_CODES), np.float32),
        np.ones(1, np.uint64),
        TopRows(1, 2),
        is_dot=False,
    )
