"""Binding of functions."""

from __future__ import annotations

import datetime as dt
import difflib
import re
import uuid
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_core.errors import InvalidRequestError
from lance_core.expr.coerce import converted, mismatch, together, told
from lance_core.expr.folding import folded
from lance_core.expr.functions.registry import FUNCTIONS
from lance_core.expr.functions.random_numbers import RANDOM
from lance_core.expr.kinds import is_list, is_text
from lance_core.expr.places import place_of
from lance_core.expr.tokens import fail
from lance_core.expr.tree import Call, Cast, Item, Items, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sqlglot import exp

    from lance_core.expr.bind import Binder
    from lance_core.expr.tree import Node

    Form = Callable[[Binder, Sequence[Node], int], Node]
    """Binds a function that is more than its values."""

_ARROW_TYPES: Mapping[str, pa.DataType] = {
    **{
        name: getattr(pa, name.lower())()
        for name in ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64")
    },
    "Float16": pa.float16(),
    "Float32": pa.float32(),
    "Float64": pa.float64(),
    "Utf8": pa.string(),
    "LargeUtf8": pa.large_string(),
    "Binary": pa.binary(),
    "LargeBinary": pa.large_binary(),
    "Boolean": pa.bool_(),
    "Date32": pa.date32(),
    "Date64": pa.date64(),
}
_STAMP = re.compile(
    r"Timestamp\((Second|Millisecond|Microsecond|Nanosecond|s|ms|us|ns)(?:, ?(?:None|Some\(\"([^\"]+)\"\)))?\)"
)
_STAMP_UNITS = {"Second": "s", "Millisecond": "ms", "Microsecond": "us", "Nanosecond": "ns"}
_DECIMAL = re.compile(r"Decimal(128|256)\(([0-9]{1,2}), ?([0-9]{1,2})\)")


def call(binder: Binder, node: exp.Anonymous) -> Node:
    """Bind a function of values."""
    place = place_of(node)
    name = str(node.name).lower()
    form = _FORMS.get(name)
    function = FUNCTIONS.get(name)
    if form is None and function is None:
        names = [*FUNCTIONS, *_FORMS]
        close = difflib.get_close_matches(name, names, n=1) if len(name) < 40 else []  # noqa: PLR2004
        hint = (
            f"; is {close[0]} meant?"
            if len(close) > 0
            else f"; known are {', '.join(sorted(names))}"
        )
        raise InvalidRequestError(
            f"the filter at character {place}: unknown function {name[:100]}{hint}"
        )
    arguments = [binder.operand(each) for each in node.expressions]
    if form is not None:
        return form(binder, arguments, place)
    assert function is not None
    types = function.accept([each.type for each in arguments])
    if types is None:
        given = ", ".join(str(each.type) for each in arguments)
        raise mismatch(place, f"{name}{function.usage} is not defined for ({given})")
    taken = tuple(converted(each, kind) for each, kind in zip(arguments, types, strict=True))
    made = Call(function, taken, function.result([each.type for each in taken]), place)
    return folded(made, taken)


def _item(binder: Binder, arguments: Sequence[Node], place: int) -> Node:  # noqa: ARG001  # a form
    if len(arguments) != 2 or not is_list(arguments[0].type):  # noqa: PLR2004
        raise mismatch(place, "array_element(list, position) is meant")
    child, index = arguments
    if not pa.types.is_integer(index.type):
        raise mismatch(index.place, f"{told(index)} is no position; the first item is 1")
    return Item(child, converted(index, pa.int64()), child.type.value_type, place)


def _list(binder: Binder, arguments: Sequence[Node], place: int) -> Node:  # noqa: ARG001  # a form
    if len(arguments) == 0:
        fail(place, "make_array of at least one value", "none")
    children = tuple(together(arguments, place))
    return folded(Items(children, pa.list_(children[0].type), place), children)


def _part(binder: Binder, arguments: Sequence[Node], place: int) -> Node:
    if (
        len(arguments) != 2
        or not isinstance(arguments[1], Literal)
        or not is_text(arguments[1].type)
    ):  # noqa: PLR2004
        raise mismatch(place, "get_field(struct, 'part') is meant")
    return binder.names.part(arguments[0], arguments[1].value.as_py(), place)


def _arrow_cast(binder: Binder, arguments: Sequence[Node], place: int) -> Node:  # noqa: ARG001
    if (
        len(arguments) != 2
        or not isinstance(arguments[1], Literal)
        or not is_text(arguments[1].type)
    ):  # noqa: PLR2004
        raise mismatch(place, "arrow_cast(value, 'Type') is meant")
    kind = _arrow_type(arguments[1].value.as_py())
    if kind is None:
        fail(
            arguments[1].place,
            "a type of Arrow, such as 'Int32' or 'Timestamp(Second, None)'",
            told(arguments[1]),
        )
    return folded(Cast(arguments[0], kind, place), (arguments[0],))


def _arrow_type(name: str) -> pa.DataType | None:
    stamp, decimal = _STAMP.fullmatch(name), _DECIMAL.fullmatch(name)
    if stamp is not None:
        return pa.timestamp(_STAMP_UNITS.get(stamp[1], stamp[1]), stamp[2])
    if decimal is not None:
        made = pa.decimal128 if decimal[1] == "128" else pa.decimal256
        try:
            return made(int(decimal[2]), int(decimal[3]))
        except ValueError:
            return None
    return _ARROW_TYPES.get(name)


def now(binder: Binder, arguments: Sequence[Node], place: int) -> Node:
    """Bind ``now()``: the time at which the filter is read, part of its text from then on."""
    if len(arguments) > 0:
        raise mismatch(place, "now takes no arguments")
    moment = dt.datetime.now(dt.UTC)
    binder.tokens.words.append(f"/* {moment} */")
    return Literal(pa.scalar(moment, pa.timestamp("us", "UTC")), place)


def today(binder: Binder, arguments: Sequence[Node], place: int) -> Node:
    """Bind ``current_date``: the day, in UTC, on which the filter is read."""
    if len(arguments) > 0:
        raise mismatch(place, "current_date takes no arguments")
    day = dt.datetime.now(dt.UTC).date()
    binder.tokens.words.append(f"/* {day} */")
    return Literal(pa.scalar(day, pa.date32()), place)


def _random(binder: Binder, arguments: Sequence[Node], place: int) -> Node:
    if len(arguments) > 0:
        raise mismatch(place, "random takes no arguments")
    binder.tokens.words.append(f"/* {uuid.uuid4()} */")  # no two have the same rows
    return Call(RANDOM, (), pa.float64(), place)


_FORMS: Mapping[str, Form] = {
    "array_element": _item,
    "make_array": _list,
    "get_field": _part,
    "arrow_cast": _arrow_cast,
    "now": now,
    "current_timestamp": now,
    "current_date": today,
    "random": _random,
}
