"""Filters of Spark that datasets judge: by hand-made rules of Spark's meaning, value by value."""

from __future__ import annotations

import datetime as dt
import math
import operator
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from lance_core.expr.filter import parse_filter
from pipeline.datasource_filters import push_filters

UTC = dt.UTC
NAN = [float("nan"), -float("nan"), np.copysign(np.nan, -1.0)]
VALUES = {
    "i8": pa.array([-128, -1, 0, 5, 127, None], pa.int8()),
    "i64": pa.array([-(2**63), -1, 0, 5, 2**63 - 1, None]),
    "u64": pa.array([0, 1, 5, 2**63, 2**64 - 1, None], pa.uint64()),
    "u8": pa.array([0, 1, 5, 100, 255, None], pa.uint8()),
    "f32": pa.array(np.array([0.0, -0.0, 1.5, -np.inf, *NAN], np.float32)),
    "f64": pa.array(np.array([0.0, -0.0, 1.5, np.inf, *NAN])),
    "text": pa.array(["", "a", "A", "ab", "ü%_", None]),
    "large": pa.array(["", "a", "A", "ab", "ü%_", None], pa.large_string()),
    "flag": pa.array([True, False, None]),
    "day": pa.array([dt.date(2026, 11, 28), dt.date(1969, 12, 31), None]),
    "d64": pa.array([dt.date(2026, 11, 28), dt.date(1969, 12, 31), None]).cast(pa.date64()),
    "utc": pa.array([0, 1_700_000_000_123, None]).cast(pa.timestamp("ms", "UTC")),
    "berlin": pa.array([0, 1_700_000_000, None]).cast(pa.timestamp("s", "Europe/Berlin")),
    "wall": pa.array([0, 1_700_000_000_123_456, None]).cast(pa.timestamp("us")),
    "dec": pa.array([Decimal("1.25"), Decimal("-3.00"), None], pa.decimal128(10, 2)),
}
LITERALS: dict[str, list[Any]] = {
    "i8": [-128, 0, 5],
    "i64": [-(2**63), 0, 5],
    "u64": [Decimal(0), Decimal(2**63), Decimal(2**64 - 1)],
    "u8": [0, 5, 255],
    "f32": [0.0, -0.0, 1.5, float("nan"), float("-inf")],
    "f64": [0.0, -0.0, 1.5, float("nan"), float("inf")],
    "text": ["", "a", "ab", "ü%"],
    "large": ["", "a", "ab", "ü%"],
    "flag": [True, False],
    "day": [dt.date(1969, 12, 31), dt.date(2026, 1, 1)],
    "d64": [dt.date(1969, 12, 31), dt.date(2026, 1, 1)],
    "utc": [dt.datetime.fromtimestamp(1_700_000_000.123, UTC), dt.datetime(1970, 1, 1, tzinfo=UTC)],
    "berlin": [dt.datetime(1970, 1, 1, tzinfo=UTC), dt.datetime(1980, 1, 1, tzinfo=UTC)],
    "wall": [dt.datetime(1970, 1, 1), dt.datetime(2000, 1, 1)],  # noqa: DTZ001 - a clock on a wall
    "dec": [Decimal("1.25"), Decimal("0.00")],
}
OPERATORS = {
    EqualTo: operator.eq,
    GreaterThan: operator.gt,
    GreaterThanOrEqual: operator.ge,
    LessThan: operator.lt,
    LessThanOrEqual: operator.le,
}
TEXT_TESTS = {
    StringStartsWith: str.startswith,
    StringEndsWith: str.endswith,
    StringContains: str.__contains__,
}


