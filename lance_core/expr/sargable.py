"""What an index may be asked about a test: ``column operator literal`` in its many spellings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from lance_core.errors import TypeMismatchError, UnknownColumnError
from lance_core.expr import tree
from lance_core.expr.compare import MIRRORED, compare
from lance_core.expr.convert import convert
from lance_core.expr.index_query import (
    AnyOf,
    Between,
    ContainsAll,
    HasLabels,
    HasWords,
    IndexLeaf,
    IsNull,
    StartsWith,
)
from lance_core.expr.kinds import is_text
from lance_core.expr.like import split
from lance_core.expr.literals import with_both_zeros
from lance_core.expr.regex_syntax import translated
from lance_core.expr.times import is_coarser
from lance_core.expr.words import words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from lance_core.expr.index_query import LeafQuery
    from lance_core.schema.tree import LanceSchema

    Queries = tuple[LeafQuery, ...]
    Asked = tuple[tree.Column, Queries, bool]
    """A column, what to ask about it, and whether the test holds where that does not."""


def index_leaf(node: tree.Node, schema: LanceSchema) -> IndexLeaf | None:
    """Return what an index can be asked about a test.

    Parameters
    ----------
    node
        A test, neither AND, OR nor NOT.
    schema
        Of the table.

    Returns
    -------
    IndexLeaf | None
        None if no index can tell anything.

    Notes
    -----
    The table of pylance 14.0.2: scalar index page, section 11.4. NOT of a test may be asked as NOT
    of its leaf: what is unknown for one is unknown for the other.
    """
    find = _FIND.get(type(node))
    asked = None if find is None else find(node)
    if asked is None:
        return None
    column, queries, is_negated = asked
    try:
        field = schema.field(column.path)
    except UnknownColumnError:  # one of those that no file stores
        return None
    return IndexLeaf(field.id, queries, is_negated)


def _of_column(node: tree.Column) -> Asked | None:
    return (node, (AnyOf(pa.array([True])),), False)


def _of_comparison(node: tree.Compare) -> Asked | None:
    operator, left, right = node.operator, node.left, node.right
    if isinstance(left, tree.Literal):
        operator, left, right = MIRRORED[operator], right, left
    found = _column_and(left, right)
    if found is None:
        return None
    column, value = found
    if operator in {"=", "!="}:
        return (column, (AnyOf(with_both_zeros(_array(value))),), operator == "!=")
    if pa.types.is_boolean(column.type):
        return None
    return (column, (_range(operator, value),), False)


def _column_and(node: tree.Node, literal: tree.Node) -> tuple[tree.Column, pa.Scalar] | None:
    """Return a column and the value of its type that it is compared with, if that is all."""
    if not isinstance(literal, tree.Literal) or not literal.value.is_valid:
        return None
    if isinstance(node, tree.Cast) and isinstance(node.child, tree.Column):
        value = _narrowed(node.child.type, literal.value) if _widens(node) else None
        return None if value is None else (node.child, value)
    if not isinstance(node, tree.Column) or pa.types.is_nested(node.type):
        return None
    return node, literal.value


def _widens(node: tree.Cast) -> bool:
    """Whether a cast keeps the order of values and tells every two of them apart."""
    given, kind = node.child.type, node.type
    if pa.types.is_integer(given):
        return _holds_integers(given, kind)
    if pa.types.is_floating(given):
        return bool(pa.types.is_floating(kind)) and kind.bit_width >= given.bit_width
    if pa.types.is_decimal(given):
        return bool(pa.types.is_decimal(kind)) and (
            kind.scale >= given.scale
            and kind.precision - kind.scale >= given.precision - given.scale
        )
    if pa.types.is_timestamp(given) and pa.types.is_timestamp(kind):
        return bool(given.tz == kind.tz) and not is_coarser(kind.unit, given.unit)
    is_day = pa.types.is_date(given) and pa.types.is_timestamp(kind) and kind.tz is None
    return bool(is_day or (is_text(given) and is_text(kind)))


_EXACT_DIGITS = {16: 11, 32: 24, 64: 53}


def _holds_integers(given: pa.DataType, kind: pa.DataType) -> bool:
    is_signed = bool(pa.types.is_signed_integer(given))
    if pa.types.is_integer(kind):
        gained = kind.bit_width - given.bit_width
        if pa.types.is_signed_integer(kind) == is_signed:
            return bool(gained >= 0)
        return not is_signed and gained > 0
    if pa.types.is_floating(kind):
        return bool(given.bit_width - is_signed <= _EXACT_DIGITS[kind.bit_width])
    return bool(pa.types.is_decimal(kind)) and kind.precision - kind.scale >= len(
        str(2 ** (given.bit_width - is_signed))
    )


def _narrowed(kind: pa.DataType, value: pa.Scalar) -> pa.Scalar | None:
    """Return a value as the type of a column, if it is the same value there."""
    try:
        narrow = convert(value, kind)
        is_same = compare("=", convert(narrow, value.type), value)  # NaN is itself there
        return narrow if is_same.as_py() is True else None
    except TypeMismatchError:
        return None


def _array(value: pa.Scalar) -> pa.Array:
    return pa.array([value], value.type)


def _range(operator: str, value: pa.Scalar) -> Between:
    """Return a range; a bound that is zero counts for both zeros."""
    is_zero = bool(pa.types.is_floating(value.type)) and value.as_py() == 0
    includes = operator.endswith("=")
    is_lower = operator.startswith(">")
    if is_zero:
        # Excluded zeros are all those of that sign or beyond it, included ones begin with it.
        negative = is_lower is includes
        value = convert(pa.scalar(-0.0 if negative else 0.0), value.type)
    if is_lower:
        return Between(value, None, includes_lower=includes)
    return Between(None, value, includes_upper=includes)


def _of_range(node: tree.Between) -> Asked | None:
    low, high = _column_and(node.child, node.low), _column_and(node.child, node.high)
    if low is None or high is None or pa.types.is_boolean(node.child.type):
        return None
    lower, upper = _range(">=", low[1]), _range("<=", high[1])
    return (low[0], (Between(lower.lower, upper.upper),), False)


def _of_set(node: tree.InSet) -> Asked | None:
    if node.has_null:
        return None
    if isinstance(node.child, tree.Column):
        return (node.child, (AnyOf(node.values),), False)
    if not isinstance(node.child, tree.Cast) or not isinstance(node.child.child, tree.Column):
        return None
    column = node.child.child
    if not _widens(node.child):
        return None
    values = (_narrowed(column.type, each) for each in node.values)
    return (
        column,
        (AnyOf(pa.array([each for each in values if each is not None], column.type)),),
        False,
    )


def _of_null(node: tree.IsNull) -> Asked | None:
    return (node.child, (IsNull(),), False) if isinstance(node.child, tree.Column) else None


def _of_pattern(node: tree.Like) -> Asked | None:
    found = _column_and(node.child, node.pattern)
    if found is None or node.ignores_case:
        return None
    column, pattern = found
    pieces = split(pattern.as_py())
    kinds = [kind for kind, _ in pieces]
    if "any" not in kinds and "one" not in kinds:
        text = "".join(text for _, text in pieces)
        return (column, (AnyOf(pa.array([text], column.type)),), False)
    queries: list[LeafQuery] = []
    first = next(at for at, kind in enumerate(kinds) if kind != "text")
    prefix = "".join(text for _, text in pieces[:first])
    if prefix != "":
        is_exact = kinds[first:] == ["any"]
        queries.append(StartsWith(pa.scalar(prefix, column.type), is_exact))
    parts = _texts_between(pieces)
    if len(parts) > 0:
        queries.append(ContainsAll(parts))
    return (column, tuple(queries), False) if len(queries) > 0 else None


def _texts_between(pieces: list[tuple[str, str]]) -> tuple[str, ...]:
    parts = [""]
    for kind, text in pieces:
        if kind == "text":
            parts[-1] += text
        else:
            parts.append("")
    return tuple(dict.fromkeys(part for part in parts if part != ""))


def _of_call(node: tree.Call) -> Asked | None:
    ask = _CALLS.get(node.function.name)
    if ask is None or len(node.arguments) != 2:  # noqa: PLR2004  # flags may follow
        return None
    column, literal = map(_as_written, node.arguments)
    if not isinstance(column, tree.Column) or not isinstance(literal, tree.Literal):
        return None
    queries = ask(column.type, literal.value) if literal.value.is_valid else ()
    return (column, queries, False) if len(queries) > 0 else None


def _as_written(node: tree.Node) -> tree.Node:
    """Return a list without the cast to long lists that functions of lists want."""
    if isinstance(node, tree.Cast) and pa.types.is_large_list(node.type):
        kind = node.child.type
        is_list = pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind)
        if is_list and kind.value_type == node.type.value_type:
            return node.child
    return node


def _starts_with(kind: pa.DataType, value: pa.Scalar) -> Queries:
    return (StartsWith(value.cast(kind), is_exact=True),)


def _contains(kind: pa.DataType, value: pa.Scalar) -> Queries:  # one of many
    return _containing((value.as_py(),))


def _has_words(kind: pa.DataType, value: pa.Scalar) -> Queries:  # as above
    text = value.as_py()
    return (HasWords(text), *_containing(tuple(sorted(words(text)))))


def _matches(kind: pa.DataType, value: pa.Scalar) -> Queries:  # as above
    try:
        return _containing(translated(value.as_py()).parts)
    except TypeMismatchError:  # told when it is evaluated
        return ()


def _containing(parts: tuple[str, ...]) -> Queries:
    known = tuple(part for part in parts if part != "")
    return (ContainsAll(known),) if len(known) > 0 else ()


def _has_one(kind: pa.DataType, value: pa.Scalar) -> Queries:
    return (HasLabels(pa.array([value], kind.value_type), needs_all=True),)


def _has_all(kind: pa.DataType, value: pa.Scalar) -> Queries:
    return (HasLabels(pa.array(value.values, kind.value_type), needs_all=True),)


def _has_any(kind: pa.DataType, value: pa.Scalar) -> Queries:
    return (HasLabels(pa.array(value.values, kind.value_type), needs_all=False),)


_CALLS: Mapping[str, Callable[[pa.DataType, pa.Scalar], Queries]] = {
    "starts_with": _starts_with,
    "contains": _contains,
    "contains_tokens": _has_words,
    "regexp_like": _matches,
    "array_has": _has_one,
    "array_has_all": _has_all,
    "array_has_any": _has_any,
}
_FIND: Mapping[type, Callable[[Any], Asked | None]] = {
    tree.Column: _of_column,
    tree.Compare: _of_comparison,
    tree.Between: _of_range,
    tree.InSet: _of_set,
    tree.IsNull: _of_null,
    tree.Like: _of_pattern,
    tree.Call: _of_call,
}
