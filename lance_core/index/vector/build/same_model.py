"""Whether rows that one model coded may lie among those of another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.index.vector.build.model import PqCoding, RabitCoding

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lance_core.index.vector.build.model import Coding, VectorModel


def same_model(one: VectorModel, other: VectorModel) -> bool:
    """Tell whether two models code every vector alike, and both have graphs or none.

    How graphs are built may differ: segments that become one get new ones.
    """
    return (
        one.metric == other.metric
        and one.value_type == other.value_type
        and (one.graph is None) == (other.graph is None)
        and np.array_equal(one.centroids, other.centroids)
        and _same_coding(one.coding, other.coding)
    )


def _same_coding(one: Coding, other: Coding) -> bool:
    if isinstance(one, PqCoding) and isinstance(other, PqCoding):
        return one.num_bits == other.num_bits and np.array_equal(one.codebook, other.codebook)
    if isinstance(one, RabitCoding) and isinstance(other, RabitCoding):
        return one.num_bits == other.num_bits and _same_rotation(one.rotation, other.rotation)
    return one == other


def _same_rotation(one: bytes | NDArray[np.float32], other: bytes | NDArray[np.float32]) -> bool:
    if isinstance(one, bytes) or isinstance(other, bytes):
        return isinstance(one, bytes) and isinstance(other, bytes) and one == other
    return np.array_equal(one, other)
