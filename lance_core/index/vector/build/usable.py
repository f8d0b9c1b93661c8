"""The vectors of a column that an index can hold, as it holds them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from lance_core.index.vector.metric import Metric
from lance_core.kernels.memory import address_of
from lance_core.kernels.usable_vectors import mark_finite, normalise

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class UsableVectors:
    """Vectors and the rows that they are of.

    Parameters
    ----------
    values
        Shape ``(n, d)``, of the column's own type: finite, and of unit length with cosine. May be
        the column's own memory.
    row_ids
        Shape ``(n,)``; a row of several vectors is named several times.
    """

    values: NDArray[Any]
    row_ids: NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.row_ids)

    @property
    def numbers(self) -> NDArray[Any]:
        """The vectors as they are measured: float32, or bytes; a copy where they are not that."""
        wanted = np.uint8 if self.values.dtype == np.uint8 else np.float32
        return np.ascontiguousarray(self.values, dtype=wanted)


def usable_vectors(column: pa.Array, row_ids: NDArray[np.uint64], metric: Metric) -> UsableVectors:
    """Take the usable vectors out of a column.

    Parameters
    ----------
    column
        Fixed-size lists of float16, float32, float64 or uint8, or lists of such.
    row_ids
        Shape ``(n,)``: what the rows are called.
    metric
        ``cosine`` makes vectors of unit length.

    Returns
    -------
    UsableVectors
        Without null vectors and such as have a null, NaN, or an infinity, also as float32; with
        cosine without those of no length. In the order of the rows.

    Notes
    -----
    Vector index page, sections 3, 7.5 and 7.7. float64 beyond float32 are left out because no
    distance to them can be told; pylance 14.0.2 reports an infinite one.
    """
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        column, row_ids = _vectors_of_lists(column, row_ids)
    values = _matrix(column)
    are_usable = _are_whole(column)
    numbers = values
    if values.dtype != np.uint8:
        with np.errstate(over="ignore"):
            numbers = np.ascontiguousarray(values, dtype=np.float32)
        mark_finite(address_of(numbers), numbers.shape[1], are_usable)
    if metric == Metric.COSINE:
        values = _unit_vectors(values, numbers, are_usable)
    if are_usable.all():
        return UsableVectors(values, row_ids)
    return UsableVectors(values[are_usable], row_ids[are_usable])


def _vectors_of_lists(
    column: pa.Array, row_ids: NDArray[np.uint64]
) -> tuple[pa.Array, NDArray[np.uint64]]:
    """Return the vectors of lists, and the row of each."""
    lengths = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    return column.flatten(), np.repeat(row_ids, lengths)


def _matrix(column: pa.Array) -> NDArray[Any]:
    """Return all vectors, null ones too, shape ``(n, d)``."""
    width = column.type.list_size
    numbers = column.values.slice(column.offset * width, len(column) * width)
    plain = pa.Array.from_buffers(
        numbers.type, len(numbers), [None, numbers.buffers()[1]], offset=numbers.offset
    )
    matrix: NDArray[Any] = plain.to_numpy(zero_copy_only=True).reshape(len(column), width)
    return matrix


def _are_whole(column: pa.Array) -> NDArray[np.bool_]:
    """Tell which vectors are there, with all of their numbers."""
    width = column.type.list_size
    are_there = np.ones(len(column), np.bool_)
    if column.null_count > 0:
        are_there &= column.is_valid().to_numpy(zero_copy_only=False)
    numbers = column.values.slice(column.offset * width, len(column) * width)
    if numbers.null_count > 0:
        valid = numbers.is_valid().to_numpy(zero_copy_only=False)
        are_there &= valid.reshape(len(column), width).all(axis=1)
    return are_there


def _unit_vectors(
    values: NDArray[Any], numbers: NDArray[np.float32], have_length: NDArray[np.bool_]
) -> NDArray[Any]:
    """Return vectors of unit length, in the type of ``values``; clear marks of those of none."""
    if values.dtype != np.float64:
        unit = np.zeros(numbers.shape, np.float32)
        normalise(address_of(numbers), unit, have_length)
        return unit.astype(values.dtype, copy=False)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        # One after the other, as pylance adds them.
        lengths = np.sqrt(np.cumsum(values * values, axis=1)[:, -1:])
        have_length &= (lengths[:, 0] > 0) & np.isfinite(lengths[:, 0])
        result: NDArray[Any] = values / lengths
    return result
