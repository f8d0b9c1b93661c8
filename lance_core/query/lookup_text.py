"""What an index is asked, as text for people."""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING

from lance_core.expr.index_query import (
    AnyOf,
    Between,
    ContainsAll,
    HasLabels,
    HasWords,
    IsNull,
    StartsWith,
)
from lance_core.expr.limits import python_value, shown

if TYPE_CHECKING:
    import pyarrow as pa

    from lance_core.expr.index_query import IndexLeaf, LeafQuery

_MAX_VALUES_SHOWN = 5


def lookup_text(leaf: IndexLeaf, column: str) -> str:
    """Return what is asked about a column.

    Of several ways to ask the first is told: it is closest to what the filter says.
    """
    text = _text(leaf.queries[0], column)
    return f"NOT ({text})" if leaf.is_negated else text


@singledispatch
def _text(query: LeafQuery, column: str) -> str:
    raise NotImplementedError(type(query).__name__)


@_text.register
def _any_of(query: AnyOf, column: str) -> str:
    if len(query.values) == 1:
        return f"{column} = {_value(query.values[0])}"
    return f"{column} IN ({_values(query.values)})"


@_text.register
def _between(query: Between, column: str) -> str:
    ends = []
    if query.lower is not None:
        ends.append(f"{column} {'>=' if query.includes_lower else '>'} {_value(query.lower)}")
    if query.upper is not None:
        ends.append(f"{column} {'<=' if query.includes_upper else '<'} {_value(query.upper)}")
    return " AND ".join(ends)


@_text.register
def _is_null(query: IsNull, column: str) -> str:
    del query
    return f"{column} IS NULL"


@_text.register
def _starts_with(query: StartsWith, column: str) -> str:
    return f"{column} starts with {_value(query.prefix)}"


@_text.register
def _contains(query: ContainsAll, column: str) -> str:
    return f"{column} contains {' and '.join(shown(each) for each in query.parts)}"


@_text.register
def _has_labels(query: HasLabels, column: str) -> str:
    return f"{column} has {'all' if query.needs_all else 'any'} of ({_values(query.labels)})"


@_text.register
def _has_words(query: HasWords, column: str) -> str:
    return f"{column} has the words of {shown(query.text)}"


def _values(values: pa.Array) -> str:
    told = ", ".join(_value(each) for each in values[:_MAX_VALUES_SHOWN])
    more = len(values) - _MAX_VALUES_SHOWN
    return f"{told}, ... {more} more" if more > 0 else told


def _value(value: pa.Scalar) -> str:
    plain = python_value(value)
    if plain is None:
        return "NULL"
    return shown(plain) if isinstance(plain, str | bytes) else str(plain)
