"""Values given beside a filter: they are values, whatever they hold."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lance_core.errors import InvalidRequestError, TypeMismatchError
from lance_core.expr.filter import parse_expression, parse_filter
from lance_core.expr.limits import FilterLimits
from lance_core.query.request import ScanQuery

DAY = dt.datetime.fromisoformat("2024-01-04T12:00:00")
BATCH = pa.record_batch(
    {
        "i": pa.array([1, 2, None], pa.int32()),
        "f": [0.5, 1.5, None],
        "dec": pa.array([Decimal("1.25"), Decimal("5.00"), None], pa.decimal128(10, 2)),
        "s": ["a", "it's", None],
        "u": pa.array([1, 2**64 - 1, None], pa.uint64()),
        "t": pa.array([3600, 2, None], pa.time32("s")),
        "dur": pa.array([1, 2, None], pa.duration("s")),
        "nums": [[1, 2], [], None],
        "b": [True, False, None],
        "bin": [b"\x05", b"abc", None],
        "d": [DAY.date(), dt.date(2024, 1, 5), None],
        "ts": pa.array([DAY, DAY + dt.timedelta(days=1), None], pa.timestamp("ms")),
        "ny": pa.array(
            [DAY, DAY + dt.timedelta(days=1), None], pa.timestamp("us", "America/New_York")
        ),
    }
)


def rows(text: str, **params: Any) -> list[int]:
    holds = parse_filter(text, BATCH.schema, params=params).holds(BATCH).to_pylist()
    return [row for row, value in enumerate(holds) if value]


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("i = $x", 2, [1]),
        ("$x < i", 1, [1]),
        ("i + $x = 3", 1, [1]),
        ("i = $x", None, []),
        ("i IS NOT DISTINCT FROM $x", None, [2]),
        ("f > $x", 1, [1]),
        ("f > $x", 0.5, [1]),
        ("dec = $x", Decimal("1.25"), [0]),
        ("dec > $x", 2, [1]),
        ("s = $x", "it's", [1]),
        ("s = $x", "' OR '1' = '1", []),
        ("s LIKE $x", "i%", [1]),
        ("starts_with(s, $x)", "it", [1]),
        ("b = $x", True, [0]),
        ("bin = $x", b"abc", [1]),
        ("d = $x", DAY.date(), [0]),
        ("d = $x", "2024-01-05", [1]),
        ("ts = $x", DAY, [0]),
        ("ts = $x", DAY.replace(tzinfo=dt.timezone(dt.timedelta(hours=2))), []),
        ("ts < $x", DAY.date() + dt.timedelta(days=1), [0]),
        ("ts = $x", "2024-01-05 12:00:00", [1]),
        ("ny = $x", DAY.replace(tzinfo=dt.UTC), [0]),
        ("ny = $x", dt.datetime.fromisoformat("2024-01-04T14:00:00+02:00"), [0]),
        ("ny = $x", dt.datetime.fromisoformat("2024-01-04T07:00:00"), [0]),
        ("i IN $x", [2, 3], [1]),
        ("i IN ($x)", (2, 3), [1]),
        ("i IN ($x, 1)", [2], [0, 1]),
        ("i IN $x", [], []),
        ("i NOT IN $x", [], [0, 1]),
        ("i NOT IN $x", [1, None], []),
        ("i IN $x", 2, [1]),
        ("s IN $x", ["a", "b"], [0]),
        ("f IN $x", [1.5, 2], [1]),
        ("d IN $x", ["2024-01-04"], [0]),
        ("d IN $x", [dt.date(2024, 1, 5)], [1]),
        ("i + 0 IN $x", [1.0, 2.5], [0]),
        ("u = $x", 2**64 - 1, [1]),
        ("u IN $x", [2**64 - 1, 7], [1]),
        ("dec = $x", 1.25, [0]),
        ("dec = $x", "1.25", [0]),
        ("dec < $x", "2e0", [0]),
        ("dec IN $x", [1.25, 7.5], [0]),
        ("dec IN ($x, 5)", ["1.25"], [0, 1]),
        ("t = $x", dt.time(1), [0]),
        ("t IN $x", [dt.time(1), dt.time(2)], [0]),
        ("t > $x", "00:30:00", [0]),
        ("dur = $x", dt.timedelta(seconds=1), [0]),
        ("dur < $x", dt.timedelta(milliseconds=1500), [0]),
        ("array_has_any(nums, $x)", [2, 9], [0]),
        ("array_has_all(nums, $x)", [2, 1], [0]),
        ("array_has_all(nums, $x)", [], [0, 1]),
        ("array_has_any(nums, $x)", np.array([2, 9]), [0]),
        ("i = $x", np.int8(2), [1]),
        ("f > $x", np.float32(1), [1]),
        ("s = $x", np.str_("a"), [0]),
        ("ts = $x", np.datetime64("2024-01-04T12:00:00"), [0]),
        ("i IN $x", np.arange(2, 5), [1]),
        ("i IN $x", [np.int64(2)], [1]),
        ("i IN $x", pa.array([2, 3]), [1]),
        ("i = $x", pa.scalar(2), [1]),
    ],
)
def test_a_parameter_is_a_value(text: str, value: object, expected: list[int]) -> None:
    assert rows(text, x=value) == expected


def test_long_lists_may_be_given() -> None:
    assert rows("i IN $many", many=list(range(2, 300_000))) == [1]
    limits = FilterLimits(characters=100, comparisons=10, list_values=10)
    with pytest.raises(InvalidRequestError, match="more than 10 values, which is the limit"):
        parse_filter("i IN $many", BATCH.schema, params={"many": [1] * 11}, limits=limits)


def test_equal_texts_have_equal_values() -> None:
    def text(**params: object) -> str:
        return parse_filter("i = $x", BATCH.schema, params=params).text

    assert text(x=1) == text(x=1, y=2)
    assert len({text(x=1), text(x=2), text(x=None)}) == 3


def test_arrays_are_told_apart_by_what_is_not_shown_of_them() -> None:
    one, other = np.arange(5000), np.arange(5000)
    other[2500] = -1
    queries = [ScanQuery(filter="i IN $x", params={"x": each}) for each in (one, other)]
    texts = {
        parse_filter("i IN $x", BATCH.schema, params=each).text
        for each in ({"x": one}, {"x": other})
    }
    assert len(texts) == 2
    assert queries[0].params != queries[1].params


@pytest.mark.parametrize(
    ("text", "params", "message"),
    [
        (
            "i = $x",
            {},
            r"at character 5: expected a parameter that has a value, found \$x; given: ",
        ),
        ("i = $x", {"y": 1}, r"given: \$y"),
        ("i = $x", {"x": "1"}, "column i is int32 and cannot be compared with '1'"),
        ("i = $x", {"x": 1.5}, "write a number without a point"),
        ("i = $x", {"x": [1]}, "at character 5: expected one value, found a list; lists stand"),
        ("i = $x", {"x": {"a": 1}}, "at character 5: .* is no value of a parameter"),
        ("i IN $x", {"x": [1, "a"]}, "is no value of a parameter"),
        ("i IN $x", {"x": [[1]]}, "is no value of a parameter"),
        ("i IN $x", {"x": ["a"]}, "cannot be compared with 'a'"),
        ("i = $x", {"x": 2**70}, "is no value of a parameter"),
        ("i IN $x", {"x": np.zeros((2, 2))}, "is no value of a parameter"),
        ("dec = $x", {"x": 1.255}, "a parameter may have 2 digits behind the point"),
        ("dec = $x", {"x": "1e99999999"}, "column dec is decimal"),
        ("dec = $x", {"x": float("nan")}, "column dec is decimal"),
        ("dec = $x", {"x": "much"}, "column dec is decimal"),
        ("dec IN $x", {"x": [1.25, 1.255]}, "cannot be compared with 1.255"),
        ("$x = 1", {"x": "i"}, "at character 1"),
        ("i $x 1", {"x": "="}, "at character 3: expected AND, OR or the end"),
        ("$x", {"x": "i = 1"}, "at character 1"),
        ("i = $1", {}, r"found '\$1'"),
    ],
)
def test_what_is_no_value_there_is_refused(
    text: str, params: dict[str, object], message: str
) -> None:
    with pytest.raises((InvalidRequestError, TypeMismatchError), match=message):
        parse_filter(text, BATCH.schema, params=params)


def test_expressions_take_parameters_too() -> None:
    made = parse_expression("i * $factor", BATCH.schema, params={"factor": 3})
    assert made.type == pa.int64()
    assert made.columns == ("i",)
    assert made.evaluate(BATCH).to_pylist() == [3, 6, None]
    with pytest.raises(InvalidRequestError, match="use regexp_like"):
        parse_expression("regexp_match(s, 'a')", BATCH.schema)
