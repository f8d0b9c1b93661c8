"""How many partitions a segment is searched in: given, bounded or automatic.

Automatic probing compares centroid distances with the nearest one: partitions whose centroid lies
within a margin are probed. Margins, floors and caps are those of pylance 14.0.2 (vector index page,
section 7.2; predicted counts verified there).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class ProbeBounds:
    """Bounds of the number of partitions probed; None = no bound on that side."""

    minimum: int | None
    maximum: int | None

    @property
    def is_fixed(self) -> bool:
        """True when exactly ``minimum`` partitions are wanted."""
        return self.minimum is not None and self.minimum == self.maximum


@dataclass(frozen=True, slots=True)
class _Rule:
    margin: float
    floor: int
    cap: int


_K_STEPS = (1, 10, 100, 200, 500, 1_000, 10_000)
_MAX_RULED_K = 100_000

_L2 = (
    _Rule(0.2175, 5, 19),
    _Rule(0.265, 6, 24),
    _Rule(0.33, 11, 38),
    _Rule(0.375, 15, 56),
    _Rule(0.3725, 22, 81),
    _Rule(0.4175, 29, 93),
    _Rule(0.57, 98, 238),
    _Rule(0.75, 463, 704),
)
_COSINE = (
    _Rule(0.235, 3, 50),
    _Rule(0.2875, 8, 77),
    _Rule(0.38, 7, 106),
    _Rule(0.415, 18, 156),
    _Rule(0.45, 28, 192),
    _Rule(0.47, 34, 248),
    _Rule(0.6475, 104, 447),
    _Rule(0.58, 738, 958),
)
_DOT = (
    _Rule(0.14, 56, 112),
    _Rule(0.055, 144, 432),
    _Rule(0.0625, 200, 768),
    _Rule(0.0675, 211, 833),
    _Rule(0.07, 244, 971),
    _Rule(0.0725, 279, 1092),
    _Rule(0.0825, 517, 1824),
    _Rule(0.21, 1009, 2528),
)
_RULES = {"l2": _L2, "cosine": _COSINE, "dot": _DOT}
_REACHES = ((1, np.float32(0.6)), (10, np.float32(7)), (math.inf, np.float32(81)))
"""By k, how many times the distance to the nearest centroid is near, where no rule is known."""


def initial_probes(distances: NDArray[np.float32], metric: str, k: int, bounds: ProbeBounds) -> int:
    """Return how many of the nearest partitions to probe first.

    Parameters
    ----------
    distances
        Shape ``(P,)``, ascending: distance of the query to each centroid.
    metric
        ``l2``, ``cosine``, ``dot`` or ``hamming``.
    k
        Rows wanted, without the refine factor.
    bounds
        Bounds given by the caller.

    Returns
    -------
    int
        Between 0 (a segment without partitions) and ``P``.
    """
    num_partitions = len(distances)
    highest = num_partitions
    if bounds.maximum is not None:
        highest = min(highest, bounds.maximum)
    if bounds.is_fixed:
        return highest
    lowest = 1 if bounds.minimum is None else bounds.minimum
    return min(max(lowest, _automatic(distances, metric, k)), highest)


def _automatic(distances: NDArray[np.float32], metric: str, k: int) -> int:
    if len(distances) == 0:
        return 0
    nearest = distances[0]
    if metric == "hamming" or k > _MAX_RULED_K:
        factor = next(factor for limit, factor in _REACHES if k <= limit)
        return max(1, int(np.count_nonzero(distances <= factor * nearest)))
    step = sum(k > limit for limit in _K_STEPS)
    rule = _RULES[metric][step]
    with np.errstate(over="ignore", invalid="ignore"):  # then a bound says how many
        reach = abs(1 - nearest) if metric == "dot" else nearest
        gap = np.float32(rule.margin) * reach
        selected = int(np.count_nonzero(distances - nearest <= gap))
    return min(max(selected, rule.floor), rule.cap)
