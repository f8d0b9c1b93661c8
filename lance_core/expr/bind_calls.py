"""Binding of functions."""

from __future__ import annotations

import difflib
import re
import uuid
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from lance_core.errors import InvalidRequestError
from lance_core.expr.coerce import converted, item_of, mismatch, together, told
from lance_core.expr.folding import folded
from lance_core.expr.foreign import told_of
from lance_core.expr.functions.random_numbers import RANDOM
from lance_core.expr.functions.registry import FUNCTIONS
from lance_core.expr.functions.rounding import rounding
from lance_core.expr.functions.times import EPOCH
from lance_core.expr.given import given_of
from lance_core.expr.kinds import is_list, is_text
from lance_core.expr.places import place_of
from lance_core.expr.tokens import fail
from lance_core.expr.tree import Call, Cast, Items, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lance_core.expr.bind import Binder
    from lance_core.expr.functions.signature import Function
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
_LONGEST_NAME = 40
_NEAR = 0.75
"""Likeness of a name that may be meant: trim is as near to btrim, count not to concat."""
_STAMP = re.compile(
    r"Timestamp\((Second|Millisecond|Microsecond|Nanosecond|s|ms|[uµ]s|ns)"
    r"(?:, ?(?:None|Some\(\"([^\"]+)\"\)))?\)"
)
_CLOCK = re.compile(
    r"(Time32|Time64|Duration)\((Second|Millisecond|Microsecond|Nanosecond|s|ms|[uµ]s|ns)\)"
)
_CLOCKS = {"Time32": pa.time32, "Time64": pa.time64, "Duration": pa.duration}
_STAMP_UNITS = {
    "µs": "us",
    "Second": "s",
    "Millisecond": "ms",
    "Microsecond": "us",
    "Nanosecond": "ns",
}
_DECIMAL = re.compile(r"Decimal(128|256)\(([0-9]{1,2}), ?([0-9]{1,2})\)")


def call(binder: Binder, node: exp.Anonymous) -> Node:
    """Bind a function of values."""
    place = place_of(node)
    name = str(node.name).lower()
    if name not in FUNCTIONS and name not in _FORMS:
        raise _unknown(name, place)
    arguments = [_argument(binder, each) for each in node.expressions]
    if name in _FORMS:
        return _FORMS[name](binder, arguments, place)
    function = _function(name, arguments)
    types = function.accept([each.type for each in arguments])
    if types is None:
        given = ", ".join(str(each.type) for each in arguments)
        raise mismatch(place, f"{name}{function.usage} is not defined for ({given})")
    taken = tuple(converted(each, kind) for each, kind in zip(arguments, types, strict=True))
    made = Call(function, taken, function.result([each.type for each in taken]), place)
    return made if name == "regexp_match" else folded(made, taken)


def _function(name: str, arguments: Sequence[Node]) -> Function:
    """Return a function; the types of some results depend on a literal."""
    if name == "round" and all(isinstance(each, Literal) for each in arguments[1:]):
        digits = [each.value.as_py() for each in arguments[1:] if isinstance(each, Literal)]
        return rounding(digits[0] if len(digits) > 0 and isinstance(digits[0], int) else 0)
    unit = arguments[0] if name == "date_part" and len(arguments) > 0 else None
    if isinstance(unit, Literal) and str(unit.value).lower() == "epoch":
        return EPOCH
    return FUNCTIONS[name]


def _argument(binder: Binder, node: exp.Expr) -> Node:
    """Bind an argument, of which a parameter that is a list may be one, and ``[]``."""
    if isinstance(node, exp.Array) and len(node.expressions) == 0:
        return Literal(pa.scalar([], pa.list_(pa.null())), place_of(node))
    value = given_of(binder.tokens, node)
    if not isinstance(value, pa.Array):
        return binder.inside(node)
    return Literal(pa.ListArray.from_arrays([0, len(value)], value)[0], place_of(node))


