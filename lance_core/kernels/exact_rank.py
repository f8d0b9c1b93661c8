"""Exact distances of chosen rows, and their order by these, as one call or as part of a search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.exact import score_addresses
from lance_core.kernels.memory import address_of
from lance_core.kernels.row_addresses import find_pointers, sort_few
from lance_core.kernels.topk import keep_smallest, pack_key

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class OrdinalRuns:
    """Where in memory the vectors of all ordinals of a space lie.

    Parameters
    ----------
    first_ordinals, pointers
        Shape ``(r,)``, int64: the ordinal of the first row of each run of rows, ascending, and
        where its vector lies.
    row_bytes
        Bytes per vector.
    owner
        What keeps the memory alive.
    """

    first_ordinals: NDArray[np.int64]
    pointers: NDArray[np.int64]
    row_bytes: int
    owner: object


class ExactRanking:
    """Asks a search to put exact distances in place of those it ranked rows by.

    So it is one call of a kernel: each return from one may be a wait for the GIL.

    Parameters
    ----------
    runs
        The vectors of all rows that may be found.
    query
        Shape ``(d,)``, C-contiguous and writable; not normalised.
    metric
        Code of `lance_core.kernels.distance`.

    Attributes
    ----------
    is_done
        Whether the search did so. It need not, and does not where it finds fewer rows than wanted.
    """

    __slots__ = ("is_done", "metric", "query", "runs")

    def __init__(self, runs: OrdinalRuns, query: NDArray[np.float32], metric: int) -> None:
        self.runs = runs
        self.query = query
        self.metric = metric
        self.is_done = False


NO_RANKING = ExactRanking(
    OrdinalRuns(np.empty(0, np.int64), np.empty(0, np.int64), 0, None), np.empty(0, np.float32), 0
)
"""Of searches whose distances are to stay: it knows where no row lies."""


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


@kernel
def rank_kept(
    keys: NDArray[np.uint64],
    state: NDArray[np.uint64],
    k: int,
    first_ordinals: NDArray[np.int64],
    pointers: NDArray[np.int64],
    row_bytes: int,
    query: NDArray[np.float32],
    metric: int,
) -> bool:
    """Give the ``k`` nearest rows of a `TopRows` their exact distances; NaN ones are left out.

    Returns False, and changes no row, if fewer are kept or it is not known where vectors lie.
    """
    kept = int(np.int64(state[0]))
    if kept < k or len(pointers) == 0:
        return False
    if kept > k:
        keep_smallest(keys[:kept], k)
    places, distances = np.empty(k, np.int64), np.empty(k, np.float32)
    for i in range(k):
        ordinal = np.int64(keys[i] & np.uint64(0xFFFF_FFFF))
        run = np.searchsorted(first_ordinals, ordinal, side="right") - 1
        places[i] = pointers[run] + (ordinal - first_ordinals[run]) * row_bytes
    score_addresses(places, query, metric, distances)
    count = 0
    for i in range(k):
        if not np.isnan(distances[i]):
            keys[count] = pack_key(distances[i], np.uint32(keys[i] & np.uint64(0xFFFF_FFFF)))
            count += 1
    state[0] = np.uint64(count)
    return True


@warmup
def _warm() -> None:
    vectors, rows = np.ones((1, 4), np.float32), np.zeros(1, np.uint64)
    runs = rows, np.array([address_of(vectors)], np.int64)
    rank_stored_rows(rows, rows, runs, 16, vectors[0].copy(), 0)
