"""Exact search over rows that hold lists of vectors, with queries of several vectors.

The distance of a row is the sum, over the vectors of the query, of the distance to the nearest
vector of the row. Vectors without a distance (NaN, under cosine zero) are passed over; a row none
of whose vectors has one is never found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.distance import (
    COSINE,
    DOT,
    HAMMING,
    L2,
    cosine_of_extremes,
    inner_product,
    is_extreme,
    squared_l2,
)
from lance_core.kernels.hamming import as_bytes, hamming_distance
from lance_core.kernels.memory import (
    address_of,
    float32_at,
    int64_at,
    prefetch_bytes,
    uint64_at,
)
from lance_core.kernels.topk import TopRows, offer_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BLOCK_ROWS = 64
_AHEAD_BYTES = 8192
_ENTRY_BYTES = 16
_FLOAT_BYTES = 4
_ENTRY_WORDS = 2


def scan_lists(
    addresses: NDArray[np.int64],
    num_rows: NDArray[np.int64],
    first_ordinals: NDArray[np.int64],
    queries: NDArray[np.float32],
    metric: int,
    words: NDArray[np.uint64],
    top: TopRows,
) -> None:
    """Offer every row of some tables of lists to ``top``.

    Parameters
    ----------
    addresses, num_rows, first_ordinals
        Shape ``(n,)`` each, C-contiguous and writable: where a table lies, how many rows it has,
        and the ordinal of the first. A row is two int64: the address of its vectors, which lie one
        after the other, and their number. The caller keeps all that memory alive.
    queries
        Shape ``(m, d)``, C-contiguous and writable: the vectors of one query.
    metric, words, top
        As `lance_core.kernels.exact.scan_pages` takes them. Rows whose bit is not set are not
        looked at.
    """
    _scan_lists(
        addresses,
        num_rows,
        first_ordinals,
        queries,
        metric,
        address_of(words),
        len(words),
        top.keys,
        top.state,
        top.k,
        top.lower,
    )


def score_lists(
    addresses: NDArray[np.int64], queries: NDArray[np.float32], metric: int
) -> NDArray[np.float32]:
    """Return the exact distance of each row named by its place in a table, NaN where there is none.

    Parameters
    ----------
    addresses
        Shape ``(n,)``, C-contiguous and writable: where the two int64 of a row lie, in any order.
    queries, metric
        As `scan_lists` takes them.
    """
    distances = np.empty(len(addresses), np.float32)
    _score_lists(addresses, queries, metric, distances)
    return distances


@kernel
def norms_of(queries: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the length of each vector, shape ``(m,)``."""
    norms = np.empty(len(queries), np.float32)
    for q in range(len(queries)):
        norms[q] = np.sqrt(inner_product(queries[q], queries[q]))
    return norms


@kernel
def codes_of(queries: NDArray[np.float32], metric: int) -> NDArray[np.uint8]:
    """Return the vectors as bytes for hamming, shape ``(m, d)``; for other metrics nothing."""
    count = len(queries) if metric == HAMMING else 0
    codes = np.empty((count, queries.shape[1]), np.uint8)
    for q in range(count):
        codes[q] = as_bytes(queries[q])
    return codes


@kernel
def keep_nearer(
    vector: NDArray[np.float32],
    queries: NDArray[np.float32],
    norms: NDArray[np.float32],
    metric: int,
    nearest: NDArray[np.float32],
) -> None:
    """Lower the distance ``nearest`` to each vector of the query; NaN = there is none yet."""
    # One loop for each metric: a choice inside makes it four times as slow (numba 0.68).
    if metric == L2:
        for q in range(len(queries)):
            keep_smaller(nearest, q, squared_l2(vector, queries[q]))
    elif metric == DOT:
        for q in range(len(queries)):
            keep_smaller(nearest, q, np.float32(1) - inner_product(vector, queries[q]))
    else:
        norm = np.sqrt(inner_product(vector, vector))
        for q in range(len(queries)):
            if is_extreme(norm) or is_extreme(norms[q]):
                keep_smaller(nearest, q, cosine_of_extremes(vector, queries[q]))
                continue
            cosine = inner_product(vector, queries[q]) / (norm * norms[q])
            keep_smaller(nearest, q, max(np.float32(1) - cosine, np.float32(0)))


