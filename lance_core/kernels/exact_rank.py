"""Exact distances of chosen rows, and their order by these, as one call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.exact import score_addresses
from lance_core.kernels.memory import address_of
from lance_core.kernels.row_addresses import find_pointers, sort_few

if TYPE_CHECKING:
    from numpy.typing import NDArray


def rank_stored_rows(
    row_addresses: NDArray[np.uint64],
    row_ids: NDArray[np.uint64],
    runs: tuple[NDArray[np.uint64], NDArray[np.int64]],
    row_bytes: int,
    query: NDArray[np.float32],
    metric: int,
) -> tuple[NDArray[np.float32], NDArray[np.uint64]]:
    """Score a few rows and sort them by distance, ties by row id; NaN distances are left out.

    Parameters
    ----------
    row_addresses, row_ids
        Shape ``(n,)``, C-contiguous and writable, at most `FEW_ROWS`.
    runs
        The row address of the first row of each run of rows, ascending, and where in memory it
        lies; shape ``(r,)`` each, writable. The caller keeps the memory alive.
    row_bytes
        Bytes per vector.
    query
        Shape ``(d,)``, C-contiguous and writable.
    metric
        Code of `lance_core.kernels.distance`.

    Returns
    -------
    tuple
        Distances and row ids, shape ``(m,)`` each, ``m <= n``.
    """
    distances = np.empty(len(row_ids), np.float32)
    ids = np.empty_like(row_ids)
    count = _rank_stored(row_addresses, row_ids, *runs, row_bytes, query, metric, distances, ids)
    return distances[:count], ids[:count]


@kernel
def _rank_stored(
    row_addresses: NDArray[np.uint64],
    row_ids: NDArray[np.uint64],
    first_addresses: NDArray[np.uint64],
    first_pointers: NDArray[np.int64],
    row_bytes: int,
    query: NDArray[np.float32],
    metric: int,
    distances: NDArray[np.float32],
    ids: NDArray[np.uint64],
) -> int:
    pointers = np.empty(len(row_ids), np.int64)
    find_pointers(row_addresses, first_addresses, first_pointers, row_bytes, pointers)
    unsorted = np.empty(len(row_ids), np.float32)
    score_addresses(pointers, query, metric, unsorted)
    return sort_few(unsorted, row_ids, distances, ids)


@warmup
def _warm() -> None:
    vectors, rows = np.ones((1, 4), np.float32), np.zeros(1, np.uint64)
    runs = rows, np.array([address_of(vectors)], np.int64)
    rank_stored_rows(rows, rows, runs, 16, vectors[0].copy(), 0)
