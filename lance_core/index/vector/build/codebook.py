"""Codebooks of product quantisers: k-means over each sub-vector alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

from lance_core.index.vector.build.assign import NUM_THREADS
from lance_core.index.vector.build.kmeans import (
    MAX_ITERATIONS,
    SEED,
    Effort,
    cluster,
    without_extremes,
)
from lance_core.index.vector.build.spaces import FloatSpace, ShortSpace
from lance_core.index.vector.metric import Metric

if TYPE_CHECKING:
    from numpy.typing import NDArray

_GAIN = 2e-4
_SHORT = 24
"""Coordinates up to which `ShortSpace` takes less time (numba 0.68, OpenBLAS 0.3.31)."""


def train_codebook(
    vectors: NDArray[np.float32],
    num_sub_vectors: int,
    num_bits: int,
    *,
    max_iterations: int = MAX_ITERATIONS,
    seed: int = SEED,
) -> NDArray[np.float32]:
    """Train the codebook of a product quantiser; distances are squared l2 whatever the metric.

    Parameters
    ----------
    vectors
        Shape ``(n, d)``, finite: residuals, with dot the vectors themselves.
    num_sub_vectors
        ``m``, which divides ``d``.
    num_bits
        Bits of a code.
    max_iterations
        Rounds over the vectors at most.
    seed
        The same vectors and seed give the same codebook.

    Returns
    -------
    NDArray[np.float32]
        Shape ``(m, 2 ** num_bits, d / m)``.

    Notes
    -----
    Vector index page, sections 4.2 and 8.
    """
    numbers, exponent = without_extremes(vectors)
    width = numbers.shape[1] // num_sub_vectors
    space = ShortSpace() if width <= _SHORT else FloatSpace(Metric.L2, num_threads=1)

    def train(number: int) -> NDArray[np.float32]:
        part = np.ascontiguousarray(numbers[:, number * width : (number + 1) * width])
        effort = Effort(max_iterations, _GAIN, seed + number)
        return np.ldexp(cluster(part, 1 << num_bits, space, effort, None).centroids, exponent)

    with ThreadPoolExecutor(NUM_THREADS, "lance-build") as pool:
        return np.stack(list(pool.map(train, range(num_sub_vectors))))
