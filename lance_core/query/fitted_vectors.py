"""Query vectors and metrics as the numbers of a column allow them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.errors import InvalidRequestError, TypeMismatchError
from lance_core.index.vector.metric import Metric

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lance_core.scan.vector_column import VectorColumn

_LEAST, _MOST = np.float32(1e-15), np.float32(1e15)
_LARGEST_BYTE = 255


def metric_for(column: VectorColumn, metric: str | None) -> str | None:
    """Return the metric of a query on a column; None = that of the index.

    Raises ``TypeMismatchError`` for one that cannot compare the numbers of the column.
    """
    name, element = column.field.name, column.type.element
    if column.type.are_bytes:
        if metric in {None, Metric.HAMMING}:
            return str(Metric.HAMMING)
        raise TypeMismatchError(
            f'metric {metric} compares floats; column "{name}" holds vectors of {element}: use'
            " hamming"
        )
    if metric == Metric.HAMMING:
        raise TypeMismatchError(
            f'metric hamming compares bits of uint8 vectors; column "{name}" holds vectors of'
            f" {element}: use l2, cosine or dot"
        )
    return metric


def fit_vectors(column: VectorColumn, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return query vectors as numbers that the column could hold.

    Parameters
    ----------
    column
        What is searched.
    vectors
        Shape ``(m, d)``, finite.

    Returns
    -------
    NDArray[np.float32]
        For a float16 column rounded to float16, as pylance 14.0.2 does; else unchanged.

    Raises
    ------
    InvalidRequestError
        A number of theirs is too large for the column, or for uint8 not a whole one or negative.
    """
    name = column.field.name
    if column.type.are_bytes:
        if not _are_bytes(vectors):
            raise InvalidRequestError(
                f'column "{name}" holds vectors of uint8: the query vector must hold whole numbers'
                f" from 0 to {_LARGEST_BYTE}"
            )
        return vectors
    if column.type.element != "float16":
        return vectors
    with np.errstate(over="ignore"):
        rounded = vectors.astype(np.float16)
    if not np.isfinite(rounded).all():
        raise InvalidRequestError(
            f'column "{name}" holds vectors of float16: the query vector must hold numbers up to'
            f" {np.finfo(np.float16).max:.0f} in size"
        )
    return rounded.astype(np.float32)


def unit_vector(column: VectorColumn, query: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return a query vector, shape ``(d,)``, divided by its norm, as cosine indices are searched.

    The squares are summed one after the other, and for a float16 column the result is rounded to
    float16, so that the bits are those of pylance 14.0.2: quantised codes of the query depend on
    them (observed at the stored vectors of cosine indices, 8 to 384 dimensions).
    """
    largest = np.abs(query).max()
    if not _LEAST <= largest <= _MOST:
        query = query / largest  # squares would leave the range of float32
    unit: NDArray[np.float32] = query / np.sqrt(np.cumsum(query * query)[-1])
    return unit.astype(np.float16).astype(np.float32) if column.type.element == "float16" else unit


def _are_bytes(vectors: NDArray[np.float32]) -> bool:
    inside = (vectors >= 0) & (vectors <= _LARGEST_BYTE) & (vectors == np.floor(vectors))
    return bool(inside.all())