@kernel
def keep_smaller(nearest: NDArray[np.float32], q: int, distance: np.float32) -> None:
    """Replace a distance by a smaller one, and NaN by any."""
    if distance < nearest[q] or np.isnan(nearest[q]):
        nearest[q] = distance


@kernel
def score_list(
    entry: int,
    queries: NDArray[np.float32],
    norms: NDArray[np.float32],
    codes: NDArray[np.uint8],
    metric: int,
    nearest: NDArray[np.float32],
) -> np.float32:
    """Return the distance of the row whose two int64 lie at ``entry``; ``nearest`` is scratch."""
    address, count = int64_at(entry, _ENTRY_WORDS)
    nearest[:] = np.nan
    if metric == HAMMING:
        look_at_bytes(address, count, codes, nearest)
    else:
        look_at_floats(address, count, queries, norms, metric, nearest)
    total = np.float32(0)
    for q in range(len(queries)):
        total += nearest[q]
    return total


@kernel
def look_at_floats(
    address: int,
    count: int,
    queries: NDArray[np.float32],
    norms: NDArray[np.float32],
    metric: int,
    nearest: NDArray[np.float32],
) -> None:
    """Lower the distances ``nearest`` by vectors that lie one after the other."""
    width = queries.shape[1]
    row_bytes = width * _FLOAT_BYTES
    for i in range(count):
        place = address + i * row_bytes
        prefetch_bytes(place + _AHEAD_BYTES, row_bytes)
        keep_nearer(float32_at(place, width), queries, norms, metric, nearest)


@kernel
def look_at_bytes(
    address: int, count: int, codes: NDArray[np.uint8], nearest: NDArray[np.float32]
) -> None:
    """Do the same for vectors of bytes."""
    width = codes.shape[1]
    for i in range(count):
        place = address + i * width
        prefetch_bytes(place + _AHEAD_BYTES, width)
        for q in range(len(codes)):
            keep_smaller(nearest, q, hamming_distance(place, codes[q].ctypes.data, width))


@kernel
def _scan_lists(
    addresses: NDArray[np.int64],
    num_rows: NDArray[np.int64],
    first_ordinals: NDArray[np.int64],
    queries: NDArray[np.float32],
    metric: int,
    words_address: int,
    num_words: int,
    keys: NDArray[np.uint64],
    state: NDArray[np.uint64],
    k: int,
    lower: np.float32,
) -> None:
    words = uint64_at(words_address, num_words)
    norms, codes = norms_of(queries), codes_of(queries, metric)
    nearest = np.empty(len(queries), np.float32)
    distances = np.empty(_BLOCK_ROWS, np.float32)
    ordinals = np.empty(_BLOCK_ROWS, np.uint32)
    for page in range(len(addresses)):
        for start in range(0, num_rows[page], _BLOCK_ROWS):
            count = min(_BLOCK_ROWS, num_rows[page] - start)
            scored = 0
            for i in range(start, start + count):
                ordinal = first_ordinals[page] + i
                bit = words[ordinal >> 6] >> np.uint64(ordinal & 63)
                if bit & np.uint64(1):
                    entry = addresses[page] + i * _ENTRY_BYTES
                    distances[scored] = score_list(entry, queries, norms, codes, metric, nearest)
                    ordinals[scored] = ordinal
                    scored += 1
            offer_rows(distances[:scored], ordinals[:scored], words, keys, state, k, lower)


@kernel
def _score_lists(
    addresses: NDArray[np.int64],
    queries: NDArray[np.float32],
    metric: int,
    distances: NDArray[np.float32],
) -> None:
    norms, codes = norms_of(queries), codes_of(queries, metric)
    nearest = np.empty(len(queries), np.float32)
    for i in range(len(addresses)):
        distances[i] = score_list(addresses[i], queries, norms, codes, metric, nearest)


@warmup
def _warm() -> None:
    vectors = np.ones((2, 4), np.float32)
    table = np.array([[address_of(vectors), 2]], np.int64)
    place, one = np.array([address_of(table)], np.int64), np.ones(1, np.int64)
    words, top = np.ones(1, np.uint64), TopRows(1, 1)
    scan_lists(place, one, np.zeros(1, np.int64), vectors.copy(), COSINE, words, top)
    score_lists(place, vectors.copy(), COSINE)
