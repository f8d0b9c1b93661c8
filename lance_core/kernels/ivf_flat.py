"""Searching partitions that hold whole vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.distance import inner_product, score_run
from lance_core.kernels.memory import address_of, uint32_at, uint64_at
from lance_core.kernels.topk import TopRows, offer_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray


def search_flat(
    blocks: NDArray[np.int64],
    query: NDArray[np.float32],
    metric: int,
    words: NDArray[np.uint64],
    top: TopRows,
) -> None:
    """Offer every row of some partitions to ``top``.

    Parameters
    ----------
    blocks
        Shape ``(n, 3)``, C-contiguous and writable. Per partition: address of its vectors (float32,
        for hamming bytes), address of its uint32 ordinals, number of rows. The caller keeps the
        memory alive.
    query
        Shape ``(d,)``, C-contiguous and writable; of unit length for cosine, as the stored are.
    metric
        Code of `lance_core.kernels.distance`.
    words
        Dense bitset over ordinals; only rows whose bit is set are kept.
    top
        Receives the nearest rows; NaN distances never enter.

    Notes
    -----
    Vector index page, sections 4.1 and 6.
    """
    _search_flat(
        blocks,
        query,
        metric,
        address_of(words),
        len(words),
        top.keys,
        top.state,
        top.k,
        top.lower,
    )


@kernel
def _search_flat(
    blocks: NDArray[np.int64],
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
    most_rows = 0
    for block in range(len(blocks)):
        most_rows = max(most_rows, blocks[block, 2])
    distances = np.empty(most_rows, np.float32)
    for block in range(len(blocks)):
        count = blocks[block, 2]
        score_run(blocks[block, 0], count, query, query_norm, metric, distances)
        ordinals = uint32_at(blocks[block, 1], count)
        offer_rows(distances[:count], ordinals, words, keys, state, k, lower)


@warmup
def _warm() -> None:
    vectors = np.ones((2, 4), np.float32)
    ordinals = np.arange(2, dtype=np.uint32)
    blocks = np.array([[address_of(vectors), address_of(ordinals), 2]], np.int64)
    search_flat(blocks, vectors[0].copy(), 0, np.ones(1, np.uint64), TopRows(1, 2))
