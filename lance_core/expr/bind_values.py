"""Binding of what has a value: columns, literals, operators, casts and functions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from lance_core.errors import TypeMismatchError
from lance_core.expr.arithmetic import operand_types, result_type
from lance_core.expr.bind_calls import now, today
from lance_core.expr.coerce import converted, item_of, mismatch, together, told
from lance_core.expr.evaluate import evaluate
from lance_core.expr.folding import folded
from lance_core.expr.given import given_of
from lance_core.expr.kinds import is_list, is_number, is_text
from lance_core.expr.limits import go_on, shown
from lance_core.expr.places import place_of
from lance_core.expr.tokens import fail
from lance_core.expr.tree import Arithmetic, Cast, Column, Items, Literal, Negative

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lance_core.expr.bind import Binder
    from lance_core.expr.tree import Node

OPERATORS: Mapping[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.DPipe: "||",
    exp.BitwiseLeftShift: "<<",
    exp.BitwiseRightShift: ">>",
}
"""Operators of sqlglot and how they are written."""

_LARGEST_INT64 = 2**63 - 1
_LARGEST_UINT64 = 2**64 - 1
_HEX = re.compile(r"(?:[0-9A-Fa-f]{2})*")
_INTEGERS = {
    exp.DType.TINYINT: pa.int8(),
    exp.DType.SMALLINT: pa.int16(),
    exp.DType.INT: pa.int32(),
    exp.DType.BIGINT: pa.int64(),
    exp.DType.UTINYINT: pa.uint8(),
    exp.DType.USMALLINT: pa.uint16(),
    exp.DType.UINT: pa.uint32(),
    exp.DType.UBIGINT: pa.uint64(),
}
_TYPES = {
    **_INTEGERS,
    exp.DType.FLOAT: pa.float32(),
    exp.DType.DOUBLE: pa.float64(),
    exp.DType.TEXT: pa.string(),
    exp.DType.BINARY: pa.binary(),
    exp.DType.BOOLEAN: pa.bool_(),
    exp.DType.DATE: pa.date32(),
}
_TIMES = {"current_timestamp": now, "current_date": today}
_UNITS = {0: "s", 3: "ms", 6: "us", 9: "ns"}
_MOST_DIGITS = 38


def column(binder: Binder, node: exp.Column | exp.Dot) -> Node:
    """Bind a path of names."""
    place = place_of(node)
    top: exp.Expr = node
    parts: list[exp.Expr] = []
    while isinstance(top, exp.Dot):
        parts.append(top.expression)
        top = top.this
    below = list(reversed(parts))
    if not isinstance(top, exp.Column):
        found = binder.operand(top)
        for each in below:
            found = binder.names.part(found, _name(each), place)
        return found
    names = [*top.parts, *below]
    if len(names) == 1 and not binder.names.has(top.name) and top.name.lower() in _TIMES:
        return _TIMES[top.name.lower()](binder, (), place)
    return binder.names.find(
        [(_name(each), bool(each.args.get("quoted"))) for each in names], place
    )


def _name(node: exp.Expr) -> str:
    if not isinstance(node, exp.Identifier):
        fail(place_of(node), "the name of a part", shown(node.name))
    return str(node.this)


def bracket(binder: Binder, node: exp.Bracket) -> Node:
    """Bind ``list[1]`` and ``struct['part']``."""
    child = binder.operand(node.this)
    place = place_of(node)
    if len(node.expressions) != 1:
        fail(place, "one position or name in [ ]", f"{len(node.expressions)} of them")
    index = binder.inside(node.expressions[0])
    if pa.types.is_struct(child.type):
        if not isinstance(index, Literal) or not is_text(index.type):
            fail(index.place, "the name of a part between single quotes", told(index))
        return binder.names.part(child, index.value.as_py(), place)
    if not is_list(child.type):
        raise mismatch(place, f"{told(child)} has no items; only lists and structs take [ ]")
    return item_of(child, index, place)


def items(binder: Binder, node: exp.Array) -> Node:
    """Bind ``[1, 2]``."""
    place = place_of(node)
    if len(node.expressions) == 0:
        fail(place, "at least one value in [ ]", "none")
    children = tuple(together([binder.inside(each) for each in node.expressions], place))
    made = Items(children, pa.list_(children[0].type), place)
    return folded(made, children)


def literal(binder: Binder, node: exp.Literal) -> Node:
    """Bind a number or a text."""
    place = place_of(node)
    if not node.is_string:
        return _number(node.name, place)
    if place - 1 in binder.tokens.double_quoted and binder.names.has(node.name):
        fail(
            place,
            "a text between single quotes or a column between backticks",
            f'"{node.name}"',
            f"write `{node.name}` for the column, '{node.name}' for the text",
        )
    return Literal(pa.scalar(node.name, pa.string()), place, is_plain=True)


def _number(text: str, place: int) -> Literal:
    """Return a number; whole ones that no column can hold become floats."""
    if text.isdigit() and len(text) <= len(str(_LARGEST_UINT64)):
        return _whole(int(text), place)
    return Literal(pa.scalar(float(text), pa.float64()), place, is_plain=True)


def _whole(number: int, place: int) -> Literal:
    if -_LARGEST_INT64 - 1 <= number <= _LARGEST_INT64:
        value = pa.scalar(number, pa.int64())
    elif 0 <= number <= _LARGEST_UINT64:
        value = pa.scalar(number, pa.uint64())
    else:
        value = pa.scalar(float(number), pa.float64())
    return Literal(value, place, is_plain=True)


def negative(binder: Binder, node: exp.Neg) -> Node:
    """Bind a sign, that of a number as part of it."""
    child = binder.operand(node.this)
    place = max(child.place - 1, 1)
    if isinstance(child, Literal) and child.is_plain and is_number(child.type):
        number = -child.value.as_py()
        if pa.types.is_integer(child.type):
            return _whole(number, place)
        return Literal(pa.scalar(number, child.type), place, is_plain=True)
    if not is_number(child.type) or pa.types.is_unsigned_integer(child.type):
        raise mismatch(place, f"{told(child)} cannot change its sign; CAST it to bigint first")
    made = Negative(child, place)
    return folded(made, (child,))


def constant(binder: Binder, node: exp.Boolean | exp.Null) -> Node:  # one of many
    """Bind TRUE, FALSE and NULL."""
    value = pa.scalar(None) if isinstance(node, exp.Null) else pa.scalar(bool(node.this))
    return Literal(value, place_of(node), is_plain=True)


def binary(binder: Binder, node: exp.HexString) -> Node:  # one of many
    """Bind ``X'05FF'``."""
    place = place_of(node)
    if _HEX.fullmatch(node.name) is None:
        fail(place, "two hexadecimal digits for every byte", shown(node.name))
    return Literal(pa.scalar(bytes.fromhex(node.name), pa.binary()), place, is_plain=True)


def parameter(binder: Binder, node: exp.Parameter) -> Node:
    """Bind a parameter that is one value."""
    value = given_of(binder.tokens, node)
    place = place_of(node)
    if not isinstance(value, pa.Scalar):
        fail(place, "one value", "a list", "lists stand behind IN and as arguments of functions")
    return Literal(value, place, is_plain=_is_of_plain_type(value.type), is_given=True)


def _is_of_plain_type(kind: pa.DataType) -> bool:
    return not pa.types.is_temporal(kind) and not pa.types.is_decimal(kind)


def cast(binder: Binder, node: exp.Cast) -> Node:
    """Bind CAST, TRY_CAST, ``::`` and ``timestamp '...'``."""
    child = binder.inside(node.this)
    place = child.place
    kind = _type(node.to, place)
    made = Cast(child, kind, place, gives_null=isinstance(node, exp.TryCast))
    if not _can_cast(child.type, kind):
        raise mismatch(place, f"{told(child)} cannot be made {kind}")
    return folded(made, (child,))


def _can_cast(given: pa.DataType, kind: pa.DataType) -> bool:
    """Whether Arrow knows how to make one type of another: asked with no values."""
    try:
        evaluate(Cast(Column("", given, 1), kind, 1), _none_of(given), go_on)
    except TypeMismatchError:
        return False
    return True


def _none_of(kind: pa.DataType) -> pa.RecordBatch:
    return pa.record_batch({"": pa.array([], kind)})


def _type(node: exp.DataType, place: int) -> pa.DataType:
    sizes = [_size(each, place) for each in node.expressions]
    found = _TYPES.get(node.this) if len(sizes) == 0 else None
    if node.this in {exp.DType.TIMESTAMP, exp.DType.DATETIME}:
        found = _stamp_type(sizes)
    elif node.this is exp.DType.DECIMAL:
        found = _decimal_type(sizes)
    if found is None:
        fail(
            place,
            "int, bigint, smallint or tinyint [unsigned], float, double, string, binary, boolean,"
            " date, timestamp(0, 3, 6 or 9) or decimal(digits, digits behind the point)",
            shown(node.sql()),
        )
    return found


def _stamp_type(sizes: Sequence[int]) -> pa.DataType | None:
    digits = sizes[0] if len(sizes) > 0 else 6
    unit = _UNITS.get(digits) if len(sizes) <= 1 else None
    return None if unit is None else pa.timestamp(unit)


def _decimal_type(sizes: Sequence[int]) -> pa.DataType | None:
    if len(sizes) != 2:  # noqa: PLR2004  # digits, digits behind the point
        return None
    precision, scale = sizes
    is_one = 1 <= precision <= _MOST_DIGITS and scale <= precision
    return pa.decimal128(precision, scale) if is_one else None


def _size(node: exp.Expr, place: int) -> int:
    text = node.name
    if not text.isdigit() or len(text) > 2:  # noqa: PLR2004  # none has more than two digits
        fail(place, "a small number as size of a type", shown(text))
    return int(text)


def arithmetic(binder: Binder, node: exp.Binary) -> Node:
    """Bind an operator on numbers or texts."""
    operator = OPERATORS[type(node)]
    left, right = binder.operand(node.this), binder.operand(node.expression)
    kinds = operand_types(operator, left.type, right.type)
    if kinds is None:
        raise mismatch(
            left.place, f"{told(left)} {operator} {told(right)} is not defined; CAST one of them"
        )
    left, right = converted(left, kinds[0]), converted(right, kinds[1])
    made = Arithmetic(operator, left, right, result_type(operator, *kinds), left.place)
    return folded(made, (left, right))
