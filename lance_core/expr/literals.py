"""Plain literals as the type of the column that they are compared with."""

from __future__ import annotations

import math
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_core.errors import TypeMismatchError
from lance_core.expr.convert import convert
from lance_core.expr.kinds import is_binary, is_list, is_moment, is_number, is_text
from lance_core.expr.limits import python_value, shown
from lance_core.expr.times import is_finer

if TYPE_CHECKING:
    from lance_core.expr.convert import Values

_LARGEST_HALF = 65504
_MOST_DIGITS = 76


UNFIT = (pa.ArrowException, ValueError, OverflowError, InvalidOperation, TypeMismatchError)
"""Errors for values that a column cannot hold."""


def fitted(name: str, value: pa.Scalar, kind: pa.DataType, *, is_given: bool = False) -> pa.Scalar:
    """Return a plain literal as the type of a column.

    Parameters
    ----------
    name, kind
        Of the column.
    value
        Boolean, int64, uint64, float64, string, binary or null.
    is_given
        See `fitted_values`.

    Raises
    ------
    TypeMismatchError
        The column cannot hold it.

    Notes
    -----
    Nothing is rounded but floats: as pylance 14.0.2 has it, except that it refuses texts for dates
    and times.
    """
    try:
        return fitted_values(value, kind, is_given=is_given)
    except UNFIT:
        raise TypeMismatchError(
            f"column {name} is {kind} and cannot be compared with {shown(python_value(value))};"
            f" {advice(kind)}"
        ) from None


def fitted_values(values: Values, kind: pa.DataType, *, is_given: bool = False) -> Values:
    """Return plain literals of one type as the type of a column.

    Parameters
    ----------
    values, kind
        See `fitted`.
    is_given
        They are values of parameters: decimals may be texts or floats, meant as they are written.

    Raises
    ------
    ValueError, OverflowError, InvalidOperation, pa.ArrowException, TypeMismatchError
        The column cannot hold one of them: one of `UNFIT`.
    """
    given = values.type
    if pa.types.is_null(given):
        return convert(values, kind)
    if is_given and pa.types.is_decimal(kind) and (pa.types.is_floating(given) or is_text(given)):
        return _decimals(values, kind)
    if _is_taken(given, kind):
        if pa.types.is_float16(kind):
            return _half(values)
        if is_text(given) and (pa.types.is_timestamp(kind) or pa.types.is_time(kind)):
            _require_unit(values, kind)
        if pa.types.is_fixed_size_binary(kind) or pa.types.is_date(kind):
            return values.cast(kind)  # as it is, nothing cut
        return convert(values, kind)
    raise ValueError(kind)


def _is_taken(given: pa.DataType, kind: pa.DataType) -> bool:
    """Whether literals of a type may be compared with a column of another."""
    if pa.types.is_integer(given):
        return is_number(kind)
    if is_text(given):
        return is_text(kind) or is_moment(kind) or bool(pa.types.is_time(kind))
    of_one_kind = (pa.types.is_boolean, pa.types.is_floating, is_binary, is_list)
    return any(each(given) and each(kind) for each in of_one_kind)


def _decimals(values: Values, kind: pa.DataType) -> Values:
    """Return numbers and texts as decimals with exactly the digits that they are written with."""
    if isinstance(values, pa.Scalar):
        return _decimals(pa.array([values], values.type), kind)[0]
    made = [None if each is None else Decimal(str(each)) for each in values.to_pylist()]
    for each in made:
        if each is not None and (not each.is_finite() or abs(each.adjusted()) > _MOST_DIGITS):
            raise ValueError(each)
    return pa.array(made, kind)


def _require_unit(texts: Values, kind: pa.DataType) -> None:
    """Refuse texts of times with more digits than a column has."""
    texts = pa.array([texts], texts.type) if isinstance(texts, pa.Scalar) else texts
    if is_finer(texts, kind.unit):
        raise ValueError("digits")


def with_all_digits(values: Values, kind: pa.DataType) -> Values:
    """Return texts as times, if they have more digits than a column of times has; else as given."""
    if not is_text(values.type) or not (pa.types.is_timestamp(kind) or pa.types.is_time(kind)):
        return values
    texts = pa.array([values], values.type) if isinstance(values, pa.Scalar) else values
    if not is_finer(texts, kind.unit):
        return values
    make = pa.timestamp if pa.types.is_timestamp(kind) else pa.time64
    try:
        return convert(values, make("ns" if is_finer(texts, "us") else "us"))
    except TypeMismatchError:  # told when it becomes the type of the column
        return values


def _half(values: Values) -> Values:
    floats = values.cast(pa.float64())
    held = [floats.as_py()] if isinstance(floats, pa.Scalar) else floats
    size = np.abs(np.asarray(held, np.float64))
    if bool(np.any((size > _LARGEST_HALF) & (size < math.inf))):
        raise OverflowError(size)  # equal to infinity if rounded; pylance refuses too
    return floats.cast(pa.float32()).cast(pa.float16())


def with_both_zeros(values: pa.Array) -> pa.Array:
    """Return the values of a list; if one is a floating zero, both are."""
    if not pa.types.is_floating(values.type):
        return values
    wide = values.cast(pa.float32()) if pa.types.is_float16(values.type) else values
    others = values.filter(pc.not_equal(wide, 0))
    if len(others) == len(values):
        return values
    zeros = np.array([0.0, -0.0], values.type.to_pandas_dtype())
    return pa.concat_arrays([others, pa.array(zeros)])


def advice(kind: pa.DataType) -> str:
    """Say what may be written for a type."""
    if pa.types.is_integer(kind):
        limits = np.iinfo(kind.to_pandas_dtype())
        return f"write a number without a point from {limits.min} to {limits.max}"
    if pa.types.is_decimal(kind):
        return (
            f"write a number without a point, or decimal({kind.precision},{kind.scale}) '1.5';"
            f" a parameter may have {kind.scale} digits behind the point"
        )
    if pa.types.is_float16(kind):
        return f"write a number from -{_LARGEST_HALF} to {_LARGEST_HALF}"
    if pa.types.is_fixed_size_binary(kind):
        width = kind.byte_width
        return f"write {width} bytes, each as two hexadecimal digits: X'05{'..' * (width > 1)}'"
    found = (told for is_kind, told in _ADVICE if is_kind(kind))
    return next(found, "ask only whether it IS NULL")


_TIMES = "write a date or time between single quotes, such as '2024-01-31 12:00:00'"
_ADVICE = (
    (pa.types.is_floating, "write a number"),
    (is_text, "write a text between single quotes"),
    (pa.types.is_boolean, "write TRUE or FALSE"),
    (is_moment, _TIMES),
    (pa.types.is_time, "write a time of the day between single quotes, such as '12:00:00'"),
    (pa.types.is_duration, "write a duration, such as arrow_cast(90, 'Duration(Second)')"),
    (is_binary, "write bytes, such as X'05FF'"),
    (is_list, "write a list, such as [1, 2]"),
)
