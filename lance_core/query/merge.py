"""How ranked lists of candidates become one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.index.candidates import Candidates
from lance_core.kernels.row_addresses import nearest_first

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_WORTH_CUTTING = 4

NO_CANDIDATES = Candidates(np.empty(0, np.float32), np.empty(0, np.uint64))


def rank(distances: NDArray[np.float32], row_ids: NDArray[np.uint64]) -> Candidates:
    """Sort rows by distance, ties by row id; rows with a NaN distance are dropped."""
    return Candidates(*nearest_first(distances, row_ids))


def rank_first(distances: NDArray[np.float32], row_ids: NDArray[np.uint64], k: int) -> Candidates:
    """Return the first ``k`` rows of `rank`, sorting little more than these."""
    if k < len(distances) // _WORTH_CUTTING:
        worst = np.partition(distances, k - 1)[k - 1] if k > 0 else -np.inf  # NaN comes last
        kept = np.flatnonzero(distances <= worst)
        distances, row_ids = distances[kept], row_ids[kept]
    return rank(distances, row_ids).first(k)


def without(candidates: Candidates, row_id: int) -> Candidates:
    """Leave out one row, if it is there."""
    kept = candidates.row_ids != np.uint64(row_id)
    return Candidates(candidates.distances[kept], candidates.row_ids[kept])


def merge(lists: Sequence[Candidates], k: int) -> Candidates:
    """Merge ranked lists whose distances estimate the same metric; keep the nearest ``k``."""
    if len(lists) == 1:
        return lists[0].first(k)
    filled = [candidates for candidates in lists if len(candidates) > 0]
    if not filled:
        return NO_CANDIDATES
    if len(filled) == 1:
        return filled[0].first(k)
    return rank(
        np.concatenate([candidates.distances for candidates in filled]),
        np.concatenate([candidates.row_ids for candidates in filled]),
    ).first(k)


def within(candidates: Candidates, lower: float | None, upper: float | None) -> Candidates:
    """Keep rows with ``lower <= distance < upper``; None = no bound on that side."""
    if lower is None and upper is None:
        return candidates
    keep = np.ones(len(candidates), np.bool_)
    if lower is not None:
        keep &= candidates.distances >= np.float32(lower)
    if upper is not None:
        keep &= candidates.distances < np.float32(upper)
    return Candidates(candidates.distances[keep], candidates.row_ids[keep])
