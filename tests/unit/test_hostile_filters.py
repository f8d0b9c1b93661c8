"""Filters of strangers: answered or refused, soon, whatever they hold."""

from __future__ import annotations

import contextlib

import pyarrow as pa
import pytest

from lance_core.errors import DeadlineExceededError, InvalidRequestError
from lance_core.expr.filter import parse_filter
from lance_core.expr.limits import FilterLimits

LIMITS = FilterLimits(characters=1 << 20, comparisons=5_000)
BATCH = pa.record_batch(
    {
        "i": pa.array(range(1000)),
        "s": [f"text number {n}" for n in range(1000)],
        "b": [True] * 1000,
        "l": [[n] for n in range(1000)],
    }
)
LONG = 1 << 19


def judge(text: str) -> None:
    parse_filter(text, BATCH.schema, limits=LIMITS).holds(BATCH)


@pytest.mark.parametrize(
    "text",
    [
        *("(" * LONG, "(" * 51 + "b" + ")" * 51, "NOT " * 51 + "b", "[" * LONG),
        *("abs(" * 51 + "i" + ")" * 51, "i = " + "- " * 51 + "1", "{" * LONG),
        "CAST(" * 51 + "i" + " AS int)" * 51,
    ],
)
def test_what_is_nested_too_deeply_tells_so(text: str) -> None:
    with pytest.raises(InvalidRequestError, match=r"nested deeper than 50 levels|an operator"):
        judge(text)


@pytest.mark.parametrize(
    "text",
    [
        "i = " + "+".join(["i"] * 102),
        "s = " + "||".join(["s"] * 102),
        "b" + " = b" * 102,
        "b" + " IS TRUE" * 102,
        "i" + "::bigint" * 102 + " = 5",
    ],
)
def test_too_many_operators_inside_one_another_tell_the_limit(text: str) -> None:
    with pytest.raises(InvalidRequestError, match="more than 100 operators"):
        judge(text)


@pytest.mark.parametrize(
    "text", ["l" + "[1]" * 340_000 + " = 5", "l" + "[l[1]" + "[1]" * 60 + "] = 5"]
)
def test_items_of_items_are_counted_before_anything_is_made_of_them(text: str) -> None:
    with pytest.raises(InvalidRequestError, match="nested deeper than 50 levels"):
        judge(text)


@pytest.mark.parametrize(
    "text",
    [
        "a" + ".a" * (LONG // 2),
        "i IN (" + ",".join(["1"] * 100_000) + ", i)",
        "i = " + "+".join(["1"] * 100_000),
        "/*" * (LONG // 2),
        "i = f(" + "," * (LONG // 2),
    ],
)
def test_too_many_words_tell_the_limit(text: str) -> None:
    with pytest.raises(InvalidRequestError, match="more than 5000 comparisons"):
        judge(text)


@pytest.mark.parametrize(
    "text",
    [
        "s = " + "replace(" * 40 + "s" + ",'t','tttttttt')" * 40,
        f"s = replace(s, 't', '{'x' * LONG}')",
        "s = concat(" + ",".join([f"replace(s, 't', '{'x' * 600}')"] * 1_200) + ")",
        f"s || '{'x' * LONG}' = s",
    ],
)
def test_what_would_become_too_large_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequestError, match="the limit is 268435456"):
        judge(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"s LIKE '{'%a' * 6000}'", "the pattern has 12000 characters, the limit is 10000"),
        (f"regexp_like(s, '{'(a|b)' * 3000}')", "the expression has 15000 characters"),
        ("regexp_like(s, '((a{900}){900}){900}')", "at character 1: Invalid regular expression"),
        ("regexp_like(s, '(')", "at character 1: Invalid regular expression"),
        ("regexp_like(s, '(?=a)')", "Invalid regular expression"),
        (r"regexp_like(s, '(a)\1')", "Invalid regular expression"),
    ],
)
def test_patterns_that_take_too_long_are_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        judge(text)


@pytest.mark.parametrize(
    "text",
    [
        *("left(s, 9223372036854775807) = s", "right(s, -9223372036854775807 - 1) = s"),
        *("round(i + 0.5, 999999999999) = 1", "power(i, 1e300) > 1", "i << 99999 = 1"),
        *("split_part(s, ' ', 9223372036854775807) = ''", "l[9223372036854775807] = 1"),
        *("i / -1 = 5", "-9223372036854775808 / -1 = i", "abs(-9223372036854775807 - 1) = i"),
        *("i % 0 = 1", "i = 1e999999999", "i + 0.5 = 0." + "9" * LONG, "i = " + "9" * LONG),
        *("regexp_like(s, '(a+)+$')", "regexp_like(s, s)", "s LIKE s", "'" * LONG, "`" * LONG),
        *("s = 'a\x00b'", "s = '\ud800'", "\ufeffi = 1", "i\u00a0= 1", "i = \u0661", "\uff49 = 1"),
        *("coalesce(" + ",".join(["i"] * 500) + ") = 1", "[" + ",".join(["1"] * 500) + "] = l"),
        *("CAST(i AS date) > date '2024-01-01'", "CAST(i * 1000000000000 AS timestamp) IS NULL"),
        *("date_trunc('day', CAST(9223372036854775807 AS timestamp(0))) IS NULL", "l[i] = 1"),
        *(
            "CAST(99999999 AS date) = date '2024-01-01'",
            "to_timestamp(9223372036854775807) = now()",
        ),
        *(
            "chr(0) = s",
            "array_has(l, NULL)",
            "[NULL] = l",
            "l = NULL",
            "l IN (NULL)",
            "i . 0. = 1",
            "NULL",
            "*",
            "i = *",
            "count(*) = 1",
        ),
    ],
)
def test_any_of_these_is_judged_or_refused(text: str) -> None:
    with contextlib.suppress(InvalidRequestError):
        judge(text)


def test_a_column_of_patterns_is_stopped_between_them() -> None:
    looks: list[int] = []

    def check() -> None:
        looks.append(1)
        if len(looks) > 20:
            raise DeadlineExceededError("filtering rows")

    with pytest.raises(DeadlineExceededError):
        parse_filter("s || '1' LIKE s || '%'", BATCH.schema).holds(BATCH, check)


def test_long_lists_are_read_in_no_time() -> None:
    numbers = f"i IN ({','.join(map(str, range(100_000)))})"
    parse_filter(f"{numbers} AND NOT {numbers.replace(',', ' , ')} OR b", BATCH.schema)
    judge(f"s IN ({','.join(map(repr, map(str, range(80_000))))})")
    with pytest.raises(InvalidRequestError, match="than 5000000 values, which is the limit"):
        parse_filter(
            f"{numbers} OR " * 51 + "b", BATCH.schema, limits=FilterLimits(1 << 26, 20_000)
        )
