r"""Regular expressions cost little, however they are written."""

from __future__ import annotations

import time

import pyarrow as pa
import pytest

from lance_core.errors import InvalidRequestError
from lance_core.expr.filter import parse_filter
from lance_core.expr.regex_syntax import translated

BATCH = pa.record_batch({"s": ["é" * 1000, "a" * 5000 + "!"]})
HOSTILE = (
    *(r"\w" * 4000, r"[\Wa]" * 1900, "(" * 9999, "a" + "*" * 9998, r"\w{1000}", r"(\w{30}){30}"),
    *(r"(\w+\s?)+$", "(|" * 240 + ")" * 240, "a|" * 4999, "(?:" * 240 + "a" + ")*" * 240),
    *("{" * 9999, "[" * 9999, "\\" * 9999, "(?x)" + " " * 9000, "x{1000}" * 1400, "[a" * 4000),
    *(
        "a{" + "9" * 9000 + "}",
        r"\x{" + "0" * 9000 + "}",
        "(?" + "i" * 9000,
        r"\b" * 4000,
        "é" * 9999,
    ),
)


@pytest.mark.parametrize("pattern", HOSTILE, ids=lambda each: each[:8])
def test_hostile_patterns_are_answered_or_refused_soon(pattern: str) -> None:
    started = time.perf_counter()
    try:
        parse_filter(f"regexp_like(s, '{pattern}')", BATCH.schema).holds(BATCH)
    except InvalidRequestError as error:
        assert len(str(error)) < 300  # noqa: PT017  # both are fine
    assert time.perf_counter() - started < 2


@pytest.mark.parametrize(
    ("pattern", "parts"),
    [
        ("^error [0-9]+: disk.*full$", ("error ", ": disk", "full")),
        ("colou?r", ("colo", "r")),
        ("(foo|bar) baz", (" baz",)),
        ("[[:alpha:]]x", ("x",)),
        (r"\u00e9t\x{e9}", ("été",)),
        (r"\bfoo\b", ("foo",)),
        ("(?x) f o o # bar", ("foo",)),
        ("ab{2}c", ("ab", "c")),
        ("ab{0}c", ("a", "c")),
        ("foo|bar", ()),
        ("(?i)foo", ()),
        ("(?i:f)oo", ()),
    ],
)
def test_the_parts_that_a_match_contains_are_known(pattern: str, parts: tuple[str, ...]) -> None:
    assert translated(pattern).parts == parts
