"""Binding of what is true or false: comparisons, lists, ranges, patterns, and what joins them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from lance_core.errors import TypeMismatchError
from lance_core.expr.coerce import as_test, converted, mismatch, paired, together, told
from lance_core.expr.convert import convert
from lance_core.expr.given import given_of, is_parameter
from lance_core.expr.kinds import common_type, is_text
from lance_core.expr.limits import shown
from lance_core.expr.literals import (
    UNFIT,
    advice,
    fitted,
    fitted_values,
    with_all_digits,
    with_both_zeros,
)
from lance_core.expr.places import place_of
from lance_core.expr.tokens import fail
from lance_core.expr.tree import (
    And,
    Between,
    Call,
    Column,
    Compare,
    Distinct,
    InSet,
    IsNull,
    IsTruth,
    Like,
    Literal,
    Not,
    Or,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lance_core.expr.bind import Binder
    from lance_core.expr.tree import Node

OPERATORS: Mapping[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
"""Comparisons of sqlglot and how they are written."""


def joined(binder: Binder, node: exp.And | exp.Or) -> Node:
    """Bind what AND or OR joins; thousands of them are one node, not as many levels."""
    kind = type(node)
    parts: list[exp.Expr] = []
    left: exp.Expr = node
    while isinstance(left, kind):
        parts.append(left.expression)
        left = left.this
    parts.append(left)
    children = tuple(as_test(binder.bind(each)) for each in reversed(parts))
    return (And if kind is exp.And else Or)(children, children[0].place)


def negated(binder: Binder, node: exp.Not) -> Node:
    """Bind NOT, also that of NOT IN, NOT BETWEEN and IS NOT."""
    child = as_test(binder.bind(node.this))
    return Not(child, child.place)


def compared(binder: Binder, node: exp.Binary) -> Node:
    """Bind a comparison."""
    place = place_of(node)
    left, right = binder.left(node.this), binder.operand(node.expression)
    left, right = paired(left, right, place)
    operator = OPERATORS[type(node)]
    _require_comparable(left, operator, place)
    return Compare(operator, left, right, place)


def _require_comparable(node: Node, operator: str, place: int) -> None:
    kind = node.type
    is_ordered = operator not in {"=", "!="}
    is_comparable = not pa.types.is_nested(kind)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        is_comparable = not is_ordered and not pa.types.is_nested(kind.value_type)
    if pa.types.is_interval(kind) or not is_comparable:
        raise mismatch(place, f"{told(node)} cannot be compared with {operator}; {advice(kind)}")


def is_something(binder: Binder, node: exp.Is) -> Node:
    """Bind IS [NOT] NULL, TRUE or FALSE."""
    what = node.expression
    # A comparison binds tighter than IS, so it needs no brackets here.
    child = binder.bind(node.this)
    place = child.place
    if isinstance(what, exp.Null):
        is_match = isinstance(child, Call) and child.function.name == "regexp_match"
        found: Node = Not(as_test(child), place) if is_match else IsNull(child, child.place)
    elif isinstance(what, exp.Boolean):
        found = _is_truth(as_test(child), bool(what.this))
    else:
        fail(
            place_of(what),
            "NULL, TRUE, FALSE or DISTINCT FROM after IS",
            shown(what.name),
        )
    return Not(found, child.place) if node.args.get("negate") is True else found


def _is_truth(child: Node, truth: bool) -> Node:  # TRUE or FALSE, as written
    """Return IS TRUE or IS FALSE; of a column, as tests that an index may answer."""
    if not isinstance(child, Column):
        return IsTruth(child, truth, child.place)
    is_known = Not(IsNull(child, child.place), child.place)
    return And((child if truth else Not(child, child.place), is_known), child.place)


def distinct(binder: Binder, node: exp.NullSafeEQ | exp.NullSafeNEQ) -> Node:
    """Bind IS [NOT] DISTINCT FROM."""
    place = place_of(node)
    left, right = paired(binder.operand(node.this), binder.operand(node.expression), place)
    _require_comparable(left, "=", place)
    found = Distinct(left, right, place)
    return Not(found, place) if isinstance(node, exp.NullSafeEQ) else found


def between(binder: Binder, node: exp.Between) -> Node:
    """Bind BETWEEN."""
    place = place_of(node)
    if node.args.get("symmetric") is not None:
        fail(place, "BETWEEN low AND high", "SYMMETRIC")
    operands = [binder.operand(each) for each in (node.this, node.args["low"], node.args["high"])]
    child, low, high = together(operands, place)
    _require_comparable(child, "<", place)
    return Between(child, low, high, place)


def like(binder: Binder, node: exp.Like | exp.ILike) -> Node:
    """Bind [NOT] LIKE and ILIKE."""
    child, pattern = binder.operand(node.this), binder.operand(node.expression)
    place = place_of(node)
    for each in (child, pattern):
        if not is_text(each.type) and not pa.types.is_null(each.type):
            raise mismatch(each.place, f"{told(each)} is no text, and LIKE looks at texts only")
    kind = child.type if is_text(child.type) else pa.string()
    made = Like(
        converted(child, kind), converted(pattern, kind), isinstance(node, exp.ILike), place
    )
    return Not(made, place) if node.args.get("negate") is True else made


def escaped(binder: Binder, node: exp.Escape) -> Node:
    r"""Bind ESCAPE '\', which changes nothing."""
    sign = node.expression
    if sign is None or sign.name != "\\":
        fail(place_of(node), "ESCAPE '\\'", shown("" if sign is None else sign.name))
    return binder.bind(node.this)


