"""Searching partitions that hold scalar-quantised vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.memory import address_of, bytes_at, prefetch_bytes, uint32_at, uint64_at
from lance_core.kernels.sq_distance import (
    LARGEST_CODE,
    quantise,
    squared_code_gap,
    weighted_codes,
)
from lance_core.kernels.topk import TopRows, offer_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ROWS_AHEAD = 32


def search_sq(
    blocks: NDArray[np.int64],
    query: NDArray[np.float32],
    bounds: tuple[float, float],
    words: NDArray[np.uint64],
    top: TopRows,
    *,
    is_dot: bool,
) -> None:
    """Offer every row of some partitions to ``top``.

    Parameters
    ----------
    blocks
        Shape ``(n, 3)``, C-contiguous and writable. Per partition: address of its codes, ``d``
        bytes per row; address of its uint32 ordinals; number of rows. The caller keeps the memory
        alive.
    query
        Shape ``(d,)``, C-contiguous and writable; of unit length for cosine.
    bounds
        Values of the codes 0 and 255.
    words
        Dense bitset over ordinals; only rows whose bit is set are kept.
    top
        Receives the nearest rows; NaN distances never enter.
    is_dot
        Distances are ``1 - q.x`` with the query as it is; otherwise squared l2 with the query
        quantised too.

    Notes
    -----
    Vector index page, section 4.3.
    """
    _search_sq(
        blocks,
        query,
        bounds[0],
        bounds[1],
        address_of(words),
        len(words),
        top.keys,
        top.state,
        top.k,
        top.lower,
        is_dot,
    )


@kernel
def score_codes(
    address: int,
    query: NDArray[np.float32],
    codes: NDArray[np.int16],
    start: float,
    end: float,
    is_dot: bool,
    distances: NDArray[np.float32],
) -> None:
    """Score the rows of codes that lie one after the other at ``address``, one per distance."""
    width = len(query)
    step = np.float32(np.float32(end - start) / np.float32(LARGEST_CODE))
    total = np.float32(0)
    for j in range(width):
        total += query[j]
    base = np.float32(np.float32(start) * total)
    for i in range(len(distances)):
        row = address + i * width
        prefetch_bytes(row + _ROWS_AHEAD * width, width)
        stored = bytes_at(row, width)
        if is_dot:
            distances[i] = np.float32(1) - (base + step * weighted_codes(stored, query))
        else:
            distances[i] = np.float32(squared_code_gap(stored, codes)) * (step * step)


@kernel
def _search_sq(
    blocks: NDArray[np.int64],
    query: NDArray[np.float32],
    start: float,
    end: float,
    words_address: int,
    num_words: int,
    keys: NDArray[np.uint64],
    state: NDArray[np.uint64],
    k: int,
    lower: np.float32,
    is_dot: bool,
) -> None:
    words = uint64_at(words_address, num_words)
    codes = np.empty(len(query), np.int16)
    quantise(query, start, end, codes)
    most_rows = 0
    for block in range(len(blocks)):
        most_rows = max(most_rows, blocks[block, 2])
    scratch = np.empty(most_rows, np.float32)
    for block in range(len(blocks)):
        count = blocks[block, 2]
        distances = scratch[:count]
        score_codes(blocks[block, 0], query, codes, start, end, is_dot, distances)
        ordinals = uint32_at(blocks[block, 1], count)
        offer_rows(distances, ordinals, words, keys, state, k, lower)


@warmup
def _warm() -> None:
    codes = np.zeros((2, 4), np.uint8)
    ordinals = np.arange(2, dtype=np.uint32)
    blocks = np.array([[address_of(codes), address_of(ordinals), 2]], np.int64)
    query = np.ones(4, np.float32)
    search_sq(blocks, query, (0.0, 1.0), np.ones(1, np.uint64), TopRows(1, 2), is_dot=False)
