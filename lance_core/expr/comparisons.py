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
_SHOWN_CHARACTERS = 100

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


class LiteralSet:
    """The literals of a list, made an array once for each type that they are looked for in.

    Parameters
    ----------
    literals
        At least one; NULL may be among them.
    """

    def __init__(self, literals: Sequence[Literal]) -> None:
        self.has_null = any(each is None for each in literals)
        self._given = [each for each in literals if each is not None]
        self._arrays: dict[pa.DataType, pa.Array] = {}

    def array(self, name: str, kind: pa.DataType) -> pa.Array:
        """Return the literals that a column may hold, of the type that it is compared as.

        Parameters
        ----------
        name, kind
            Of the column, without extension and dictionary.

        Raises
        ------
        TypeMismatchError
            A literal is of another kind than the column.
        """
        found = self._arrays.get(kind)
        if found is None:
            found = self._arrays[kind] = _value_set(name, kind, self._given)
        return found


def is_in(name: str, column: pa.Array, literals: LiteralSet) -> pa.Array:
    """Tell for each value whether it is one of the literals.

    Parameters, result and errors as `compare`; a value that is none of them is unknown if NULL is
    among them.
    """
    column = _plain(column)
    value_set = literals.array(name, column.type)
    with _told_mismatch(name, column.type, None):
        column = _widened(column)
        found = pc.is_in(column, value_set=value_set)
    is_known = pc.is_valid(column)
    if literals.has_null:
        is_known = pc.and_(is_known, found)
    return pc.if_else(is_known, found, pa.scalar(None, pa.bool_()))


def _value_set(name: str, kind: pa.DataType, given: Sequence[Literal]) -> pa.Array:
    if _is_exact(kind):
        given = [each for each in given if not _is_number(each) or _fits(each, kind)]
    values = _converted_together(kind, given)
    if values is None:
        values = _converted_singly(name, kind, given)
    if pa.types.is_floating(kind) and pc.any(pc.equal(values, 0)).as_py():
        values = pa.concat_arrays([values, pa.array([0.0, -0.0], values.type)])
    return values


def _converted_together(kind: pa.DataType, given: Sequence[Literal]) -> pa.Array | None:
    """Return literals of one kind as a column has them; None where one by one has to be looked at.

    Ten thousands of literals would else take longer than to look for them in millions of rows.
    """
    kinds = set(map(type, given))
    try:
        if kinds == {int} and pa.types.is_integer(kind):
            return pa.array(given, kind)
        if kinds <= {int, Decimal} and _is_wide_float(kind):
            return pa.array([_nearest_float(each) for each in given if _is_number(each)], kind)
        if kinds == {str} and (_is_text(kind) or pa.types.is_temporal(kind)):
            return _from_texts(kind, pa.array(given))
    except pa.ArrowException:  # looked at one by one, the literal at fault is told
        return None
    return None


def _from_texts(kind: pa.DataType, texts: pa.Array | pa.Scalar) -> pa.Array | pa.Scalar:
    """Return texts as texts, dates and times; those without a zone are of UTC."""
    if pa.types.is_timestamp(kind):
        texts = texts.cast(pa.timestamp(kind.unit))
    return texts.cast(kind)


def _converted_singly(name: str, kind: pa.DataType, given: Sequence[Literal]) -> pa.Array:
    scalars = []
    for each in given:
        with _told_mismatch(name, kind, each):
            scalars.append(_converted(kind, each))
    return pa.array(scalars, pa.float32() if pa.types.is_float16(kind) else kind)


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


def _units(literal: Number, kind: pa.DataType) -> Fraction | int:
    """Return how many of the smallest steps of an exact type a number is."""
    if isinstance(literal, int) and not pa.types.is_decimal(kind):
        return literal  # fractions take ten times as long
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
            f"column {name} is {kind} and cannot be compared with {shown(literal)}; {_advice(kind)}"
        ) from None


def shown(literal: object) -> str:
    """Return how a literal or a token is told to a reader: what is long only begins."""
    text = literal[: _SHOWN_CHARACTERS + 1] if isinstance(literal, str) else literal
    told = repr(text)
    return told if len(told) <= _SHOWN_CHARACTERS else f"{told[:_SHOWN_CHARACTERS]}..."


def _converted(kind: pa.DataType, literal: Literal) -> pa.Scalar:
    is_text, is_truth = isinstance(literal, str), isinstance(literal, bool)
    if pa.types.is_boolean(kind) == is_truth and not pa.types.is_nested(kind):
        if _is_number(literal) and _is_exact(kind):
            return _exact_scalar(kind, literal)
        if _is_number(literal) and pa.types.is_floating(kind):
            return _float_scalar(kind, literal)
        if is_text and (_is_text(kind) or pa.types.is_temporal(kind)):
            return _from_texts(kind, pa.scalar(literal))
        if is_truth:
            return pa.scalar(literal, kind)
    raise TypeError(literal)


def _float_scalar(kind: pa.DataType, literal: Number) -> pa.Scalar:
    """Return a number as near as a type of floats has it."""
    value = _nearest_float(literal)
    if not pa.types.is_float16(kind):
        return pa.scalar(value, kind)
    if _LARGEST_HALF < abs(value) < math.inf:  # equal to infinity if rounded; pylance refuses too
        raise OverflowError(literal)
    return pa.scalar(float(np.float16(value)), pa.float32())


def _nearest_float(literal: Number) -> float:
    return float(Decimal(literal))  # whole numbers alone would not become infinite


def _is_wide_float(kind: pa.DataType) -> bool:
    return bool(pa.types.is_float32(kind) or pa.types.is_float64(kind))


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
