"""Centroids of partitions: k-means over a sample of the vectors.

Clusters are split into few again and again until there are enough, which takes little. Rounds over
all of them make the result good: most over a part of the sample, the last over all of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic

import numpy as np

from lance_core.errors import InvalidRequestError
from lance_core.index.vector.build.assign import NUM_THREADS
from lance_core.index.vector.build.spaces import BitSpace, FloatSpace, Number, Space
from lance_core.index.vector.metric import Metric

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

MAX_ITERATIONS = 50
SEED = 42
_SETTLED, _NEARLY_SETTLED = 1e-4, 5e-3
"""Where rounds over all of the sample end, of few clusters and of many; see `Effort`."""
_FEW_CLUSTERS = 256
_PART_SETTLED = 1e-3
"""Where rounds over less than all of it end."""
_SPLIT_INTO = 32
_SPLIT_ROUNDS = 6
_MOST_SPLITS = 8
_ROWS_TO_CHOOSE_FROM = 64
_FEW_ROWS = 32
"""Rows for each centroid that move centroids most of the way."""
_SHORTEST, _LONGEST = 1e-12, 1e12
"""Coordinates whose squares, and sums of them, stay well inside float32."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How much training does.

    Parameters
    ----------
    max_iterations
        Rounds at most, over a part of the sample or all of it.
    gain
        Rounds over all of it end when the loss falls by less than this part of it.
    seed
        The same sample and seed give the same centroids.
    """

    max_iterations: int
    gain: float
    seed: int


@dataclass(frozen=True, slots=True, eq=False)
class Clusters(Generic[Number]):
    """What training ends with.

    Parameters
    ----------
    centroids
        Shape ``(P, d)``.
    loss
        Sum of the distances of the sample to their centroids, those before the last move; with dot
        those of vectors of unit length.
    """

    centroids: NDArray[Number]
    loss: float


def train_centroids(
    sample: NDArray[np.float32],
    num_clusters: int,
    metric: Metric,
    *,
    max_iterations: int = MAX_ITERATIONS,
    seed: int = SEED,
    progress: Callable[[int, int], None] | None = None,
) -> Clusters[np.float32]:
    """Train the centroids of partitions.

    Parameters
    ----------
    sample
        Shape ``(n, d)``; finite, and of unit length with cosine.
    num_clusters
        How many centroids to return; more than the distinct vectors of the sample are repeated.
    metric
        ``l2`` and ``cosine`` give means, ``dot`` the directions of sums. Vectors count alike for
        these whatever their length, or those of short ones would be left to a few partitions.
    max_iterations
        Rounds over the sample at most, over a part of it or all. They end when they hardly gain.
    seed
        The same sample and seed give the same centroids.
    progress
        Called with the rounds done and ``max_iterations``.

    Raises
    ------
    InvalidRequestError
        The sample is empty.

    Notes
    -----
    Vector index page, sections 3 and 8.
    """
    numbers, exponent = without_extremes(sample)
    if metric == Metric.DOT:
        numbers = _of_unit_length(numbers)
    effort = Effort(max_iterations, _gain(num_clusters), seed)
    trained = cluster(numbers, num_clusters, FloatSpace(metric, NUM_THREADS), effort, progress)
    if metric == Metric.DOT or exponent == 0:
        return trained
    loss = float(np.ldexp(trained.loss, 2 * exponent))
    return Clusters(np.ldexp(trained.centroids, exponent), loss)


def train_byte_centroids(
    sample: NDArray[np.uint8],
    num_clusters: int,
    *,
    max_iterations: int = MAX_ITERATIONS,
    seed: int = SEED,
    progress: Callable[[int, int], None] | None = None,
) -> Clusters[np.uint8]:
    """Train the centroids of partitions of bytes under hamming, as `train_centroids` does."""
    effort = Effort(max_iterations, _gain(num_clusters), seed)
    return cluster(sample, num_clusters, BitSpace(NUM_THREADS), effort, progress)


def without_extremes(vectors: NDArray[np.float32]) -> tuple[NDArray[np.float32], int]:
    """Make the squares of vectors fit into float32.

    Returns the vectors and 0, or where their squares are too large or small what they are
    multiplied with ``2 ** exponent``, and this exponent.
    """
    longest = max(vectors.max(initial=0), -vectors.min(initial=0))
    if longest == 0 or _SHORTEST < longest < _LONGEST:
        return vectors, 0
    exponent = int(np.frexp(longest)[1])
    return np.ldexp(vectors, -exponent), exponent


def _of_unit_length(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Divide vectors by their length, those without one by 1."""
    lengths = np.sqrt(np.einsum("nd,nd->n", vectors, vectors))
    lengths[lengths == 0] = 1
    unit: NDArray[np.float32] = vectors / lengths[:, np.newaxis]
    return unit


def cluster(
    sample: NDArray[Number],
    num_clusters: int,
    space: Space[Number],
    effort: Effort,
    progress: Callable[[int, int], None] | None,
) -> Clusters[Number]:
    """Cluster a sample in a space, as `train_centroids` does."""
    if len(sample) == 0:
        raise InvalidRequestError("there are no vectors to train an index with")
    vectors = np.ascontiguousarray(sample)
    generator = np.random.default_rng(effort.seed)
    watch = _Watch(progress, effort.max_iterations)
    centroids = _split(vectors, num_clusters, space, generator, _MOST_SPLITS)
    if len(vectors) > 2 * _FEW_ROWS * num_clusters:
        few = vectors[_some_rows(len(vectors), _FEW_ROWS * num_clusters, generator)]
        rounds = effort.max_iterations // 2
        partly = _settle(few, centroids, space, generator, rounds, _PART_SETTLED, watch)
        centroids = partly.centroids
    rounds = effort.max_iterations - watch.done
    return _settle(vectors, centroids, space, generator, rounds, effort.gain, watch)


