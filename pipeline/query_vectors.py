"""Vectors to search by, as they stand in columns: lists of numbers, bytes, and lists of these."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_core.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Naming = Callable[[int], str]
    """What errors call the vector in a row."""

_FLOAT = np.dtype("<f4")


def is_list(kind: pa.DataType) -> bool:
    """Tell whether values of a type are lists, of whatever."""
    are_lists: bool = (
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )
    return are_lists


def holds_lists(kind: pa.DataType) -> bool:
    """Tell whether values of a type are lists of vectors, not vectors."""
    return is_list(kind) and (is_list(kind.value_type) or _are_bytes(kind.value_type))


def list_lengths(values: pa.Array) -> NDArray[np.int64]:
    """Return how many elements each list has, shape ``(n,)``; none is null."""
    if pa.types.is_fixed_size_list(values.type):
        return np.full(len(values), values.type.list_size, np.int64)
    lengths: NDArray[np.int64] = pc.list_value_length(values).to_numpy().astype(np.int64)
    return lengths


def query_vectors(
    values: pa.Array, first: int = 0, dimension: int | None = None
) -> NDArray[np.float32]:
    """Return vectors as float32.

    Parameters
    ----------
    values
        Lists of numbers of one length, or bytes of little-endian float32.
    first
        Number of the first row, for errors.
    dimension
        Length that they must have; None = that of the first.

    Returns
    -------
    NDArray[np.float32]
        Shape ``(n, d)``.

    Raises
    ------
    InvalidRequestError
        They are no such vectors.
    """
    return _vectors(values, lambda row: f"query {first + row}", dimension)


def query_lists(
    values: pa.Array, first: int = 0, dimension: int | None = None
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return the vectors of lists of them, shape ``(m, d)``, and how many each has, ``(n,)``.

    Parameters
    ----------
    values
        Lists of what `query_vectors` takes.
    first, dimension
        As there.

    Raises
    ------
    InvalidRequestError
        They are no such vectors, or a list is empty.
    """
    _refuse_nulls(values, lambda row: f"query {first + row}")
    counts = list_lengths(values)
    empty = np.flatnonzero(counts == 0)
    if len(empty) > 0:
        raise InvalidRequestError(
            f"query {first + int(empty[0])} has no vector; leave out rows without one"
        )
    starts = np.cumsum(counts) - counts

    def name(row: int) -> str:
        query = int(np.searchsorted(starts, row, side="right")) - 1
        return f"vector {row - starts[query]} of query {first + query}"

    return _vectors(values.flatten(), name, dimension), counts


def _vectors(values: pa.Array, name: Naming, dimension: int | None) -> NDArray[np.float32]:
    _refuse_nulls(values, name)
    if len(values) == 0:
        return np.empty((0, 0), np.float32)
    lengths, numbers = _numbers(values)
    wanted = int(lengths[0]) if dimension is None else dimension
    wrong = np.flatnonzero(lengths != wanted)
    if len(wrong) > 0 or wanted == 0:
        row = 0 if len(wrong) == 0 else int(wrong[0])
        raise InvalidRequestError(
            f"{name(row)} has {lengths[row]} numbers, others have {wanted}; give vectors"
            " of one length, at least one number each"
        )
    vectors = numbers.reshape(-1, wanted)
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(bad) > 0:
        raise InvalidRequestError(
            f"{name(int(bad[0]))} holds null, NaN or an infinity; all its numbers must be finite"
        )
    return vectors


def _refuse_nulls(values: pa.Array, name: Naming) -> None:
    if values.null_count > 0:
        row = int(np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False))[0])
        raise InvalidRequestError(f"{name(row)} is null; leave out rows without a vector")


def _numbers(values: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return how many numbers each row has, and all of them."""
    kind = values.type
    if _are_bytes(kind):
        sizes = pc.binary_length(values).to_numpy().astype(np.int64)
        if (sizes % _FLOAT.itemsize).any():
            raise InvalidRequestError("query vectors given as bytes hold no whole float32 numbers")
        raw = b"".join(values.to_pylist())
        return sizes // _FLOAT.itemsize, np.frombuffer(raw, _FLOAT)
    items = values.flatten() if is_list(kind) else values
    is_number = pa.types.is_floating(items.type) or pa.types.is_integer(items.type)
    if not (is_list(kind) and is_number):
        raise InvalidRequestError(f"query vectors are {kind}; give lists of numbers, or bytes")
    with np.errstate(over="ignore"):  # what is too large becomes an infinity, which is refused
        return list_lengths(values), items.to_numpy(zero_copy_only=False).astype(np.float32)


def _are_bytes(kind: pa.DataType) -> bool:
    are_bytes: bool = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    return are_bytes