def _unknown(name: str, place: int) -> InvalidRequestError:
    names = sorted((*FUNCTIONS, *_FORMS))
    told = told_of(name)
    if told is not None:
        return InvalidRequestError(f"the filter at character {place}: {told}")
    close = difflib.get_close_matches(name[:_LONGEST_NAME], names, n=1, cutoff=_NEAR)
    hint = f"is {close[0]} meant?" if len(close) > 0 else f"known are {', '.join(names)}"
    return InvalidRequestError(
        f"the filter at character {place}: unknown function {name[:100]}; {hint}"
    )


def _item(binder: Binder, arguments: Sequence[Node], place: int) -> Node:  # a form
    child, index = _two(arguments, place, "array_element(list, position)")
    if not is_list(child.type):
        raise mismatch(place, f"{told(child)} is no list")
    return item_of(child, index, place)


def _two(arguments: Sequence[Node], place: int, usage: str) -> Sequence[Node]:
    if len(arguments) != 2:  # noqa: PLR2004  # as the usage says
        raise mismatch(place, f"{usage} is meant")
    return arguments


def _list(binder: Binder, arguments: Sequence[Node], place: int) -> Node:  # a form
    if len(arguments) == 0:
        return Literal(pa.scalar([], pa.list_(pa.null())), place)
    children = tuple(together(arguments, place))
    return folded(Items(children, pa.list_(children[0].type), place), children)


def _part(binder: Binder, arguments: Sequence[Node], place: int) -> Node:
    child, name = _two(arguments, place, "get_field(struct, 'part')")
    return binder.names.part(
        child, _text_of(name, "the name of a part between single quotes"), place
    )


def _text_of(node: Node, expected: str) -> str:
    if not isinstance(node, Literal) or not is_text(node.type):
        fail(node.place, expected, told(node))
    return str(node.value.as_py())


def _arrow_cast(binder: Binder, arguments: Sequence[Node], place: int) -> Node:
    child, name = _two(arguments, place, "arrow_cast(value, 'Type')")
    expected = "a type of Arrow, such as 'Int32' or 'Timestamp(Second, None)'"
    kind = _arrow_type(_text_of(name, expected))
    if kind is None:
        fail(name.place, expected, told(name))
    if pa.types.is_date(child.type) and pa.types.is_timestamp(kind) and kind.tz is not None:
        child = converted(child, pa.timestamp(kind.unit))  # midnight there; compared, it is UTC's
    return folded(Cast(child, kind, place), (child,))


def _arrow_type(name: str) -> pa.DataType | None:
    stamp, decimal, clock = (each.fullmatch(name) for each in (_STAMP, _DECIMAL, _CLOCK))
    if stamp is not None:
        return pa.timestamp(_STAMP_UNITS.get(stamp[1], stamp[1]), stamp[2])
    if decimal is not None:
        made = pa.decimal128 if decimal[1] == "128" else pa.decimal256
        try:
            return made(int(decimal[2]), int(decimal[3]))
        except ValueError:
            return None
    if clock is not None:
        try:
            return _CLOCKS[clock[1]](_STAMP_UNITS.get(clock[2], clock[2]))
        except ValueError:  # short times are of seconds, long ones of less
            return None
    return _ARROW_TYPES.get(name)


def now(binder: Binder, arguments: Sequence[Node], place: int) -> Node:
    """Bind ``now()``: the time at which the filter is read, part of its text from then on."""
    if len(arguments) > 0:
        raise mismatch(place, "now takes no arguments")
    moment = binder.now
    binder.tokens.words.append(f"/* {moment} */")
    return Literal(pa.scalar(moment, pa.timestamp("us", "UTC")), place)


def today(binder: Binder, arguments: Sequence[Node], place: int) -> Node:
    """Bind ``current_date``: the day, in UTC, on which the filter is read."""
    if len(arguments) > 0:
        raise mismatch(place, "current_date takes no arguments")
    day = binder.now.date()
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
