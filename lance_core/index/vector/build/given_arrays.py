"""Parts of a model that callers hand over as arrays of numpy or Arrow, checked."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.errors import InvalidRequestError

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TURNED = 1e-2
"""How far products of rows of a rotation may be off: float16 is as far off in large ones."""


def float_array(name: str, given: object, shape: tuple[int | None, ...]) -> NDArray[np.float32]:
    """Return finite numbers of a shape.

    Parameters
    ----------
    name
        The parameter.
    given
        An array of numpy or what makes one, or an Arrow array of fixed-size lists or tensors.
    shape
        The shape wanted, in which None stands for any length above 0.

    Raises
    ------
    InvalidRequestError
        It is something else.
    """
    found = _numbers(name, given)
    is_number = found.dtype.kind in "fiu"
    with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused
        floats = found.astype(np.float32) if is_number else np.zeros(0, np.float32)
    if not is_number or not _fits(found, shape) or not np.isfinite(floats).all():
        raise _misfit(name, found, shape, "finite numbers that float32 holds")
    return np.ascontiguousarray(floats)


def byte_array(name: str, given: object, shape: tuple[int | None, ...]) -> NDArray[np.uint8]:
    """Return bytes of a shape; as `float_array`."""
    found = _numbers(name, given)
    is_whole = found.dtype.kind in "iu" and _fits(found, shape)
    if not is_whole or not (found.min() >= 0 and found.max() <= np.iinfo(np.uint8).max):
        raise _misfit(name, found, shape, "whole numbers that uint8 holds")
    return np.array(found, np.uint8, order="C")


def codebook_array(name: str, given: object, shape: tuple[int, int, int]) -> NDArray[np.float32]:
    """Return finite numbers of a shape; as `float_array`.

    Lists of Arrow, which have no third dimension, may be of any length, as pylance 14.0.2 takes
    them: only the order of the numbers counts.
    """
    found = _numbers(name, given)
    are_lists = isinstance(given, pa.Array | pa.ChunkedArray)
    is_whole = found.size == math.prod(shape)
    return float_array(name, found.reshape(shape) if are_lists and is_whole else found, shape)


def rotation_matrix(name: str, given: object, dimension: int) -> NDArray[np.float32]:
    """Return a matrix that turns vectors, and changes neither lengths nor angles.

    Raises
    ------
    InvalidRequestError
        It is none: distances would be wrong.
    """
    found = float_array(name, given, (dimension, dimension))
    with np.errstate(over="ignore", invalid="ignore"):  # what is so large is no rotation either
        products = found @ found.T
        farthest = float(np.abs(products - np.eye(dimension, dtype=np.float32)).max())
    if not farthest <= _TURNED:
        raise InvalidRequestError(
            f"{name} is not orthogonal: a product of two of its rows is {farthest:.3g} off; give a"
            " matrix such as the q of numpy.linalg.qr"
        )
    return found


def _numbers(name: str, given: object) -> NDArray[np.generic]:
    try:
        if isinstance(given, pa.Array | pa.ChunkedArray):
            return _of_lists(given)
        return np.asarray(given)
    except (TypeError, ValueError) as error:
        raise InvalidRequestError(f"{name} is no array: {error}") from None


def _of_lists(given: pa.Array | pa.ChunkedArray) -> NDArray[np.generic]:
    """Return numbers of Arrow, a row for a list; raises ``ValueError`` if they are not such."""
    whole = given.combine_chunks() if isinstance(given, pa.ChunkedArray) else given
    lists = whole.storage if isinstance(whole, pa.ExtensionArray) else whole
    if not pa.types.is_fixed_size_list(lists.type):
        raise ValueError(f"give fixed-size lists of numbers, not {whole.type}")
    values = lists.flatten()
    if lists.null_count + values.null_count > 0:
        raise ValueError("there are nulls in it")
    flat: NDArray[np.generic] = values.to_numpy(zero_copy_only=False)
    return flat.reshape(len(lists), lists.type.list_size)


def _fits(found: NDArray[np.generic], shape: tuple[int | None, ...]) -> bool:
    return found.ndim == len(shape) and all(
        given > 0 and wanted in (None, given)
        for wanted, given in zip(shape, found.shape, strict=True)
    )


def _misfit(
    name: str, found: NDArray[np.generic], shape: tuple[int | None, ...], numbers: str
) -> InvalidRequestError:
    spelt = ", ".join("any" if each is None else str(each) for each in shape)
    return InvalidRequestError(
        f"{name} has shape {found.shape} and type {found.dtype}; give an array of shape ({spelt})"
        f" of {numbers}"
    )
