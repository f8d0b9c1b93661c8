"""Vectors out of Arrow arrays, as kernels take them.

Rows that hold lists of vectors become a table of where each list lies: a row is two int64, the
address of the first vector and their number. So these rows have one width too, whatever their lists
hold, and are found, cut and numbered like vectors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.memory import address_of

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from lance_core.scan.vector_type import VectorType


def as_vectors(
    array: pa.Array, vector_type: VectorType
) -> tuple[NDArray[np.generic], NDArray[np.bool_] | None]:
    """Return a fixed size list array as vectors.

    Parameters
    ----------
    array
        Fixed size lists of numbers, ``n`` rows.
    vector_type
        Their type.

    Returns
    -------
    vectors
        Shape ``(n, d)``, C-contiguous, as they are held in memory. Of floats null elements are NaN;
        null rows are zero. Numbers beyond float32 are infinite.
    is_valid
        Shape ``(n,)``; None when no row is null, and no byte of one.
    """
    dimension = vector_type.dimension
    items = array.values.slice(array.offset * dimension, len(array) * dimension)
    is_valid = None
    if array.null_count > 0:
        is_valid = array.is_valid().to_numpy(zero_copy_only=False)
    if vector_type.are_bytes and items.null_count > 0:  # bytes know no NaN
        whole = items.is_valid().to_numpy(zero_copy_only=False).reshape(-1, dimension).all(axis=1)
        is_valid = whole if is_valid is None else is_valid & whole
        items = items.fill_null(0)
    values = items.to_numpy(zero_copy_only=False)
    with np.errstate(over="ignore"):
        values = values.astype(vector_type.memory_type, copy=False)
    vectors = np.ascontiguousarray(values.reshape(len(array), dimension))
    if is_valid is not None:
        vectors = np.where(is_valid[:, None], vectors, vectors.dtype.type(0))
    return vectors, is_valid


def as_lists(
    array: pa.Array, vector_type: VectorType
) -> tuple[NDArray[np.generic], NDArray[np.int64]]:
    """Return an array of lists of vectors.

    Parameters
    ----------
    array
        Lists of fixed size lists of numbers, ``n`` rows.
    vector_type
        Their type.

    Returns
    -------
    vectors
        Shape ``(v, d)``, C-contiguous: those of all lists. The caller keeps them alive as long as
        the table is used.
    table
        Shape ``(n, 2)``: address of the first vector of each row and their number, which is 0 for a
        null row. Vectors that are null are left out.
    """
    vectors, is_valid = as_vectors(array.flatten(), vector_type)
    lengths = array.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    ends = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    if is_valid is not None:
        vectors = np.ascontiguousarray(vectors[is_valid])
        ends = np.concatenate([[0], np.cumsum(is_valid, dtype=np.int64)])[ends]
    starts = address_of(vectors) + ends[:-1] * vector_type.vector_bytes
    return vectors, np.ascontiguousarray(np.stack([starts, np.diff(ends)], axis=1))
