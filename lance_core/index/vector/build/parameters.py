"""How vector indices are trained and coded: what is asked for, and its defaults."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from lance_core.errors import InvalidRequestError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lance_core.index.vector.build.model import GraphParameters
    from lance_core.index.vector.metric import Metric

Quantiser = Literal["FLAT", "PQ", "SQ", "RQ"]

QUANTISERS: dict[str, Quantiser] = {
    "IVF_FLAT": "FLAT",
    "IVF_PQ": "PQ",
    "IVF_SQ": "SQ",
    "IVF_RQ": "RQ",
    "IVF_HNSW_FLAT": "FLAT",
    "IVF_HNSW_PQ": "PQ",
    "IVF_HNSW_SQ": "SQ",
}
"""How each type of index codes vectors."""

_MOST_PARTITIONS = 4096
_SQ_SAMPLE = 1 << 16
_VALUE_TYPES = (pa.float16(), pa.float32(), pa.float64(), pa.uint8())


@dataclass(frozen=True, slots=True)
class VectorColumn:
    """What a column of vectors holds.

    Parameters
    ----------
    value_type
        float16, float32, float64 or uint8.
    dimension
        Coordinates of a vector.
    is_multi
        Whether a row holds a list of vectors.
    """

    value_type: pa.DataType
    dimension: int
    is_multi: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class VectorParameters:
    """What `vector_parameters` found to be asked for.

    Parameters
    ----------
    index_type
        Such as ``IVF_PQ``.
    column
        What the column holds.
    metric
        The metric.
    num_partitions
        Partitions wanted; None = as many as the rows ask for.
    target_partition_size
        Rows of a partition then.
    num_sub_vectors
        Of PQ; 1 otherwise.
    num_bits
        Bits of a code, see the model; 0 of whole vectors.
    rotation_type
        Of RQ.
    graph
        How graphs are built, None without.
    sample_rate
        Vectors of the sample for every centroid.
    max_iterations
        Of k-means.
    centroids, codebook, rotation
        Parts of the model that are given; None = they are trained or drawn.
    """

    index_type: str
    column: VectorColumn
    metric: Metric
    num_partitions: int | None
    target_partition_size: int
    num_sub_vectors: int
    num_bits: int
    rotation_type: Literal["fast", "matrix"]
    graph: GraphParameters | None
    sample_rate: int
    max_iterations: int
    centroids: NDArray[np.float32] | NDArray[np.uint8] | None = None
    codebook: NDArray[np.float32] | None = None
    rotation: bytes | NDArray[np.float32] | None = None

    @property
    def quantiser(self) -> Quantiser:
        """How vectors are coded."""
        return QUANTISERS[self.index_type]

    @property
    def least_vectors(self) -> int:
        """Usable vectors that training needs: every code of a codebook wants one of its own."""
        is_trained = self.quantiser == "PQ" and self.codebook is None
        return 1 << self.num_bits if is_trained else 1

    def partitions_of(self, num_vectors: int) -> int:
        """Return how many partitions are made for a column of ``num_vectors``, at least 1.

        Notes
        -----
        As pylance 14.0.2: never more than vectors, and of those that PQ is asked for no more than
        find a whole sample each. Where none are asked for, 4096 at most as in pylance, or the root
        of the rows where that is more.
        """
        if self.centroids is not None:
            return len(self.centroids)
        wanted, most = self.num_partitions, num_vectors
        if wanted is None:
            usual = num_vectors // self.target_partition_size
            wanted = min(usual, max(_MOST_PARTITIONS, isqrt(num_vectors)))
        elif self.quantiser == "PQ":
            most = num_vectors // self.sample_rate
        return max(min(wanted, most), 1)

    def sample_size(self, num_vectors: int) -> int:
        """Return how many vectors of a column of ``num_vectors`` a model is trained with."""
        sizes = [1]
        if self.centroids is None:
            sizes.append(self.sample_rate * self.partitions_of(num_vectors))
        if self.quantiser == "PQ" and self.codebook is None:
            sizes.append(self.sample_rate << self.num_bits)
        if self.quantiser == "SQ":
            sizes.append(_SQ_SAMPLE)
        return min(max(sizes), num_vectors)


def vector_column(column_type: pa.DataType) -> VectorColumn:
    """Return what a column of vectors holds.

    Raises
    ------
    InvalidRequestError
        It holds no vectors that an index takes.
    """
    is_multi = pa.types.is_list(column_type) or pa.types.is_large_list(column_type)
    one = column_type.value_type if is_multi else column_type
    is_vector = pa.types.is_fixed_size_list(one) and one.list_size > 0
    if not is_vector or one.value_type not in _VALUE_TYPES:
        raise InvalidRequestError(
            "a vector index takes columns of vectors (fixed-size lists of float16, float32, float64"
            f" or uint8) or lists of such, not of type {column_type}"
        )
    return VectorColumn(one.value_type, one.list_size, is_multi)
