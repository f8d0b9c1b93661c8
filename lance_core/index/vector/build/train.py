"""Training a model with a sample of the vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from lance_core.errors import InvalidRequestError
from lance_core.index.vector.build.assign import assign
from lance_core.index.vector.build.codebook import train_codebook
from lance_core.index.vector.build.kmeans import SEED, train_byte_centroids, train_centroids
from lance_core.index.vector.build.model import (
    Coding,
    FlatCoding,
    PqCoding,
    RabitCoding,
    SqCoding,
    VectorModel,
)
from lance_core.index.vector.metric import Metric
from lance_core.kernels.rq_rotation import NUM_ROUNDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from lance_core.index.vector.build.parameters import VectorParameters
    from lance_core.index.vector.build.usable import UsableVectors

_BYTE_BITS = 8
_BLOCK_ROWS = 1 << 12
_LARGEST = np.finfo(np.float32).max


def train(
    sample: UsableVectors,
    parameters: VectorParameters,
    num_vectors: int,
    progress: Callable[[int, int], None] | None = None,
    *,
    seed: int = SEED,
) -> VectorModel:
    """Train what `VectorParameters` does not give.

    Parameters
    ----------
    sample
        About ``parameters.sample_size(num_vectors)`` vectors, spread over the column.
    parameters
        What to train.
    num_vectors
        Vectors of the column, which tell the number of partitions.
    progress
        Called with rounds of k-means over all centroids, and how many there are at most.
    seed
        The same sample and seed give the same model.

    Raises
    ------
    InvalidRequestError
        The sample has fewer vectors than training needs.

    Notes
    -----
    Vector index page, section 8. Centroids and codebooks are what the column's own type can hold,
    as files store them so.
    """
    least = parameters.least_vectors
    if len(sample) < least:
        raise InvalidRequestError(
            f"an {parameters.index_type} index is trained with {least} vectors at least (no null"
            f" ones, NaN or infinities, and with cosine none of no length); there are {len(sample)}"
        )
    vectors = sample.numbers
    clusters = _train_clusters(vectors, parameters, num_vectors, seed, progress)
    return VectorModel(
        metric=parameters.metric,
        value_type=parameters.column.value_type,
        centroids=clusters.centroids,
        coding=_train_coding(vectors, clusters.centroids, parameters, seed),
        graph=parameters.graph,
        loss=clusters.loss,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Centroids:
    """Centroids as they are stored; no loss where they were given."""

    centroids: NDArray[np.float32] | NDArray[np.uint8]
    loss: float | None


def _train_clusters(
    vectors: NDArray[Any],
    parameters: VectorParameters,
    num_vectors: int,
    seed: int,
    progress: Callable[[int, int], None] | None,
) -> _Centroids:
    value_type = parameters.column.value_type
    if parameters.centroids is not None:
        return _Centroids(_as_stored(parameters.centroids, value_type), None)
    number = parameters.partitions_of(num_vectors)
    some = _spread(vectors, number * parameters.sample_rate)
    rounds = parameters.max_iterations
    if parameters.metric == Metric.HAMMING:
        found = train_byte_centroids(
            some, number, max_iterations=rounds, seed=seed, progress=progress
        )
        return _Centroids(found.centroids, found.loss)
    trained = train_centroids(
        some, number, parameters.metric, max_iterations=rounds, seed=seed, progress=progress
    )
    return _Centroids(_as_stored(trained.centroids, value_type), trained.loss)


def _train_coding(
    vectors: NDArray[Any], centroids: NDArray[Any], parameters: VectorParameters, seed: int
) -> Coding:
    match parameters.quantiser:
        case "PQ":
            return _train_pq(vectors, centroids, parameters, seed)
        case "SQ":
            return SqCoding(float(vectors.min()), float(vectors.max()))
        case "RQ":
            return RabitCoding(parameters.num_bits, _rotation(parameters, seed))
        case _:
            return FlatCoding()


def _train_pq(
    vectors: NDArray[np.float32],
    centroids: NDArray[np.float32],
    parameters: VectorParameters,
    seed: int,
) -> PqCoding:
    codebook = parameters.codebook
    if codebook is None:
        some = _spread(vectors, parameters.sample_rate << parameters.num_bits)
        if parameters.metric != Metric.DOT:
            some = some.copy() if some is vectors else some
            _take_off_centroids(some, centroids, parameters.metric)
        codebook = train_codebook(
            some,
            parameters.num_sub_vectors,
            parameters.num_bits,
            max_iterations=parameters.max_iterations,
            seed=seed,
        )
    return PqCoding(parameters.num_bits, _as_stored(codebook, parameters.column.value_type))


def _take_off_centroids(
    vectors: NDArray[np.float32], centroids: NDArray[np.float32], metric: Metric
) -> None:
    """Make vectors residuals, in place: there is no memory for another sample."""
    partitions, _ = assign(vectors, centroids, metric)
    for start in range(0, len(vectors), _BLOCK_ROWS):
        part = slice(start, start + _BLOCK_ROWS)
        with np.errstate(over="ignore"):
            vectors[part] -= centroids[partitions[part]]
        np.clip(vectors[part], -_LARGEST, _LARGEST, out=vectors[part])  # infinities have no mean


def _rotation(parameters: VectorParameters, seed: int) -> bytes | NDArray[np.float32]:
    """Return a rotation as files hold it, so that codes fit: a matrix in the type of the column."""
    value_type = parameters.column.value_type
    if isinstance(parameters.rotation, bytes):
        return parameters.rotation
    if parameters.rotation is not None:
        return _as_stored(parameters.rotation, value_type)
    generator, dimension = np.random.default_rng(seed), parameters.column.dimension
    if parameters.rotation_type == "fast":
        return generator.bytes(NUM_ROUNDS * dimension // _BYTE_BITS)
    orthogonal: NDArray[np.float64] = np.linalg.qr(generator.standard_normal((dimension,) * 2))[0]
    return _as_stored(orthogonal.astype(np.float32), value_type)


def _spread(vectors: NDArray[Any], most: int) -> NDArray[Any]:
    """Return so many vectors, as far apart in the sample as it has more: it may be in order."""
    if len(vectors) <= most:
        return vectors
    chosen: NDArray[Any] = vectors[np.arange(most) * len(vectors) // most]
    return chosen


def _as_stored(values: NDArray[Any], value_type: pa.DataType) -> NDArray[Any]:
    """Return numbers that a type can hold, as float32; bytes as they are."""
    if value_type != pa.float16():
        return values
    largest = np.finfo(np.float16).max
    rounded: NDArray[Any] = np.clip(values, -largest, largest).astype(np.float16)
    return rounded.astype(np.float32)
