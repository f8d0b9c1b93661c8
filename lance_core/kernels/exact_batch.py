"""Exact search for several queries at once: every vector is read from memory once for all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.distance import inner_product, score_run, stored_bytes
from lance_core.kernels.memory import address_of, uint64_at
from lance_core.kernels.topk import TopRows, offer_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_BLOCK_BYTES = 1 << 16
"""Vectors that stay in the first caches of a core while one query after the other scores them."""
_MAX_BLOCK_ROWS = 256
_STATE_WORDS = 2


def scan_pages_for_all(
    addresses: NDArray[np.int64],
    num_rows: NDArray[np.int64],
    first_ordinals: NDArray[np.int64],
    queries: NDArray[np.float32],
    metric: int,
    words: NDArray[np.uint64],
    tops: Sequence[TopRows],
) -> None:
    """Offer every row of some pages of vectors to the top rows of each query.

    Parameters
    ----------
    queries
        Shape ``(m, d)``, C-contiguous and writable.
    tops
        One for each query.

    Notes
    -----
    Otherwise like `lance_core.kernels.exact.scan_pages`, whose results it equals.
    """
    lowers = np.array([top.lower for top in tops], np.float32)
    _scan_pages_for_all(
        addresses,
        num_rows,
        first_ordinals,
        queries,
        metric,
        address_of(words),
        len(words),
        table_of(tops),
        lowers,
    )


def table_of(tops: Sequence[TopRows]) -> NDArray[np.int64]:
    """Return address and length of the keys, address of the state, and k of each, ``(m, 4)``."""
    rows = [(address_of(t.keys), len(t.keys), address_of(t.state), t.k) for t in tops]
    return np.array(rows, np.int64)


@kernel
def _scan_pages_for_all(
    addresses: NDArray[np.int64],
    num_rows: NDArray[np.int64],
    first_ordinals: NDArray[np.int64],
    queries: NDArray[np.float32],
    metric: int,
    words_address: int,
    num_words: int,
    kept: NDArray[np.int64],
    lowers: NDArray[np.float32],
) -> None:
    words = uint64_at(words_address, num_words)
    num_queries, width = queries.shape
    norms = np.empty(num_queries, np.float32)
    for q in range(num_queries):
        norms[q] = np.sqrt(inner_product(queries[q], queries[q]))
    row_bytes = stored_bytes(width, metric)
    block_rows = max(1, min(_MAX_BLOCK_ROWS, _BLOCK_BYTES // row_bytes))
    distances = np.empty(block_rows, np.float32)
    ordinals = np.empty(block_rows, np.uint32)
    for page in range(len(addresses)):
        for start in range(0, num_rows[page], block_rows):
            count = min(block_rows, num_rows[page] - start)
            address = addresses[page] + start * row_bytes
            for i in range(count):
                ordinals[i] = first_ordinals[page] + start + i
            for q in range(num_queries):
                score_run(address, count, queries[q], norms[q], metric, distances)
                keys = uint64_at(kept[q, 0], kept[q, 1])
                state = uint64_at(kept[q, 2], _STATE_WORDS)
                offer_rows(
                    distances[:count], ordinals[:count], words, keys, state, kept[q, 3], lowers[q]
                )


@warmup
def _warm() -> None:
    vectors = np.ones((2, 4), np.float32)
    address, rows = np.array([address_of(vectors)], np.int64), np.array([2], np.int64)
    words, tops = np.ones(1, np.uint64), [TopRows(1, 2), TopRows(1, 2)]
    scan_pages_for_all(address, rows, np.zeros(1, np.int64), vectors.copy(), 0, words, tops)