def order_key(value):
    """Return what sorts and compares as Spark does: NaN is equal to itself and above all."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return value


def meant(given, value):
    """Tell what Spark says of a value: true, false or, as None, unknown."""
    if isinstance(given, Not):
        found = meant(given.child, value)
        return None if found is None else not found
    if isinstance(given, IsNull | IsNotNull):
        return (value is None) is isinstance(given, IsNull)
    if isinstance(given, EqualNullSafe) and None in (value, given.value):
        return value is given.value
    return None if value is None else compared(given, value)


def compared(given, value):
    """Compare a value that is known."""
    if isinstance(given, In):
        keys = [order_key(each) for each in given.value if each is not None]
        is_missed = None if None in given.value else False
        return True if order_key(value) in keys else is_missed
    if type(given) in TEXT_TESTS:
        return TEXT_TESTS[type(given)](value, given.value)
    compare = OPERATORS.get(type(given), operator.eq)
    return compare(order_key(value), order_key(given.value))


def pushed(filters, column):
    """Return which rows pass by what was pushed, None where nothing was."""
    batch = pa.record_batch({"c": VALUES[column]})
    found, others = push_filters(filters, batch.schema, ["c"])
    if found is None:
        return None, others
    return parse_filter(found.text, batch.schema, params=found.params).holds(batch), others


def all_filters(column):
    literals = LITERALS[column]
    for literal in literals:
        for kind in OPERATORS:
            yield kind(("c",), literal)
        yield EqualNullSafe(("c",), literal)
        if isinstance(literal, str):
            yield from (kind(("c",), literal) for kind in TEXT_TESTS)
    yield In(("c",), tuple(literals))
    yield In(("c",), (literals[0], None))
    yield EqualNullSafe(("c",), None)
    yield IsNull(("c",))
    yield IsNotNull(("c",))


@pytest.mark.parametrize("column", VALUES)
def test_what_is_pushed_means_what_it_means_to_spark(column):
    values = VALUES[column].to_pylist()
    num_pushed = 0
    for plain in all_filters(column):
        for given in (plain, Not(plain)):
            found, others = pushed([given], column)
            if found is None:
                assert others == [given]
                continue
            assert others == []
            num_pushed += 1
            wanted = [meant(given, value) is True for value in values]
            assert found.to_pylist() == wanted, given
    assert num_pushed > 10


def test_several_filters_have_to_hold_together():
    found, others = pushed(
        [IsNotNull(("c",)), GreaterThan(("c",), 0), EqualTo(("c",), "x"), LessThan(("c",), 127)],
        "i8",
    )
    assert found.to_pylist() == [False, False, False, True, False, False]
    assert others == [EqualTo(("c",), "x")]


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (pa.float16(), GreaterThan(("c",), 1.0)),
        (pa.timestamp("ns"), EqualTo(("c",), dt.datetime(2026, 1, 1))),  # noqa: DTZ001 - as stored
        (pa.timestamp("us", "UTC"), EqualTo(("c",), dt.datetime(2026, 1, 1))),  # noqa: DTZ001 - wrong
        (pa.uint8(), EqualTo(("c",), -5)),
        (pa.uint8(), LessThan(("c",), 300)),
        (pa.int8(), EqualTo(("c",), True)),
        (pa.int64(), EqualTo(("c",), Decimal("1.5"))),
        (pa.decimal128(5, 1), EqualTo(("c",), Decimal("1.25"))),
        (pa.binary(), EqualTo(("c",), b"a")),
        (pa.time64("us"), EqualTo(("c",), dt.time(1, 2))),
        (pa.list_(pa.int32()), EqualTo(("c",), [1])),
        (pa.bool_(), GreaterThan(("c",), False)),
        (pa.int64(), In(("c",), tuple(range(5000)))),
        (pa.int64(), EqualTo(("hidden",), 1)),
        (pa.int64(), EqualTo(("c", "x"), 1)),
    ],
    ids=range(15),
)
def test_where_the_meaning_may_differ_spark_judges(kind, given):
    schema = pa.schema({"c": kind, "hidden": pa.int64()})
    assert push_filters([given], schema, ["c"]) == (None, [given])


def test_names_are_taken_as_they_are_and_parts_of_structs_found():
    schema = pa.schema({"a b": pa.struct({"X": pa.int64(), "x": pa.string()}), "o`o": pa.int8()})
    found, others = push_filters(
        [EqualTo(("a b", "x"), "1"), GreaterThan(("a b", "X"), 1), IsNull(("o`o",))],
        schema,
        schema.names,
    )
    assert others == [IsNull(("o`o",))]
    assert found is not None
    rows = pa.array([{"X": 2, "x": "1"}, {"X": 1, "x": "1"}, None], schema.field("a b").type)
    batch = pa.record_batch({"a b": rows, "o`o": pa.nulls(3, pa.int8())})
    parsed = parse_filter(found.text, schema, params=found.params)
    flat = pa.record_batch({name: rows.field(name.split(".")[-1]) for name in parsed.columns})
    assert batch.num_rows == 3
    assert parsed.holds(flat).to_pylist()[:2] == [True, False]