def listed(binder: Binder, node: exp.In) -> Node:
    """Bind IN with a list of values, or with a parameter that is one."""
    place = place_of(node)
    child = binder.operand(node.this)
    field = node.args.get("field")
    if field is not None and not isinstance(field, exp.Parameter):
        fail(place_of(field), "(", shown(field.name), "IN takes values in brackets")
    parts = node.expressions if field is None else [field]
    if len(parts) == 0:
        fail(place, "at least one value in the brackets of IN", "none")
    cut = given_of(binder.tokens, parts[0]) if len(parts) == 1 else None
    if isinstance(cut, pa.Array):
        return _in_array(child, cut, place, is_given=is_parameter(binder.tokens, parts[0]))
    bound = [one for each in parts for one in _spread(binder, each)]
    if len(bound) == 0:
        return _in_array(child, pa.array([], child.type), place)
    if not all(isinstance(each, Literal) for each in bound):
        return _any_of(child, bound, place)
    return _in_literals(child, [each for each in bound if isinstance(each, Literal)], place)


def _spread(binder: Binder, node: exp.Expr) -> Sequence[Node]:
    """Return the values of a parameter that is a list, or the one value that a node is."""
    value = given_of(binder.tokens, node)
    if isinstance(value, pa.Array):
        is_given = is_parameter(binder.tokens, node)
        return [Literal(each, place_of(node), is_plain=True, is_given=is_given) for each in value]
    return [binder.inside(node)]


def _in_array(child: Node, values: pa.Array, place: int, *, is_given: bool = False) -> Node:
    """Bind a list of literals of one type."""
    has_null = values.null_count > 0
    values = values.drop_null()
    if not isinstance(child, Column):
        return _in_converted(child, values, place, has_null=has_null)
    values = with_all_digits(values, child.type)
    if pa.types.is_temporal(values.type) or pa.types.is_decimal(values.type):
        exact = _as_type_of(child, values)
        if exact is None:
            return _in_converted(child, values, place, has_null=has_null)
        return InSet(child, exact, has_null, place)
    try:
        fitting = fitted_values(values, child.type, is_given=is_given)
    except UNFIT:
        for each in values:
            try:
                fitted(child.path, each, child.type, is_given=is_given)
            except TypeMismatchError as error:
                raise mismatch(place, str(error)) from None
        raise
    return InSet(child, with_both_zeros(fitting), has_null, place)


def _as_type_of(child: Column, values: pa.Array) -> pa.Array | None:
    """Return values as the type of a column, if all are the same values there."""
    try:
        made = convert(values, child.type)
        return made if convert(made, values.type).equals(values) else None
    except TypeMismatchError:
        return None


def _in_converted(child: Node, values: pa.Array, place: int, *, has_null: bool) -> Node:
    """Bind a list of literals by usual rules: both sides become what they have in common."""
    kind = common_type(child.type, values.type)
    if is_text(values.type) or kind is None:
        kind = child.type
    try:
        made = with_both_zeros(convert(values, kind))
    except TypeMismatchError as error:
        raise mismatch(place, f"{told(child)} cannot be compared with the list: {error}") from None
    return InSet(converted(child, kind), made, has_null, place)


def _in_literals(child: Node, literals: Sequence[Literal], place: int) -> Node:
    if pa.types.is_nested(child.type):
        return _any_of(child, literals, place)
    child, *made = together([child, *literals], place)
    _require_comparable(child, "=", place)
    values = [each.value for each in made if isinstance(each, Literal) and each.value.is_valid]
    array = pa.array(values, child.type)
    return InSet(child, with_both_zeros(array), len(values) < len(made), place)


def _any_of(child: Node, others: Sequence[Node], place: int) -> Node:
    """Return whether a value equals one of some expressions."""
    tests = []
    for each in others:
        left, right = paired(child, each, place)
        _require_comparable(left, "=", place)
        tests.append(Compare("=", left, right, place))
    return tests[0] if len(tests) == 1 else Or(tuple(tests), place)
