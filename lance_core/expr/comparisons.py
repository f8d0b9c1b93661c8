"""Columns against literals, whose types need not be those of the columns.

Floats are in one order, as the reference has them: negative NaN, numbers, NaN. Both zeros are equal
to a literal zero.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, TypeGuard

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_core.errors import TypeMismatchError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    Number = int | Decimal
    Literal = Number | str | bool | None
    """None is NULL; numbers with a point or exponent are decimals, until a column says more."""

_LARGEST_HALF = 65504

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
    with _told_mismatch(name, column.type, literal):
        if _is_exact(column.type) and _is_number(literal):
            return _compare_exact(column, operator, literal)
        scalar = _converted(column.type, literal)
        column = _widened(column)
        compared = _COMPARE[operator](column, scalar)
        if pa.types.is_floating(column.type) and operator not in {"=", "!="}:
            return _with_nans(column, operator, compared)
        return compared


def is_in(name: str, column: pa.Array, literals: Sequence[Literal]) -> pa.Array:
    """Tell for each value whether it is one of the literals.

    Parameters, result and errors as `compare`; a value that is none of them is unknown if NULL is
    among them.
    """
    column = _plain(column)
    kind, column = column.type, _widened(column)
    value_set = _value_set(name, kind, column.type, literals)
    with _told_mismatch(name, kind, list(literals)):
        found = pc.is_in(column, value_set=value_set)
    is_known = pc.is_valid(column)
    if any(each is None for each in literals):
        is_known = pc.and_(is_known, found)
    return pc.if_else(is_known, found, pa.scalar(None, pa.bool_()))


def _value_set(
    name: str, kind: pa.DataType, plain: pa.DataType, literals: Sequence[Literal]
) -> pa.Array:
    given = [each for each in literals if each is not None]
    if _is_exact(plain):
        given = [each for each in given if not _is_number(each) or _fits(each, plain)]
    scalars = []
    for each in given:
        with _told_mismatch(name, kind, each):
            scalars.append(_converted(kind, each))
    if pa.types.is_floating(plain) and any(each.as_py() == 0 for each in scalars):
        scalars += [pa.scalar(zero, plain) for zero in (0.0, -0.0)]
    return pa.array(scalars, plain)


def _plain(column: pa.Array) -> pa.Array:
    """Return the values of a column without extension or dictionary."""
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column


def _widened(column: pa.Array) -> pa.Array:
    """Return halves as floats, because Arrow does not compare them."""
    return column.cast(pa.float32()) if pa.types.is_float16(column.type) else column


def _is_number(literal: Literal) -> TypeGuard[Number]:
    return isinstance(literal, int | Decimal) and not isinstance(literal, bool)


def _with_nans(column: pa.Array, operator: str, compared: pa.Array) -> pa.Array:
    """Let NaN be above, and negative NaN below all numbers, where an order was asked for."""
    is_nan = pc.is_nan(column)
    if not pc.any(is_nan).as_py():
        return compared
    is_low = np.signbit(column.to_numpy(zero_copy_only=False))
    return pc.if_else(is_nan, pa.array(is_low == operator.startswith("<")), compared)


def _is_exact(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_decimal(kind))


def _compare_exact(column: pa.Array, operator: str, literal: Number) -> pa.Array:
    """Compare whole numbers or decimals with a number that need not be of their kind or size."""
    kind = column.type
    if _fits(literal, kind):
        return _COMPARE[operator](column, _exact_scalar(kind, literal))
    units = math.floor(_units(literal, kind))
    low, high = _bounds(kind)
    if operator in {"=", "!="}:
        answer = operator == "!="
    elif units < low:
        answer = operator.startswith(">")
    elif units > high:
        answer = operator.startswith("<")
    else:
        between = "<=" if operator.startswith("<") else ">"
        return _COMPARE[between](column, _scalar_of_units(kind, units))
    return pc.if_else(column.is_valid(), answer, pa.scalar(None, pa.bool_()))


def _fits(literal: Number, kind: pa.DataType) -> bool:
    low, high = _bounds(kind)
    units = _units(literal, kind)
    return units.denominator == 1 and low <= units <= high


def _units(literal: Number, kind: pa.DataType) -> Fraction:
    """Return how many of the smallest steps of an exact type a number is."""
    scale = kind.scale if pa.types.is_decimal(kind) else 0
    return Fraction(literal) * Fraction(10) ** scale


def _exact_scalar(kind: pa.DataType, literal: Number) -> pa.Scalar:
    return _scalar_of_units(kind, int(_units(literal, kind)))


def _scalar_of_units(kind: pa.DataType, units: int) -> pa.Scalar:
    if pa.types.is_decimal(kind):
        return pa.scalar(Decimal(f"{units}E{-kind.scale}"), kind)  # arithmetic would round
    return pa.scalar(units, kind)


def _bounds(kind: pa.DataType) -> tuple[int, int]:
    """Return the smallest and the largest value of an exact type, in its steps."""
    if pa.types.is_decimal(kind):
        largest = 10**kind.precision - 1
        return -largest, largest
    limits = np.iinfo(kind.to_pandas_dtype())
    return int(limits.min), int(limits.max)


@contextmanager
def _told_mismatch(name: str, kind: pa.DataType, literal: object) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        raise TypeMismatchError(
            f"column {name} is {kind} and cannot be compared with {literal!r}; {_advice(kind)}"
        ) from None


def _converted(kind: pa.DataType, literal: Literal) -> pa.Scalar:
    is_text, is_truth = isinstance(literal, str), isinstance(literal, bool)
    if pa.types.is_boolean(kind) == is_truth and not pa.types.is_nested(kind):
        if _is_number(literal) and _is_exact(kind):
            return _exact_scalar(kind, literal)
        if _is_number(literal) and pa.types.is_floating(kind):
            return _float_scalar(kind, literal)
        if is_text and pa.types.is_timestamp(kind):
            return pa.scalar(literal).cast(pa.timestamp(kind.unit)).cast(kind)
        if is_text and pa.types.is_temporal(kind):
            return pa.scalar(literal).cast(kind)
        if is_truth or (is_text and _is_text(kind)):
            return pa.scalar(literal, kind)
    raise TypeError(literal)


def _float_scalar(kind: pa.DataType, literal: Number) -> pa.Scalar:
    """Return a number as near as a type of floats has it."""
    value = float(Decimal(literal))
    if not pa.types.is_float16(kind):
        return pa.scalar(value, kind)
    if _LARGEST_HALF < abs(value) < math.inf:  # equal to infinity if rounded; pylance refuses too
        raise OverflowError(literal)
    return pa.scalar(float(np.float16(value)), pa.float32())


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