def _gain(num_clusters: int) -> float:
    """Tell where to end: rounds take time as the square of the clusters, and gain less of many."""
    return _SETTLED if num_clusters <= _FEW_CLUSTERS else _NEARLY_SETTLED


@dataclass(slots=True)
class _Watch:
    """Counts rounds, for whoever watches."""

    progress: Callable[[int, int], None] | None
    total: int
    done: int = 0

    def count(self) -> None:
        """Count one more."""
        self.done += 1
        if self.progress is not None:
            self.progress(self.done, self.total)


def _split(
    vectors: NDArray[Number],
    num_clusters: int,
    space: Space[Number],
    generator: np.random.Generator,
    splits_left: int,
) -> NDArray[Number]:
    """Return centroids to start from: of few clusters, or of the clusters in each of few."""
    if len(vectors) <= num_clusters or splits_left == 0:
        rows = generator.permutation(len(vectors))[:num_clusters]
        return space.as_centroids(vectors[np.resize(rows, num_clusters)])
    few = _num_parts(num_clusters)
    first = _spread_rows(vectors, few, space, generator)
    watch = _Watch(None, _SPLIT_ROUNDS)
    groups = _settle(
        vectors, first, space, generator, _SPLIT_ROUNDS, _PART_SETTLED, watch
    ).centroids
    if num_clusters == few:
        return groups
    labels, _ = space.assign(vectors, groups)
    counts = np.bincount(labels, minlength=few)
    by_label = np.argsort(labels, kind="stable")
    ends = np.cumsum(counts)
    parts = []
    for share, start, end in zip(_shares(counts, num_clusters), ends - counts, ends, strict=True):
        if share > 0:
            own = vectors[by_label[start:end]]
            parts.append(_split(own, int(share), space, generator, splits_left - 1))
    return np.concatenate(parts)


def _num_parts(num_clusters: int) -> int:
    """Return how many parts to split into, so that all splits on the way are alike."""
    num_levels = 1
    while _SPLIT_INTO**num_levels < num_clusters:
        num_levels += 1
    return int(np.ceil(num_clusters ** (1 / num_levels)))


def _spread_rows(
    vectors: NDArray[Number],
    wanted: int,
    space: Space[Number],
    generator: np.random.Generator,
) -> NDArray[Number]:
    """Choose rows that are far from one another as centroids (k-means++, of a sample)."""
    some = vectors[_some_rows(len(vectors), wanted * _ROWS_TO_CHOOSE_FROM, generator)]
    chosen = np.zeros(wanted, np.int64)
    nearest = np.full(len(some), np.inf)
    for number in range(1, wanted):
        _, distances = space.assign(some, space.as_centroids(some[chosen[number - 1 : number]]))
        nearest = np.minimum(nearest, distances)
        chosen[number] = _drawn(nearest - nearest.min(), generator)
    return space.as_centroids(some[chosen])


def _drawn(weights: NDArray[np.float64], generator: np.random.Generator) -> int:
    """Draw a row by weight; any where weights do not tell."""
    total = weights.sum()
    if not 0 < total < np.inf:
        return int(generator.integers(len(weights)))
    below = np.cumsum(weights) < generator.random() * total
    return min(int(np.count_nonzero(below)), len(weights) - 1)


def _settle(
    vectors: NDArray[Number],
    first: NDArray[Number],
    space: Space[Number],
    generator: np.random.Generator,
    max_rounds: int,
    gain: float,
    watch: _Watch,
) -> Clusters[Number]:
    """Move centroids to the middle of their rows until the loss falls by less than ``gain``."""
    centroids, loss = first, np.inf
    for _ in range(max_rounds):
        labels, distances = space.assign(vectors, centroids)
        previous, loss = loss, float(distances.sum(dtype=np.float64))
        counts = np.bincount(labels, minlength=len(centroids))
        centroids = space.centroids_of(vectors, labels, counts, centroids)
        _fill_empty(centroids, counts, vectors, distances, space, generator)
        watch.count()
        if abs(previous - loss) <= gain * abs(loss):
            break
    return Clusters(centroids, loss)


def _fill_empty(
    centroids: NDArray[Number],
    counts: NDArray[np.int64],
    vectors: NDArray[Number],
    distances: NDArray[np.float32],
    space: Space[Number],
    generator: np.random.Generator,
) -> None:
    """Move the centroids of no rows onto random rows, which are likely those of big clusters."""
    empty = np.flatnonzero(counts == 0)
    apart = np.flatnonzero(distances > 0)
    if len(empty) > 0 and len(apart) > 0:
        rows = apart[_some_rows(len(apart), len(empty), generator)]
        filled = space.as_centroids(vectors[rows])
        centroids[empty[: len(filled)]] = filled


def _some_rows(num_rows: int, wanted: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """Return distinct rows, in random order: as many as are wanted or there are."""
    return generator.choice(num_rows, min(wanted, num_rows), replace=False)


def _shares(counts: NDArray[np.int64], total: int) -> NDArray[np.int64]:
    """Share out ``total`` clusters by rows: at least one where there are rows, none elsewhere."""
    shares = (counts > 0).astype(np.int64)
    exact = counts / counts.sum() * total
    while shares.sum() < total:
        shares[np.argmax(exact - shares)] += 1
    return shares
