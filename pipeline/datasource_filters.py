"""Filters of Spark -> filters of a dataset, where both mean the same for every value.

Where they would not, Spark judges the rows itself: it is given the filter back. That is so for

* values that Spark sees otherwise than they are stored: halves, nanoseconds;
* types whose literals or order may differ: bytes, times of day, durations, lists, structs;
* literals that the column cannot hold, and names with a backtick.

Floats: to Spark NaN is equal to itself and above all numbers, whatever its sign, and zeros are
equal. In filters of a dataset -NaN is below all, so NaN is asked for by ``isnan``. Null is unknown
to both; a filter that Spark negates stays unknown where it was.
"""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass
from decimal import Decimal
from functools import singledispatchmethod
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from lance_core.errors import InvalidRequestError
from lance_core.expr.filter import parse_filter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Literal = bool | int | float | str | dt.date | Decimal

_COMPARISONS: dict[type[Filter], str] = {
    EqualTo: "=",
    GreaterThan: ">",
    GreaterThanOrEqual: ">=",
    LessThan: "<",
    LessThanOrEqual: "<=",
}
_TEXT_TESTS: dict[type[Filter], str] = {
    StringStartsWith: "starts_with",
    StringEndsWith: "ends_with",
    StringContains: "contains",
}
_LONGEST_LIST = 4000


@dataclass(frozen=True, slots=True)
class PushedFilter:
    """A filter of a dataset, and the values of its parameters."""

    text: str
    params: dict[str, object]


class _NotPushedError(Exception):
    """Spark has to judge this itself."""


def push_filters(
    filters: Sequence[Filter], schema: pa.Schema, visible: Sequence[str]
) -> tuple[PushedFilter | None, list[Filter]]:
    """Translate filters that all have to hold.

    Parameters
    ----------
    filters
        As Spark hands them over.
    schema
        Columns as they are stored.
    visible
        Those that Spark knows of.

    Returns
    -------
    tuple
        A filter for all that could be translated, None if none could; and the others.
    """
    parts: list[PushedFilter] = []
    others: list[Filter] = []
    for each in filters:
        try:
            parts.append(_translated(each, schema, visible, f"p{len(parts)}_"))
        except _NotPushedError:
            others.append(each)
    return joined_filters(parts), others


def joined_filters(parts: Sequence[PushedFilter]) -> PushedFilter | None:
    """Return a filter that holds where all do; None = there is none."""
    if len(parts) == 0:
        return None
    text = " AND ".join(f"({each.text})" for each in parts)
    params = {name: value for each in parts for name, value in each.params.items()}
    return PushedFilter(text, params)


def _translated(
    given: Filter, schema: pa.Schema, visible: Sequence[str], prefix: str
) -> PushedFilter:
    translator = _Translator(schema, visible, prefix)
    pushed = PushedFilter(translator.text(given), translator.params)
    try:
        parse_filter(pushed.text, schema, params=pushed.params)
    except InvalidRequestError:
        raise _NotPushedError from None
    return pushed


