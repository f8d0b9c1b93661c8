"""Exact search over vectors in memory: scanning pages of them, and scoring chosen rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.distance import (
    HAMMING,
    exact_distance,
    inner_product,
    score_run,
    stored_bytes,
)
from lance_core.kernels.hamming import as_bytes, hamming_distance
from lance_core.kernels.memory import address_of, float32_at, prefetch_bytes, uint64_at
from lance_core.kernels.topk import TopRows, offer_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BLOCK_ROWS = 256
_ROWS_AHEAD = 4
_FLOAT_BYTES = 4


def scan_pages(
    addresses: NDArray[np.int64],
    num_rows: NDArray[np.int64],
    first_ordinals: NDArray[np.int64],
    query: NDArray[np.float32],
    metric: int,
    words: NDArray[np.uint64],
    top: TopRows,
) -> None:
    """Offer every row of some pages of vectors to ``top``.

    Parameters
    ----------
    addresses, num_rows, first_ordinals
        Shape ``(n,)`` each, C-contiguous and writable: where the vectors of a page lie one after
        the other (float32, for hamming bytes), how many there are, and the ordinal of the first.
        The caller keeps the memory alive. Work is cut in pieces by passing parts of pages.
    query
        Shape ``(d,)``, C-contiguous and writable.
    metric
        Code of `lance_core.kernels.distance`.
    words
        Dense bitset over ordinals; only rows whose bit is set are kept. A null vector must have its
        bit cleared or hold NaN.
    top
        Receives the nearest rows; NaN distances never enter.
    """
    _scan_pages(
        addresses,
        num_rows,
        first_ordinals,
        query,
        metric,
        address_of(words),
        len(words),
        top.keys,
        top.state,
        top.k,
        top.lower,
    )


def score_rows(
    addresses: NDArray[np.int64], query: NDArray[np.float32], metric: int
) -> NDArray[np.float32]:
    """Return the exact distance of each vector named by its address.

    Parameters
    ----------
    addresses
        Shape ``(n,)``, C-contiguous and writable: where each vector lies (float32, for hamming
        bytes), in any order. The caller keeps the memory alive.
    query
        Shape ``(d,)``, C-contiguous and writable.
    metric
        Code of `lance_core.kernels.distance`.

    Returns
    -------
    NDArray[np.float32]
        Shape ``(n,)``; NaN where a vector has no distance, for the caller to drop.
    """
    distances = np.empty(len(addresses), np.float32)
    score_addresses(addresses, query, metric, distances)
    return distances


@kernel
def _scan_pages(
    addresses: NDArray[np.int64],
    num_rows: NDArray[np.int64],
    first_ordinals: NDArray[np.int64],
    query: NDArray[np.float32],
    metric: int,
    words_address: int,
    num_words: int,
    keys: NDArray[np.uint64],
    state: NDArray[np.uint64],
    k: int,
    lower: np.float32,
) -> None:
    words = uint64_at(words_address, num_words)
    query_norm = np.sqrt(inner_product(query, query))
    distances = np.empty(_BLOCK_ROWS, np.float32)
    ordinals = np.empty(_BLOCK_ROWS, np.uint32)
    row_bytes = stored_bytes(len(query), metric)
    for page in range(len(addresses)):
        for start in range(0, num_rows[page], _BLOCK_ROWS):
            count = min(_BLOCK_ROWS, num_rows[page] - start)
            address = addresses[page] + start * row_bytes
            score_run(address, count, query, query_norm, metric, distances)
            for i in range(count):
                ordinals[i] = first_ordinals[page] + start + i
            offer_rows(distances[:count], ordinals[:count], words, keys, state, k, lower)


@kernel
def score_addresses(
    addresses: NDArray[np.int64],
    query: NDArray[np.float32],
    metric: int,
    distances: NDArray[np.float32],
) -> None:
    """Write the exact distance of each vector named by its address."""
    row_bytes = stored_bytes(len(query), metric)
    for i in range(min(_ROWS_AHEAD, len(addresses))):
        prefetch_bytes(addresses[i], row_bytes)
    if metric == HAMMING:
        _score_byte_rows(addresses, as_bytes(query), distances)
    else:
        _score_float_rows(addresses, query, metric, distances)


@kernel
def _score_float_rows(
    addresses: NDArray[np.int64],
    query: NDArray[np.float32],
    metric: int,
    distances: NDArray[np.float32],
) -> None:
    width = len(query)
    query_norm = np.sqrt(inner_product(query, query))
    for i in range(len(addresses)):
        if i + _ROWS_AHEAD < len(addresses):
            prefetch_bytes(addresses[i + _ROWS_AHEAD], width * _FLOAT_BYTES)
        vector = float32_at(addresses[i], width)
        distances[i] = exact_distance(vector, query, query_norm, metric)


@kernel
def _score_byte_rows(
    addresses: NDArray[np.int64], query: NDArray[np.uint8], distances: NDArray[np.float32]
) -> None:
    width = len(query)
    asked = query.ctypes.data
    for i in range(len(addresses)):
        if i + _ROWS_AHEAD < len(addresses):
            prefetch_bytes(addresses[i + _ROWS_AHEAD], width)
        distances[i] = hamming_distance(addresses[i], asked, width)


@warmup
def _warm() -> None:
    vectors = np.ones((2, 4), np.float32)
    address = np.array([address_of(vectors)], np.int64)
    rows = np.array([2], np.int64)
    words = np.ones(1, np.uint64)
    scan_pages(address, rows, np.zeros(1, np.int64), vectors[0].copy(), 0, words, TopRows(1, 2))
    score_rows(address, vectors[0].copy(), 0)
