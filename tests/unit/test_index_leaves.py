"""What an index is asked about a test."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from lance_core.expr.filter import parse_filter
from lance_core.expr.index_query import (
    AnyOf,
    Between,
    ContainsAll,
    HasLabels,
    IndexLeaf,
    IsNull,
    LeafQuery,
    StartsWith,
)
from lance_core.expr.sargable import index_leaf
from lance_core.expr.tree import And, Not
from lance_core.schema.from_arrow import schema_from_arrow

SCHEMA = schema_from_arrow(
    pa.schema(
        {
            "i": pa.int32(),
            "u": pa.uint64(),
            "f": pa.float32(),
            "dec": pa.decimal128(10, 2),
            "s": pa.string(),
            "b": pa.bool_(),
            "d": pa.date32(),
            "ts": pa.timestamp("us"),
            "st": pa.struct([("x", pa.int64())]),
            "tags": pa.list_(pa.string()),
        }
    )
)


def leaf(text: str) -> IndexLeaf | None:
    return index_leaf(parse_filter(text, SCHEMA).expression, SCHEMA)


def told(query: LeafQuery) -> object:
    """Return a query as plain values."""
    if isinstance(query, AnyOf):
        return [str(each) for each in query.values]
    if isinstance(query, Between):
        lower = None if query.lower is None else str(query.lower)
        upper = None if query.upper is None else str(query.upper)
        begin, end = "(["[query.includes_lower], ")]"[query.includes_upper]
        return f"{begin}{lower}, {upper}{end}"
    if isinstance(query, StartsWith):
        return (query.prefix.as_py(), query.is_exact)
    if isinstance(query, HasLabels):
        return (query.labels.to_pylist(), query.needs_all)
    return query


@pytest.mark.parametrize(
    ("text", "column", "asked"),
    [
        ("i = 5", "i", ["5"]),
        ("5 = i", "i", ["5"]),
        ("i IN (3, 5)", "i", ["3", "5"]),
        ("CAST(i AS bigint) = 5", "i", ["5"]),
        ("i = CAST('5' AS bigint)", "i", ["5"]),
        ("CAST(i AS bigint) IN (5, 5000000000)", "i", ["5"]),
        ("i < 5", "i", "[None, 5)"),
        ("5 < i", "i", "(5, None]"),
        ("i >= 5", "i", "[5, None]"),
        ("i BETWEEN 3 AND 5", "i", "[3, 5]"),
        ("f = 0", "f", ["0.0", "-0.0"]),
        ("f < 0", "f", "[None, -0.0)"),
        ("f <= 0", "f", "[None, 0.0]"),
        ("f > 0", "f", "(0.0, None]"),
        ("f >= -0.0", "f", "[-0.0, None]"),
        ("f BETWEEN 0 AND 0", "f", "[-0.0, 0.0]"),
        ("dec > 1", "dec", "(1.00, None]"),
        ("s = 'a'", "s", ["a"]),
        ("s LIKE 'a'", "s", ["a"]),
        (r"s LIKE 'a\%'", "s", ["a%"]),
        ("s > 'a'", "s", "(a, None]"),
        ("b", "b", ["True"]),
        ("b = false", "b", ["False"]),
        ("d = date '2024-01-04'", "d", ["2024-01-04"]),
        ("d = timestamp '2024-01-04 00:00:00'", "d", ["2024-01-04"]),
        ("d = '2024-01-04'", "d", ["2024-01-04"]),
        ("ts > timestamp '2024-01-04 00:00:00'", "ts", "(2024-01-04 00:00:00, None]"),
        ("st.x = 5", "st.x", ["5"]),
        ("i IS NULL", "i", IsNull()),
        ("starts_with(s, 'ab')", "s", ("ab", True)),
        ("contains(s, 'ab')", "s", ContainsAll(("ab",))),
        ("regexp_like(s, '^a[0-9]+bc?d$')", "s", ContainsAll(("a", "b", "d"))),
        ("array_has(tags, 'a')", "tags", (["a"], True)),
        ("list_contains(tags, 'a')", "tags", (["a"], True)),
        ("array_has_all(tags, ['a', 'b'])", "tags", (["a", "b"], True)),
        ("array_has_any(tags, ['a', NULL])", "tags", (["a", None], False)),
    ],
)
def test_one_question_is_asked(text: str, column: str, asked: object) -> None:
    found = leaf(text)
    assert found is not None
    assert found.field_id == SCHEMA.field(column).id
    assert not found.is_negated
    (query,) = found.queries
    assert told(query) == asked


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("s LIKE 'abc%'", [("abc", True), ContainsAll(("abc",))]),
        ("s LIKE 'abc_'", [("abc", False), ContainsAll(("abc",))]),
        ("s LIKE 'abc%x'", [("abc", False), ContainsAll(("abc", "x"))]),
        ("s LIKE '%abc%'", [ContainsAll(("abc",))]),
        (r"s LIKE '%a\_c%'", [ContainsAll(("a_c",))]),
    ],
)
def test_patterns_ask_for_the_tightest_first(text: str, asked: list[object]) -> None:
    found = leaf(text)
    assert found is not None
    assert [told(each) for each in found.queries] == asked


def test_unequal_is_the_negation_of_equal() -> None:
    found = leaf("i <> 5")
    assert found is not None
    assert found.is_negated
    assert told(found.queries[0]) == ["5"]
    assert isinstance(parse_filter("i NOT IN (1, 2)", SCHEMA).expression, Not)


@pytest.mark.parametrize(
    "text",
    [
        "i + 1 = 5",
        "i = i",
        "i = NULL",
        "i IN (1, NULL)",
        "CAST(i AS float) = 5",
        "CAST(i AS smallint) = 5",
        "CAST(u AS bigint) = 5",
        "CAST(f AS int) = 5",
        "CAST(ts AS date) = date '2024-01-04'",
        "CAST(i AS bigint) = 5000000000",
        "d = timestamp '2024-01-04 12:00:00'",
        "s ILIKE 'a%'",
        "s LIKE '%'",
        "s LIKE s",
        "i IS DISTINCT FROM 5",
        "_rowid = 5",
        "1 = 1",
        "b < true",
        "contains(s, '')",
        "regexp_like(s, 'a|b')",
        "regexp_like(s, '[a-z]*')",
        "regexp_like(s, 'abc', 'i')",
        "array_has(tags, NULL)",
        "array_has(tags, s)",
    ],
)
def test_what_no_index_knows_is_not_asked(text: str) -> None:
    assert leaf(text) is None


@pytest.mark.parametrize("text", ["b IS TRUE", "b IS FALSE", "regexp_match(s, 'abc')"])
def test_what_is_never_unknown_is_asked_in_two_parts(text: str) -> None:
    expression = parse_filter(text, SCHEMA).expression
    assert isinstance(expression, And)
    first, second = expression.children
    assert isinstance(second, Not)
    asked = first.child if isinstance(first, Not) else first
    assert index_leaf(asked, SCHEMA) is not None
    assert index_leaf(second.child, SCHEMA) is not None


def test_values_have_the_type_of_the_column() -> None:
    found = leaf("CAST(dec AS decimal(20,4)) = decimal(20,4) '1.25'")
    assert found is not None
    query = found.queries[0]
    assert isinstance(query, AnyOf)
    assert query.values.equals(pa.array([Decimal("1.25")], pa.decimal128(10, 2)))
