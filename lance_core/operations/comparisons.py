"""Columns against literals, whose types need not be those of the columns."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING, TypeGuard

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_core.errors import TypeMismatchError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Number = int | Decimal
    Literal = Number | str | bool | None
    """None is NULL; numbers with a point or exponent are decimals, until a column says more."""

_COMPARE: Mapping[str, Callable[[pa.Array, pa.Scalar], pa.Array]] = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def compare(name: str, column: pa.Array, operator: str, literal: Literal) -> pa.Array:
    """Compare the values of a column with a literal.

    Parameters
    ----------
    name
        Of the column, for errors.
    column
        Shape ``(n,)``.
    operator
        One of ``=``, ``!=``, ``<``, ``<=``, ``>`` and ``>=``.
    literal
        A number may be compared with numbers of every type, a text with texts, dates and times.

    Returns
    -------
    pa.Array
        Booleans, shape ``(n,)``; null where the column or the literal is.

    Raises
    ------
    TypeMismatchError
        The literal is of another kind than the column.
    """
    if literal is None:
        return pa.nulls(len(column), pa.bool_())
    column = _plain(column)
    if pa.types.is_integer(column.type) and _is_number(literal):
        return _compare_whole(column, operator, literal)
    return _COMPARE[operator](column, _scalar(name, column.type, literal))


def is_in(name: str, column: pa.Array, literals: Sequence[Literal]) -> pa.Array:
    """Tell for each value whether it is one of the literals.

    Parameters, result and errors as `compare`; a value that is none of them is unknown if NULL is
    among them.
    """
    column = _plain(column)
    found = pc.is_in(column, value_set=_value_set(name, column.type, literals))
    is_known = pc.is_valid(column)
    if any(each is None for each in literals):
        is_known = pc.and_(is_known, found)
    return pc.if_else(is_known, found, pa.scalar(None, pa.bool_()))


def _value_set(name: str, kind: pa.DataType, literals: Sequence[Literal]) -> pa.Array:
    numbers: list[Number] = [each for each in literals if _is_number(each)]
    others = [each for each in literals if each is not None and not _is_number(each)]
    if pa.types.is_integer(kind):
        numbers = [int(each) for each in numbers if _fits(each, kind)]
    scalars = [_scalar(name, kind, each).as_py() for each in (*numbers, *others)]
    return pa.array(scalars, kind)


def _plain(column: pa.Array) -> pa.Array:
    """Return the values of a column without extension, dictionary or half precision."""
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column.cast(pa.float32()) if pa.types.is_float16(column.type) else column


def _is_number(literal: Literal) -> TypeGuard[Number]:
    return isinstance(literal, int | Decimal) and not isinstance(literal, bool)


def _compare_whole(column: pa.Array, operator: str, literal: Number) -> pa.Array:
    """Compare whole numbers with a number that need not be whole, nor of their size."""
    if _fits(literal, column.type):
        return _COMPARE[operator](column, pa.scalar(int(literal), column.type))
    floor = math.floor(literal)
    low, high = _bounds(column.type)
    if operator in {"=", "!="}:
        answer = operator == "!="
    elif floor < low:
        answer = operator.startswith(">")
    elif floor > high:
        answer = operator.startswith("<")
    else:
        between = "<=" if operator.startswith("<") else ">"
        return _COMPARE[between](column, pa.scalar(floor, column.type))
    return pc.if_else(column.is_valid(), answer, pa.scalar(None, pa.bool_()))


def _fits(literal: Number, kind: pa.DataType) -> bool:
    low, high = _bounds(kind)
    return literal == math.floor(literal) and low <= literal <= high


def _bounds(kind: pa.DataType) -> tuple[int, int]:
    limits = np.iinfo(kind.to_pandas_dtype())
    return int(limits.min), int(limits.max)


def _scalar(name: str, kind: pa.DataType, literal: Literal) -> pa.Scalar:
    try:
        return _converted(kind, literal)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        raise TypeMismatchError(
            f"column {name} is {kind} and cannot be compared with {literal!r}; {_advice(kind)}"
        ) from None


def _converted(kind: pa.DataType, literal: Literal) -> pa.Scalar:
    is_text, is_truth = isinstance(literal, str), isinstance(literal, bool)
    if pa.types.is_boolean(kind) == is_truth and not pa.types.is_nested(kind):
        if _is_number(literal) and pa.types.is_integer(kind):
            return pa.scalar(int(literal), kind)
        if _is_number(literal) and pa.types.is_floating(kind):
            return pa.scalar(float(literal), kind)
        if _is_number(literal) and pa.types.is_decimal(kind):
            return pa.scalar(Decimal(literal))
        if is_text and pa.types.is_timestamp(kind):
            return pa.scalar(literal).cast(pa.timestamp(kind.unit)).cast(kind)
        if is_text and pa.types.is_temporal(kind):
            return pa.scalar(literal).cast(kind)
        if is_truth or (is_text and _is_text(kind)):
            return pa.scalar(literal, kind)
    raise TypeError(literal)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _advice(kind: pa.DataType) -> str:
    if _is_text(kind):
        return "write a text between single quotes"
    if pa.types.is_boolean(kind):
        return "write TRUE or FALSE"
    if pa.types.is_temporal(kind):
        return "write a date or time between single quotes"
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "write a number"
    return "ask only whether it IS NULL"
