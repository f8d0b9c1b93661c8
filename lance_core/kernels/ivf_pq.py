"""Searching partitions that hold product-quantiser codes of 8 or 4 bits.

Every sum is formed in the order in which pylance forms it, so distances are equal bit for bit.
Passes over four columns of codes were the fastest of those measured (hot-path page, section 3);
blocks of rows that are too far after some of the columns are left (3 of 4 blocks after half of
them, over 1M real-like vectors: a third of the time).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.exact_rank import NO_RANKING, rank_kept
from lance_core.kernels.memory import (
    address_of,
    bytes_at,
    float32_at,
    prefetch_bytes,
    uint32_at,
    uint64_at,
)
from lance_core.kernels.pq_table import NUM_CODES, NUM_NIBBLES, fill_table
from lance_core.kernels.topk import TopRows, any_within, distance_of, offer_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lance_core.kernels.exact_rank import ExactRanking

_COLUMNS_AT_ONCE = 4
_FLOAT_BYTES = 4
_ENTRIES_BYTES = NUM_CODES * _FLOAT_BYTES
_NIBBLE_ENTRIES_BYTES = NUM_NIBBLES * _FLOAT_BYTES
_BLOCK_ROWS = 128


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
    exact: ExactRanking | None = None,
) -> None:
    """Offer every row of some partitions to ``top``.

    Parameters
    ----------
    blocks
        Shape ``(n, 3)``, C-contiguous and writable. Per partition: address of its codes, one column
        of ``rows`` bytes per sub-vector, or per two sub-vectors of 4-bit codes; address of its
        uint32 ordinals; number of rows. The caller keeps the memory alive.
    probes
        Shape ``(n,)``: the partitions, to find their centroids.
    query
        Shape ``(d,)``, C-contiguous and writable; of unit length for cosine.
    centroids
        Shape ``(P, d)``, C-contiguous and writable.
    codebook
        Shape ``(m, d / m, 256)``, or 16 for 4-bit codes: per sub-vector and sub-dimension the
        values of all codes.
    words
        Dense bitset over ordinals; only rows whose bit is set are kept.
    top
        Receives the nearest rows; NaN distances never enter.
    is_dot
        Codes are those of the vectors and distances ``1 - q.x``; otherwise codes are those of the
        residuals and distances squared l2.
    exact
        What gives the rows that ``top`` has kept at the end exact distances, which makes it full:
        it takes no more. None = they stay estimates.

    Notes
    -----
    Vector index page, section 4.2.
    """
    ranking = NO_RANKING if exact is None else exact
    is_exact = _search_pq(
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
        ranking.runs.first_ordinals,
        ranking.runs.pointers,
        ranking.runs.row_bytes,
        ranking.query,
        ranking.metric,
    )
    if exact is not None:
        exact.is_done = is_exact


@kernel(ordered=True)
def add_columns(
    codes_address: int,
    stride: int,
    table_address: int,
    num_columns: int,
    distances: NDArray[np.float32],
) -> None:
    """Add the table entries of one to four columns of codes to ``distances``, in their order.

    Parameters
    ----------
    codes_address
        Where the first column's codes of these rows lie; each next column is ``stride`` behind.
    table_address
        Where the 256 float32 entries of the first column lie; those of the next follow. An address,
        because views of an array are counted, which costs more than a block of rows.
    distances
        Shape ``(n,)``, one per row of codes.
    """
    count = len(distances)
    if num_columns == _COLUMNS_AT_ONCE:
        c0 = bytes_at(codes_address, count)
        c1 = bytes_at(codes_address + stride, count)
        c2 = bytes_at(codes_address + 2 * stride, count)
        c3 = bytes_at(codes_address + 3 * stride, count)
        t0 = float32_at(table_address, NUM_CODES)
        t1 = float32_at(table_address + _ENTRIES_BYTES, NUM_CODES)
        t2 = float32_at(table_address + 2 * _ENTRIES_BYTES, NUM_CODES)
        t3 = float32_at(table_address + 3 * _ENTRIES_BYTES, NUM_CODES)
        for i in range(count):
            distances[i] = (((distances[i] + t0[c0[i]]) + t1[c1[i]]) + t2[c2[i]]) + t3[c3[i]]
        return
    for j in range(num_columns):
        column = bytes_at(codes_address + j * stride, count)
        entries = float32_at(table_address + j * _ENTRIES_BYTES, NUM_CODES)
        for i in range(count):
            distances[i] += entries[column[i]]


@kernel(ordered=True)
def add_packed_columns(
    codes_address: int,
    stride: int,
    table_address: int,
    num_columns: int,
    distances: NDArray[np.float32],
) -> None:
    """Do the same for 4-bit codes: a byte holds those of two columns, the first in its low half.

    pylance adds the entries of a byte to each other first (observed with 14.0.2).
    """
    for j in range(0, num_columns, 2):
        column = bytes_at(codes_address + (j >> 1) * stride, len(distances))
        low = float32_at(table_address + j * _NIBBLE_ENTRIES_BYTES, NUM_NIBBLES)
        high = float32_at(table_address + (j + 1) * _NIBBLE_ENTRIES_BYTES, NUM_NIBBLES)
        for i in range(len(distances)):
            code = column[i]
            distances[i] += low[code & np.uint8(15)] + high[code >> np.uint8(4)]


@kernel(ordered=True)
def sum_codes(
    codes_address: int,
    residual: NDArray[np.float32],
    codebook: NDArray[np.float32],
    table: NDArray[np.float32],
    worst: np.float32,
    distances: NDArray[np.float32],
    starts: NDArray[np.int64],
    is_dot: bool,
) -> int:
    """Sum the table entries of one partition, block by block of rows as far as is worth it.

    Sums of squares only grow from column to column, so a block all of whose rows are above
    ``worst`` is given up. Where none is left, the tables of the other columns are not even made.

    Parameters
    ----------
    codes_address
        Where the codes lie, in columns of ``len(distances)`` bytes.
    residual
        Shape ``(d,)``: the query less the centroid. Not used for dot.
    table
        Shape ``(m, codes)``. For dot it is given, and no block is given up; else it is scratch.
    worst
        Rows above this are not wanted.
    distances
        Shape ``(n,)``: receives the sums of the blocks that were not given up.
    starts
        Receives the first row of each of these, ascending.

    Returns
    -------
    int
        How many these are.
    """
    count = len(distances)
    width = codebook.shape[1]
    is_packed = codebook.shape[2] == NUM_NIBBLES
    sums = distances.ctypes.data
    distances[:] = np.float32(0)
    num_blocks = 0
    for start in range(0, count, _BLOCK_ROWS):
        starts[num_blocks] = start
        num_blocks += 1
    for first in range(0, len(codebook), _COLUMNS_AT_ONCE):
        stop = min(first + _COLUMNS_AT_ONCE, len(codebook))
        if not is_dot:
            part = residual[first * width : stop * width]
            fill_table(part, codebook[first:stop], table[first:stop], is_dot)
        before = first >> 1 if is_packed else first
        columns = codes_address + before * count
        entries = table.ctypes.data + first * table.shape[1] * _FLOAT_BYTES
        kept = 0
        for block in range(num_blocks):
            start = starts[block]
            rows = min(_BLOCK_ROWS, count - start)
            of_block = float32_at(sums + start * _FLOAT_BYTES, rows)
            if is_packed:
                add_packed_columns(columns + start, count, entries, stop - first, of_block)
            else:
                add_columns(columns + start, count, entries, stop - first, of_block)
            if is_dot or any_within(of_block, worst):
                starts[kept] = start
                kept += 1
        num_blocks = kept
        if num_blocks == 0:
            break
    return num_blocks


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
    first_ordinals: NDArray[np.int64],
    pointers: NDArray[np.int64],
    row_bytes: int,
    exact_query: NDArray[np.float32],
    metric: int,
) -> bool:
    words = uint64_at(words_address, num_words)
    num_columns = len(codebook)
    table = np.empty((num_columns, codebook.shape[2]), np.float32)
    code_bytes = num_columns >> 1 if codebook.shape[2] == NUM_NIBBLES else num_columns
    if is_dot:
        fill_table(query, codebook, table, is_dot)
    most_rows = 0
    for block in range(len(blocks)):
        most_rows = max(most_rows, blocks[block, 2])
    scratch = np.empty(most_rows, np.float32)
    starts = np.empty(most_rows // _BLOCK_ROWS + 1, np.int64)
    for block in range(len(blocks)):
        count = blocks[block, 2]
        if block + 1 < len(blocks):
            # Columns of codes are too short for the processor to see them coming.
            prefetch_bytes(blocks[block + 1, 0], blocks[block + 1, 2] * code_bytes)
        distances = scratch[:count]
        ordinals = uint32_at(blocks[block, 1], count)
        residual = query - centroids[probes[block]]
        worst = distance_of(state[1])
        num_kept = sum_codes(
            blocks[block, 0], residual, codebook, table, worst, distances, starts, is_dot
        )
        if is_dot:
            distances -= np.float32(num_columns - 1)
        for start in starts[:num_kept]:
            stop = min(start + _BLOCK_ROWS, count)
            of_block = distances[start:stop]
            offer_rows(of_block, ordinals[start:stop], words, keys, state, k, lower)
    return rank_kept(keys, state, k, first_ordinals, pointers, row_bytes, exact_query, metric)


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
