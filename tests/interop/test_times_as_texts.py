"""Texts of days and times: what pylance reads, and no digit of them lost."""

from __future__ import annotations

import datetime as dt

import lance
import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import InvalidRequestError
from lance_core.expr.filter import parse_filter

pytestmark = pytest.mark.interop

DAYS = [
    *("2024-1-4", "2024-01-4", "2024-1-04", "24-1-4", "2024-1-4 00:00:00", "2024-01-04T01:02:03"),
    *("2024-01-04 01:02:03.5", "2024-01-04Z", "2024-01-04 23:00:00-05:00", "20240104", "2024-13-1"),
    *("2024-2-30", "02024-1-4", " 2024-1-4", "2024/1/4", "2024-001"),
    *("2024-01-04 01:02", "0001-1-1", "9999-12-31", "2024-1", "2024", "2024-1-4-1", "202414", ""),
]


@pytest.mark.parametrize("kind", ["date", "timestamp(0)"])
def test_days_are_read_as_pylance_reads_them(tmp_path, kind):
    theirs = lance.write_dataset(pa.table({"s": [*DAYS, None]}), str(tmp_path / "t.lance"))
    text = f"TRY_CAST(s AS {kind})"
    made = lance_core.open_dataset(theirs.uri).scan({"x": text}).read_all()["x"]
    expected = theirs.to_table(columns={"x": text})["x"]
    assert made.to_pylist() == expected.to_pylist()
    assert made.null_count < len(DAYS)


def test_days_of_one_digit_are_literals(tmp_path):
    table = pa.table({"row": [0, 1], "d": [dt.date(2024, 1, 4), dt.date(2024, 1, 5)]})
    theirs = lance.write_dataset(table, str(tmp_path / "t.lance"))
    ours = lance_core.open_dataset(theirs.uri)
    for text in ("d = date '2024-1-4'", "to_date('2024-1-5') > d", "d < CAST('20240105' AS date)"):
        assert ours.scan(["row"], filter=text).read_all()["row"].to_pylist() == [0]
        assert theirs.to_table(columns=["row"], filter=text)["row"].to_pylist() == [0]


UNITS = ("s", "ms", "us", "ns")
SECONDS = [-1, 0, 1, 2, None]
TIMES = pa.record_batch(
    {
        **{
            unit: pa.array(SECONDS, pa.int64()).cast(pa.timestamp("s")).cast(pa.timestamp(unit))
            for unit in UNITS
        },
        "zoned": pa.array(SECONDS, pa.int64()).cast(pa.timestamp("s", "Asia/Tokyo")),
        "clock": pa.array([0, 0, 1, 2, None], pa.time32("s")),
    }
)


def found(text: str, **params: object) -> list[int]:
    holds = parse_filter(text, TIMES.schema, params=params).holds(TIMES).to_pylist()
    return [row for row, value in enumerate(holds) if value]


@pytest.mark.parametrize("digits", ["5", "000001", "000000001"])
@pytest.mark.parametrize("unit", UNITS)
def test_a_text_may_have_more_digits_than_the_column(unit, digits):
    time = f"1970-01-01 00:00:00.{digits}"
    assert found(f"{unit} > '{time}'") == [2, 3]
    assert found(f"{unit} <= '{time}'") == [0, 1]
    assert found(f"'{time}' < {unit}") == [2, 3]
    assert found(f"{unit} = '{time}'") == []
    assert found(f"{unit} <> '{time}'") == [0, 1, 2, 3]
    assert found(f"{unit} IN ('{time}', '1970-01-01 00:00:01')") == [2]
    assert found(f"{unit} NOT IN ('{time}', '1970-01-01 00:00:01')") == [0, 1, 3]
    assert found(f"{unit} BETWEEN '{time}' AND '1970-01-01 00:00:01.{digits}'") == [2]
    assert found(f"{unit} IN $all", all=[time, "1970-01-01 00:00:02"]) == [3]
    assert found(f"{unit} > $time", time=time) == [2, 3]
    many = ", ".join(f"'{time}'" for _ in range(300))
    assert found(f"{unit} IN ({many}, '1970-01-01 00:00:02')") == [3]


def test_more_digits_are_compared_in_zones_and_as_times_of_the_day():
    assert found("zoned > '1970-01-01 09:00:00.5'") == [2, 3]
    assert found("zoned IN ('1970-01-01 09:00:00.5', '1970-01-01 09:00:01')") == [2]
    assert found("clock > '00:00:00.5'") == [2, 3]
    assert found("clock BETWEEN '00:00:00.000001' AND '00:00:01.999999999'") == [2]


def test_times_that_are_none_are_still_refused():
    for text in ("s > 'yesterday.5'", "s > '1970-01-01 00:00:00.5x'", "clock = '25:00:00.5'"):
        with pytest.raises(InvalidRequestError, match="cannot be compared with"):
            found(text)


def test_lists_have_lengths_that_are_no_decimals(tmp_path):
    table = pa.table({"row": [0, 1, 2], "l": pa.array([[1, 2], [], None], pa.list_(pa.int8()))})
    theirs = lance.write_dataset(table, str(tmp_path / "t.lance"))
    ours = lance_core.open_dataset(theirs.uri)
    for text in ("array_length(l)", "cardinality(l)", "array_length(l) > 1"):
        made = ours.scan({"x": text}).read_all()["x"]
        assert made.equals(theirs.to_table(columns={"x": text})["x"])
    for text in ("array_length(l) > 1", "array_length(l) > -1", "array_length(l) IN (0, 5)"):
        expected = theirs.to_table(columns=["row"], filter=text)["row"].to_pylist()
        assert ours.scan(["row"], filter=text).read_all()["row"].to_pylist() == expected
