"""What has to be learnt before vectors can be indexed: centroids, and how vectors are coded.

Segments of one model can become one segment without coding their vectors anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from lance_core.index.vector.metric import Metric


@dataclass(frozen=True, slots=True)
class FlatCoding:
    """Vectors are kept as they are, normalised where the metric is cosine."""


@dataclass(frozen=True, slots=True, eq=False)
class PqCoding:
    """Product quantisation.

    Parameters
    ----------
    num_bits
        8 or 4.
    codebook
        Shape ``(m, 2 ** num_bits, d / m)``.
    """

    num_bits: int
    codebook: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class SqCoding:
    """Scalar quantisation: one byte a coordinate, between bounds that all coordinates share."""

    start: float
    end: float


@dataclass(frozen=True, slots=True, eq=False)
class RabitCoding:
    """RaBitQ.

    Parameters
    ----------
    num_bits
        Bits a coordinate, 1 to 9; one is the sign.
    rotation
        Bits of the fast rotation, ``4 * ceil(d / 8)`` bytes, or a matrix of shape ``(d, d)``.
    """

    num_bits: int
    rotation: bytes | NDArray[np.float32]


Coding = FlatCoding | PqCoding | SqCoding | RabitCoding


@dataclass(frozen=True, slots=True)
class GraphParameters:
    """How the graph of a partition is built.

    Parameters
    ----------
    max_connections
        Neighbours of a node; twice as many on the lowest level. At least 4.
    ef_construction
        Candidates for them. At least ``max_connections``.
    max_level
        Levels at most. At least 1.
    """

    max_connections: int = 20
    ef_construction: int = 150
    max_level: int = 7


@dataclass(frozen=True, slots=True, eq=False)
class VectorModel:
    """Centroids, and how the vectors of a partition are coded.

    Parameters
    ----------
    metric
        The metric.
    value_type
        Type of the coordinates in the column: float16, float32, float64, or uint8 with hamming.
    centroids
        Shape ``(P, d)``: float32, or uint8 with hamming. Means of normalised vectors with cosine.
    coding
        How vectors are coded.
    graph
        How graphs are built; None where partitions are scanned.
    loss
        What training ended with: the sum of the distances of the sample to their centroids.
    """

    metric: Metric
    value_type: pa.DataType
    centroids: NDArray[np.float32] | NDArray[np.uint8]
    coding: Coding
    graph: GraphParameters | None = None
    loss: float | None = None

    @property
    def dimension(self) -> int:
        """Coordinates of a vector."""
        return int(self.centroids.shape[1])

    @property
    def num_partitions(self) -> int:
        """Number of partitions."""
        return len(self.centroids)
