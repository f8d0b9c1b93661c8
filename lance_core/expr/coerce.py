"""Making the operands of a comparison one type."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from lance_core.errors import TypeMismatchError
from lance_core.expr.convert import convert
from lance_core.expr.functions.strings import LIKE
from lance_core.expr.kinds import common_type, is_text
from lance_core.expr.limits import python_value, shown
from lance_core.expr.literals import advice, fitted, with_all_digits
from lance_core.expr.tree import And, Call, Cast, Column, IsNull, IsTruth, Item, Literal, Not

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance_core.expr.tree import Node


def mismatch(place: int, message: str) -> TypeMismatchError:
    """Return the error for values of the wrong type at a character."""
    return TypeMismatchError(f"the filter at character {place}: {message}")


def told(node: Node) -> str:
    """Return how an operand is told to a reader."""
    if isinstance(node, Column):
        return f"column {node.path} ({node.type})"
    if isinstance(node, Literal):
        return shown(python_value(node.value))
    return f"a value of type {node.type}"


def converted(node: Node, kind: pa.DataType) -> Node:
    """Return an expression as another type."""
    if node.type == kind:
        return node
    if isinstance(node, Literal):
        try:
            return Literal(convert(node.value, kind), node.place)
        except TypeMismatchError as error:
            raise mismatch(node.place, str(error)) from None
    return Cast(node, kind, node.place)


def as_test(node: Node) -> Node:
    """Return an expression that is true or false, NULL as unknown.

    Raises
    ------
    TypeMismatchError
        It is neither.
    """
    if isinstance(node, Call) and node.function.name == "regexp_match":
        return matched(node)
    if pa.types.is_null(node.type):
        return converted(node, pa.bool_())
    if pa.types.is_boolean(node.type):
        return node
    what = f"column {node.path} is {node.type}" if isinstance(node, Column) else told(node)
    raise mismatch(node.place, f"{what} and no test of its own; compare it with something")


def matched(node: Call) -> Node:
    """Return whether ``regexp_match`` found something: never unknown, for a null text neither."""
    found = Call(LIKE, node.arguments, pa.bool_(), node.place)
    text = node.arguments[0]
    if not isinstance(text, Column):
        return IsTruth(found, truth=True, place=node.place)
    # The same, as tests that an index may answer.
    return And((found, Not(IsNull(text, node.place), node.place)), node.place)


def paired(left: Node, right: Node, place: int) -> tuple[Node, Node]:
    """Return two operands as one type.

    Raises
    ------
    TypeMismatchError
        They have none in common, or a literal cannot be had as the type of the column.
    """
    first, second = together((left, right), place)
    if pa.types.is_null(first.type):  # nothing with nothing: any type will do
        return converted(first, pa.bool_()), converted(second, pa.bool_())
    return first, second


def together(nodes: Sequence[Node], place: int) -> list[Node]:
    """Return expressions as one type: the first two or more operands of a comparison.

    A plain literal takes the type of a column beside it as it is, never rounded but for floats.
    Else usual rules hold: the wider of two kinds of numbers, and texts are read as the other type.
    """
    columns = [each for each in nodes if isinstance(each, Column)]
    nodes = _with_all_digits(nodes, columns)
    if len(columns) > 0 and all(each in columns or _is_plain(each) for each in nodes):
        return _with_columns(nodes, columns, place)
    nodes = _unsigned(_with_units_of_columns(nodes))
    known = [each for each in nodes if not pa.types.is_null(each.type)]
    kinds = [each.type for each in known if not (_is_plain(each) and is_text(each.type))]
    if len(kinds) == 0:
        kinds = [each.type for each in (*known, *nodes)]
    kind = kinds[0]
    for each in kinds[1:]:
        kind = _common(nodes, kind, each, place)
    return [converted(each, kind) for each in nodes]


def _with_all_digits(nodes: Sequence[Node], columns: Sequence[Column]) -> Sequence[Node]:
    """Return texts that have more digits than a column of times as times that have them."""
    made: list[Node] = []
    for each in nodes:
        if isinstance(each, Literal) and each.is_plain and len(columns) > 0:
            value = with_all_digits(each.value, columns[0].type)
            made.append(each if value is each.value else Literal(value, each.place))
        else:
            made.append(each)
    return made


def _unsigned(nodes: Sequence[Node]) -> Sequence[Node]:
    """Return whole literals beside uint64 as that if they can be, as else both become decimals."""
    if not any(each.type == pa.uint64() and not isinstance(each, Literal) for each in nodes):
        return nodes
    return [
        Literal(each.value.cast(pa.uint64()), each.place, is_plain=each.is_plain)
        if isinstance(each, Literal)
        and pa.types.is_int64(each.type)
        and (each.value.as_py() or 0) >= 0
        else each
        for each in nodes
    ]


def _with_units_of_columns(nodes: Sequence[Node]) -> Sequence[Node]:
    """Return times that are literals in the unit of what they are compared with, if they fit.

    So that not whole columns are converted to a finer unit, which reaches less far.
    """
    kinds = [
        each.type
        for each in nodes
        if not isinstance(each, Literal) and any(is_kind(each.type) for is_kind in _WITH_UNITS)
    ]
    return [_with_unit(each, kinds[0]) for each in nodes] if len(kinds) > 0 else nodes


def _with_unit(node: Node, kind: pa.DataType) -> Node:
    if not isinstance(node, Literal):
        return node
    if not any(is_kind(kind) and is_kind(node.type) for is_kind in _WITH_UNITS):
        return node
    if pa.types.is_timestamp(kind):
        kind = pa.timestamp(kind.unit, node.type.tz)
    try:
        return Literal(node.value.cast(kind), node.place)
    except pa.ArrowInvalid:  # it has more digits
        return node


_WITH_UNITS = (pa.types.is_timestamp, pa.types.is_time, pa.types.is_duration)


def _with_columns(nodes: Sequence[Node], columns: Sequence[Column], place: int) -> list[Node]:
    """Let plain literals take the type of the first column, then columns meet one another."""
    kind = columns[0].type
    fixed = [
        _fitted(columns[0], each, place) if isinstance(each, Literal) else each for each in nodes
    ]
    for each in columns[1:]:
        kind = _common(nodes, kind, each.type, place)
    return [converted(each, kind) for each in fixed]


def _fitted(column: Column, literal: Literal, place: int) -> Literal:
    try:
        value = fitted(column.path, literal.value, column.type, is_given=literal.is_given)
        return Literal(value, literal.place)
    except TypeMismatchError as error:
        raise mismatch(place, str(error)) from None


def _is_plain(node: Node) -> bool:
    return isinstance(node, Literal) and node.is_plain


def _common(
    nodes: Sequence[Node], kind: pa.DataType, other: pa.DataType, place: int
) -> pa.DataType:
    common = common_type(kind, other)
    if common is None or pa.types.is_struct(common) or pa.types.is_map(common):
        first, *others = nodes
        raise mismatch(
            place,
            f"{told(first)} cannot be compared with {', '.join(map(told, others[:3]))};"
            f" {advice(first.type)}",
        )
    return common


def item_of(child: Node, index: Node, place: int) -> Node:
    """Return an item of a list.

    Raises
    ------
    TypeMismatchError
        The position is no whole number.
    """
    if not pa.types.is_integer(index.type) and not pa.types.is_null(index.type):
        raise mismatch(index.place, f"{told(index)} is no position; the first item is 1")
    return Item(child, converted(index, pa.int64()), child.type.value_type, place)