class _Translator:
    """Writes one filter; ``params`` are the values that it names."""

    def __init__(self, schema: pa.Schema, visible: Sequence[str], prefix: str) -> None:
        self._schema = schema
        self._visible = visible
        self._prefix = prefix
        self.params: dict[str, object] = {}

    @singledispatchmethod
    def text(self, given: Filter) -> str:
        """Return the filter as text."""
        raise _NotPushedError

    @text.register
    def _(self, given: Not) -> str:
        # One that never holds is no use to negate, and one that is never unknown would find nulls.
        child = given.child
        if isinstance(child, Not) or (isinstance(child, In) and None in child.value):
            raise _NotPushedError
        return f"NOT ({self.text(child)})"

    @text.register
    def _(self, given: IsNull) -> str:
        return f"{self._column(given.attribute)[0]} IS NULL"

    @text.register
    def _(self, given: IsNotNull) -> str:
        return f"{self._column(given.attribute)[0]} IS NOT NULL"

    @text.register
    def _(self, given: EqualNullSafe) -> str:
        name, kind = self._column(given.attribute)
        if given.value is None:
            return f"{name} IS NULL"
        if pa.types.is_floating(kind):
            raise _NotPushedError
        return f"{name} IS NOT DISTINCT FROM {self._value(given.value, kind)}"

    @text.register
    def _(self, given: In) -> str:
        return self._in([each for each in given.value if each is not None], given.attribute)

    @text.register(EqualTo)
    @text.register(GreaterThan)
    @text.register(GreaterThanOrEqual)
    @text.register(LessThan)
    @text.register(LessThanOrEqual)
    def _(
        self, given: EqualTo | GreaterThan | GreaterThanOrEqual | LessThan | LessThanOrEqual
    ) -> str:
        return self._compared(given.attribute, _COMPARISONS[type(given)], given.value)

    @text.register(StringStartsWith)
    @text.register(StringEndsWith)
    @text.register(StringContains)
    def _(self, given: StringStartsWith | StringEndsWith | StringContains) -> str:
        name, kind = self._column(given.attribute)
        if not _is_text(kind):
            raise _NotPushedError
        return f"{_TEXT_TESTS[type(given)]}({name}, {self._value(given.value, kind)})"

    def _in(self, values: Sequence[object], attribute: tuple[str, ...]) -> str:
        name, kind = self._column(attribute)
        if len(values) == 0 or len(values) > _LONGEST_LIST:
            raise _NotPushedError
        checked = [_literal(each, kind) for each in values]
        if any(isinstance(each, float) and math.isnan(each) for each in checked):
            raise _NotPushedError
        return f"{name} IN {self._param(checked)}"

    def _compared(self, attribute: tuple[str, ...], operator: str, value: object) -> str:
        name, kind = self._column(attribute)
        if not pa.types.is_floating(kind):
            if pa.types.is_boolean(kind) and operator != "=":
                raise _NotPushedError
            return f"{name} {operator} {self._value(value, kind)}"
        number = _literal(value, kind)
        if not isinstance(number, float):
            raise _NotPushedError
        if math.isnan(number):
            return _compared_with_nan(name, operator)
        compared = f"{name} {operator} {self._param(number)}"
        if operator in (">", ">="):
            return f"{compared} OR isnan({name})"
        return f"{compared} AND NOT isnan({name})"

    def _column(self, attribute: tuple[str, ...]) -> tuple[str, pa.DataType]:
        """Return a column, or a part of a struct, as filters name it, and its type."""
        if attribute[0] not in self._visible or any("`" in name for name in attribute):
            raise _NotPushedError
        kind: pa.DataType = pa.struct(list(self._schema))
        for name in attribute:
            if not pa.types.is_struct(kind) or kind.get_field_index(name) < 0:
                raise _NotPushedError
            kind = kind.field(name).type
        return ".".join(f"`{name}`" for name in attribute), kind

    def _value(self, value: object, kind: pa.DataType) -> str:
        return self._param(_literal(value, kind))

    def _param(self, value: object) -> str:
        name = f"{self._prefix}{len(self.params)}"
        self.params[name] = value
        return f"${name}"


def _compared_with_nan(name: str, operator: str) -> str:
    """Compare with what Spark takes for the greatest number."""
    if operator in ("=", ">="):
        return f"isnan({name})"
    if operator == "<":
        return f"NOT isnan({name})"
    if operator == "<=":
        return f"{name} IS NOT NULL"
    raise _NotPushedError


def _literal(value: object, kind: pa.DataType) -> Literal:
    """Return a literal of Spark as one of a column; it is refused if the column cannot hold it."""
    for holds, convert in _LITERALS:
        if holds(kind):
            return convert(value, kind)
    raise _NotPushedError


def _truth(value: object, kind: pa.DataType) -> bool:
    del kind
    if not isinstance(value, bool):
        raise _NotPushedError
    return value


def _whole(value: object, kind: pa.DataType) -> int:
    if isinstance(value, Decimal) and value == value.to_integral_value():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise _NotPushedError
    bits, is_signed = kind.bit_width, pa.types.is_signed_integer(kind)
    least, most = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if is_signed else (0, 2**bits - 1)
    if not least <= value <= most:
        raise _NotPushedError
    return value


def _float(value: object, kind: pa.DataType) -> float:
    if pa.types.is_float16(kind) or not isinstance(value, float):
        raise _NotPushedError
    return value


def _text(value: object, kind: pa.DataType) -> str:
    del kind
    if not isinstance(value, str):
        raise _NotPushedError
    return value


def _decimal(value: object, kind: pa.DataType) -> Decimal:
    if not isinstance(value, Decimal) or kind.scale < 0 or not value.is_finite():
        raise _NotPushedError
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int) or -exponent > kind.scale:
        raise _NotPushedError
    return value


def _date(value: object, kind: pa.DataType) -> dt.date:
    del kind
    if not isinstance(value, dt.date) or isinstance(value, dt.datetime):
        raise _NotPushedError
    return value


def _instant(value: object, kind: pa.DataType) -> dt.datetime:
    if kind.unit == "ns" or not isinstance(value, dt.datetime):
        raise _NotPushedError
    if (value.tzinfo is None) is not (kind.tz is None):
        raise _NotPushedError
    return value


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


_LITERALS: tuple[
    tuple[Callable[[pa.DataType], bool], Callable[[object, pa.DataType], Literal]], ...
] = (
    (pa.types.is_boolean, _truth),
    (pa.types.is_integer, _whole),
    (pa.types.is_floating, _float),
    (_is_text, _text),
    (pa.types.is_decimal, _decimal),
    (pa.types.is_date, _date),
    (pa.types.is_timestamp, _instant),
)
