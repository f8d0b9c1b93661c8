"""Arguments of queries as people give them, as requests hold them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from lance_core.errors import InvalidRequestError
from lance_core.query.request import NamedExpression
from lance_core.query.request_checks import check_columns
from lance_core.scan.ordering import OrderBy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

_Item = TypeVar("_Item")


def column_names(columns: Sequence[str] | None) -> tuple[str, ...] | None:
    """Return names of columns; a text is no list of them."""
    if columns is None:
        return None
    if isinstance(columns, str):
        raise InvalidRequestError(f"columns is {columns!r}; give a list of names")
    names = _listed("columns", columns, "a list of names")
    check_columns(names)
    return names


def row_ids_of(row_ids: int | Sequence[int] | None) -> tuple[int, ...] | None:
    """Return ids of rows, of which one may be given alone."""
    if row_ids is None:
        return None
    listed = row_ids if isinstance(row_ids, Iterable) else (row_ids,)
    return _listed("row_ids", listed, "ids of rows")


def answer_columns(
    columns: Sequence[str] | Mapping[str, str] | None,
) -> tuple[str | NamedExpression, ...] | None:
    """Return the columns of an answer: names, or expressions by name."""
    if isinstance(columns, Mapping):
        return tuple(NamedExpression(name, text) for name, text in columns.items())
    return column_names(columns)


def orders_of(order_by: Sequence[str | OrderBy]) -> tuple[OrderBy, ...]:
    """Return what to order rows by; a name alone means ascending."""
    if isinstance(order_by, str | OrderBy):
        raise InvalidRequestError(f"order_by is {order_by!r}; give a list of columns")
    listed = _listed("order_by", order_by, "a list of columns")
    return tuple(OrderBy(each) if isinstance(each, str) else each for each in listed)


def _listed(name: str, given: Iterable[_Item], wanted: str) -> tuple[_Item, ...]:
    """Return items as a tuple; what has none is refused, arrays of no dimension too."""
    try:
        return tuple(given)
    except TypeError:
        raise InvalidRequestError(f"{name} is {given!r}; give {wanted}") from None


def as_numbers(indices: ArrayLike) -> NDArray[np.integer]:
    """Return an array of whole numbers, shape ``(n,)``."""
    try:
        numbers = np.asarray(indices)
    except ValueError as error:
        raise InvalidRequestError(f"indices are no list of row numbers: {error}") from error
    if numbers.ndim == 1 and numbers.size == 0:
        return np.empty(0, np.int64)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        raise InvalidRequestError(
            f"indices have type {numbers.dtype} and shape {numbers.shape}; give a list of row"
            " numbers"
        )
    return numbers


def as_vectors(vector: ArrayLike) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Return query vectors as float32, shape ``(d,)`` or ``(m, d)``."""
    try:
        with np.errstate(over="ignore"):  # what becomes infinite is refused with the rest
            vectors = np.asarray(vector, np.float32)
    except (ValueError, TypeError, OverflowError) as error:
        raise InvalidRequestError(f"the query vector is no array of numbers: {error}") from error
    if vectors.ndim not in {1, 2}:
        raise InvalidRequestError(
            f"the query has shape {vectors.shape}; give one vector or a list of vectors"
        )
    return vectors
