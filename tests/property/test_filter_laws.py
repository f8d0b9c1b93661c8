"""Predicates of any text on columns of any type: an answer, or an error of this library."""

from __future__ import annotations

import contextlib
import datetime as dt
import re
from typing import TYPE_CHECKING

import pyarrow as pa
from hypothesis import example, given, settings, strategies as st

from lance_core.errors import LanceError
from lance_core.expr.filter import parse_expression, parse_filter
from lance_core.expr.functions.registry import FUNCTIONS
from tests.filter_examples import ANSWERED, ONLY_THEIRS, REFUSED
from tests.filter_table import TABLE

if TYPE_CHECKING:
    from decimal import Decimal

DAY = dt.datetime(2024, 1, 2, 3, 4, 5)  # noqa: DTZ001  # columns without a zone
KINDS = [
    *(pa.int8(), pa.uint8(), pa.int64(), pa.uint64(), pa.float16(), pa.float32(), pa.float64()),
    *(pa.decimal128(10, 2), pa.decimal128(38, 0), pa.decimal256(76, 70), pa.decimal128(5, -2)),
    *(pa.date32(), pa.date64(), pa.time32("s"), pa.time64("ns"), pa.duration("ms")),
    *(pa.timestamp("s"), pa.timestamp("ns"), pa.timestamp("us", "America/New_York")),
    *(pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.binary(2), pa.bool_()),
    *(pa.null(), pa.list_(pa.int8()), pa.struct([("x", pa.int8())]), pa.uuid(), pa.bool8()),
    *(pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int8(), pa.float32())),
    *(pa.month_day_nano_interval(), pa.map_(pa.string(), pa.int8()), pa.json_()),
]
NAMES = [f"c{n}" for n in range(len(KINDS))]
ROWS = pa.record_batch([pa.nulls(2, kind) for kind in KINDS], NAMES)

number = st.one_of(
    st.integers().map(str),
    st.decimals(allow_nan=False, allow_infinity=False).map(str),
    st.sampled_from(
        ["1.005", "1e400", "-1e400", "1e999999999", "-1e-999999999", "1e99999999999999999999"]
    ),
    st.sampled_from(
        ["9" * 5000, "0." + "0" * 500 + "1", "0e999999999", "65505", "1e39", "1e38", ".5", "5."]
    ),
)
text = st.one_of(
    st.text(max_size=6).map(lambda each: "'" + each.replace("'", "''") + "'"),
    st.sampled_from(["'2024-01-02'", "'2024-01-02T03:04:05.123456789'", "'03:04:05'", "'\ud800'"]),
)
literal = st.one_of(number, text, st.sampled_from(["NULL", "TRUE", "DATE '2024-01-02'"]))
tests = st.one_of(
    st.builds("{} {}".format, st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), literal),
    st.lists(literal, min_size=1, max_size=3).map(lambda each: f"IN ({', '.join(each)})"),
    st.builds("NOT BETWEEN {} AND {}".format, literal, literal),
)
fragments = st.lists(
    st.one_of(
        st.text(max_size=4),
        literal,
        st.sampled_from(["AND", "OR", "NOT", "IN", "IS", "(", ")", ",", "-", "`", "'", "."]),
        st.sampled_from([*NAMES, "=", "<", "BETWEEN", "NULL", "DATE", "\x00"]),
    ),
    max_size=12,
).map(" ".join)


@settings(max_examples=settings().max_examples * 4)
@given(predicate=st.one_of(st.text(), fragments))
def test_any_text_is_judged_or_refused(predicate: str) -> None:
    with contextlib.suppress(LanceError):
        assert len(parse_filter(predicate, ROWS.schema).holds(ROWS)) == 2


@settings(max_examples=settings().max_examples * 4)
@given(column=st.sampled_from(NAMES), test=tests)
@example(column=NAMES[0], test="= - -9223372036854775808")
@example(column=NAMES[0], test="< -18446744073709551615")
def test_any_literal_is_compared_with_any_column_or_refused(column: str, test: str) -> None:
    with contextlib.suppress(LanceError):
        assert parse_filter(f"{column} {test}", ROWS.schema).holds(ROWS).to_pylist() == [
            False,
            False,
        ]


EXAMPLES = [*ANSWERED, *REFUSED, *ONLY_THEIRS]
WORD = re.compile(r"'[^']*'|\w+|[^\w\s]|\s+")
words = st.sampled_from(sorted({word for each in EXAMPLES for word in WORD.findall(each)}))
EXAMPLE_ROWS = TABLE.combine_chunks().to_batches()[0]
arguments = st.one_of(
    st.sampled_from(["`my col`" if " " in name else name for name in TABLE.schema.names]),
    st.sampled_from(["1", "'a'", "NULL", "-1", "1.5", "true", "[1, 2]", "date '2024-01-04'", "''"]),
)


@st.composite
def changed_examples(draw: st.DrawFn) -> str:
    """Examples with a few words replaced, added, left out or followed by others."""
    parts = WORD.findall(draw(st.sampled_from(EXAMPLES)))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(parts)))
        end = at + draw(st.integers(0, 2))
        parts[at:end] = draw(st.lists(words, max_size=2))
    return "".join(parts)


@settings(max_examples=settings().max_examples * 2)
@given(text=changed_examples())
def test_any_change_of_an_example_is_judged_or_refused_with_its_place(text: str) -> None:
    try:
        parsed = parse_filter(text, TABLE.schema)
        if set(parsed.columns) <= set(TABLE.schema.names):
            assert len(parsed.holds(EXAMPLE_ROWS)) == TABLE.num_rows
    except LanceError as error:
        assert "the filter" in str(error)  # noqa: PT017  # most are no error


@given(name=st.sampled_from(sorted(FUNCTIONS)), given=st.lists(arguments, max_size=3))
def test_any_function_takes_any_values_or_refuses_them(name: str, given: list[str]) -> None:
    with contextlib.suppress(LanceError):
        made = parse_expression(f"{name}({', '.join(given)})", TABLE.schema)
        assert made.evaluate(EXAMPLE_ROWS).type == made.type


decimals = st.decimals(-99, 99, places=2)


@given(
    held=st.lists(decimals, min_size=1, max_size=5),
    asked=st.decimals(-150, 150, places=3),
    precision=st.sampled_from([4, 10, 38]),
)
def test_decimals_are_compared_as_numbers(
    held: list[Decimal], asked: Decimal, precision: int
) -> None:
    batch = pa.record_batch({"d": pa.array(held, pa.decimal128(precision, 2))})

    def judged(test: str) -> list[bool]:
        holds: list[bool] = parse_filter(test, batch.schema).holds(batch).to_pylist()
        return holds

    for operator, expected in (
        ("=", [each == asked for each in held]),
        ("!=", [each != asked for each in held]),
        ("<", [each < asked for each in held]),
        ("<=", [each <= asked for each in held]),
        (">", [each > asked for each in held]),
        (">=", [each >= asked for each in held]),
    ):
        assert judged(f"d {operator} decimal(8,3) '{asked}'") == expected
    found = judged(f"d IN (decimal(8,3) '{asked}', decimal(8,3) '{held[0]}')")
    assert found == [each in {asked, held[0]} for each in held]
