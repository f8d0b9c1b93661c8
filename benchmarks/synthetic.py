"""Vectors with the structure of real embeddings, and the exact neighbours of queries among them.

A Gaussian mixture whose centres and points both have the spectrum ``i ** -1.2``, turned by one
random rotation: variance concentrates in few directions, as in learned embeddings. A plain
isotropic mixture would make every quantiser look useless.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROWS_AT_ONCE = 50_000
QUERIES_AT_ONCE = 100
SHORTLIST_FACTOR = 5


@dataclass(frozen=True, slots=True)
class Mixture:
    """A Gaussian mixture: ``weights`` ``(c,)``, ``centres`` and ``axes`` scaled to unit spread.

    ``centres`` is ``(c, d)``, ``spreads`` ``(c,)``, ``scales`` ``(d,)`` the standard deviation
    along each axis before ``rotation`` ``(d, d)`` is applied.
    """

    weights: NDArray[np.float64]
    centres: NDArray[np.float64]
    spreads: NDArray[np.float64]
    scales: NDArray[np.float64]
    rotation: NDArray[np.float64]


def make_mixture(dimension: int, num_centres: int, generator: np.random.Generator) -> Mixture:
    """Draw a mixture with gamma-distributed weights and spreads."""
    scales = np.arange(1, dimension + 1, dtype=np.float64) ** -0.6
    rotation, _ = np.linalg.qr(generator.standard_normal((dimension, dimension)))
    weights = generator.gamma(2.0, size=num_centres)
    return Mixture(
        weights=weights / weights.sum(),
        centres=generator.standard_normal((num_centres, dimension)) * scales,
        spreads=generator.gamma(4.0, 0.125, size=num_centres),
        scales=scales,
        rotation=rotation,
    )


def draw(mixture: Mixture, num_rows: int, generator: np.random.Generator) -> NDArray[np.float32]:
    """Draw ``num_rows`` points of the mixture, shape ``(n, d)``, in random order."""
    dimension = mixture.scales.size
    rows = np.empty((num_rows, dimension), np.float32)
    for start in range(0, num_rows, ROWS_AT_ONCE):
        part = rows[start : start + ROWS_AT_ONCE]
        labels = generator.choice(mixture.weights.size, size=len(part), p=mixture.weights)
        noise = generator.standard_normal((len(part), dimension)) * mixture.scales
        points = mixture.centres[labels] + noise * mixture.spreads[labels, np.newaxis]
        part[:] = points @ mixture.rotation
    return rows


def exact_neighbours(
    vectors: NDArray[np.float32], queries: NDArray[np.float32], k: int
) -> NDArray[np.int64]:
    """Return the positions of the ``k`` nearest rows by l2, nearest first, shape ``(m, k)``.

    A float32 matrix product finds a shortlist five times as long; float64 differences decide.
    """
    norms = np.einsum("nd,nd->n", vectors, vectors)
    nearest = np.empty((len(queries), k), np.int64)
    for start in range(0, len(queries), QUERIES_AT_ONCE):
        part = queries[start : start + QUERIES_AT_ONCE]
        scores = norms - 2.0 * (part @ vectors.T)
        shortlist = np.argpartition(scores, k * SHORTLIST_FACTOR, axis=1)[:, : k * SHORTLIST_FACTOR]
        for row, (query, rows) in enumerate(zip(part, shortlist, strict=True), start):
            differences = vectors[rows].astype(np.float64) - query
            distances = np.einsum("nd,nd->n", differences, differences)
            nearest[row] = rows[np.argsort(distances, kind="stable")[:k]]
    return nearest
