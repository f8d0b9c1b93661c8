"""Predicates over rows: what they mean in three-valued logic, and what they refuse."""

from __future__ import annotations

import datetime as dt
import time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lance_core.errors import InvalidRequestError, TypeMismatchError, UnknownColumnError
from lance_core.expr.filter import Filter, parse_filter
from lance_core.expr.limits import FilterLimits

UTC = dt.UTC
BATCH = pa.record_batch(
    {
        "i": pa.array([1, 2, 3, None], pa.int8()),
        "u": pa.array([0, 1, 2**64 - 1, None], pa.uint64()),
        "f": pa.array([0.1, -1.5, float("inf"), None], pa.float32()),
        "h": pa.array([0.5, 1.5, 2.5, None], pa.float16()),
        "d": pa.array([Decimal("1.10"), Decimal("2.20"), Decimal("-3.00"), None]),
        "s": ["a", "it's", "", None],
        "t": pa.array(["a", "b", "c", None]).dictionary_encode(),
        "b": [True, False, True, None],
        "day": pa.array([dt.date(2024, 1, day) for day in (1, 2, 3)] + [None]),
        "time": pa.array(
            [dt.datetime(2024, 1, day, 12, tzinfo=UTC) for day in (1, 2, 3)] + [None],
            pa.timestamp("us", "UTC"),
        ),
        "l": [[1], [], [2], None],
        "odd name": [7, 8, 9, None],
    }
)


def parsed(predicate: str, **options: Any) -> Filter:
    return parse_filter(predicate, BATCH.schema, **options)


def rows(predicate: str) -> list[int]:
    holds = parsed(predicate).holds(BATCH).to_pylist()
    return [row for row, value in enumerate(holds) if value]


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        ("i = 2", [1]),
        ("i == 2", [1]),
        ("i <> 2", [0, 2]),
        ("i != 2", [0, 2]),
        ("i >= 2 AND i < 3", [1]),
        ("u = 18446744073709551615", [2]),
        ("f = 0.1", [0]),
        ("f < -1", [1]),
        ("f > 1e30", [2]),
        ("h >= 1.5", [1, 2]),
        ("f > 1e400", []),
        ("f = 1e400", [2]),
        ("h > 65505e-1", []),
        ("d < -2", [2]),
        ("d >= 2", [1]),
        ("d = decimal(10,2) '1.10'", [0]),
        ("d < decimal(10,3) '1.105'", [0, 2]),
        ("d * 2 = 2.2", [0]),
        ("i + 0 > 1.5", [1, 2]),
        ("i + 0 < 1000", [0, 1, 2]),
        ("CAST(i AS double) IN (2, 2.5, 3.0)", [1, 2]),
        ("s = 'it''s'", [1]),
        ("s = ''", [2]),
        ("s < 'b'", [0, 2]),
        ("t = 'b'", [1]),
        ("t IN ('a', 'c')", [0, 2]),
        ("b", [0, 2]),
        ("NOT b", [1]),
        ("b = false", [1]),
        ("day > '2024-01-01'", [1, 2]),
        ("day = date '2024-01-03'", [2]),
        ("time > timestamp '2024-01-02 00:00:00'", [1, 2]),
        ("time = '2024-01-02T12:00:00'", [1]),
        ("l IS NULL", [3]),
        ("i IS NOT NULL", [0, 1, 2]),
        ("i IN (1, 3, 100)", [0, 2]),
        ("i NOT IN (1, 3)", [1]),
        ("i IN (1, NULL)", [0]),
        ("i NOT IN (1, NULL)", []),
        ("i IN (NULL)", []),
        ("i BETWEEN 2 AND 3", [1, 2]),
        ("i BETWEEN 3 AND 1", []),
        ("i NOT BETWEEN 2 AND 3", [0]),
        ("i = NULL", []),
        ("NOT (i = NULL)", []),
        ("i = 1 OR i = NULL", [0]),
        ("NOT (i = 1 AND b)", [1, 2]),
        ("NOT i = 1", [1, 2]),
        ("i = 1 OR i = 2 AND b", [0]),
        ("(i = 1 OR i = 2) AND b", [0]),
        ("`odd name` = 8", [1]),
        ("true", [0, 1, 2, 3]),
        ("FALSE OR i = 1", [0]),
    ],
)
def test_rows_are_judged(predicate: str, expected: list[int]) -> None:
    assert rows(predicate) == expected


def test_parts_of_structs_are_named_by_paths() -> None:
    schema = pa.schema(
        [("a", pa.struct([("b c", pa.struct([("d.e", pa.int8())])), ("x", pa.int8())]))]
    )
    predicate = parse_filter("a.`b c`.`d.e` = 1 AND A.x IS NULL AND a['x'] = 2", schema)
    assert predicate.columns == ("a.b c.`d.e`", "a.x")


def test_many_terms_are_fine_and_deep_nesting_is_refused() -> None:
    assert rows(" OR ".join(["i = 1"] * 5_000)) == [0]
    assert rows("(" * 50 + "i = 1" + ")" * 50) == [0]
    for deep in ("(" * 5000 + "i = 1" + ")" * 5000, "NOT " * 5000 + "b"):
        with pytest.raises(InvalidRequestError, match="nested deeper than 50"):
            parsed(deep)


@pytest.mark.parametrize(
    ("predicate", "message"),
    [
        ("", "at character 1: expected a column.*, found the end"),
        ("i =", "at character 4: expected a number.*, found the end"),
        ("i = 1 x", "at character 7: expected AND, OR or the end, found 'x'"),
        ("i IN ()", "expected at least one value in the brackets of IN"),
        ("i > 'a", "found "),
        ('"s" = 1', "at character 1: .* write `s` for the column, 's' for the text"),
        ("i ? 1", "names with other characters stand between backticks"),
        ("i = = 1", "expected a number.*, found '='"),
        ("i NOT 1", "at character 3: expected AND, OR or the end, found 'NOT'"),
        ("i = -'a'", "at character 5: 'a' cannot change its sign"),
        ("(i = 1", r"expected \), found the end"),
        ("count(*) > 1", "at character 1: count is not supported; a filter judges one row"),
        ("NULL", "at character 1: expected a test, found NULL"),
    ],
)
def test_what_is_no_predicate_is_refused(predicate: str, message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        parsed(predicate)


@pytest.mark.parametrize(
    ("predicate", "message"),
    [
        ("i = 'a'", "column i is int8 and cannot be compared with 'a'; write a number"),
        ("i = true", "write a number"),
        ("h = 65505", "column h is halffloat and cannot be compared with 65505"),
        ("s = 1", "write a text between single quotes"),
        ("b = 1", "write TRUE or FALSE"),
        ("i", "column i is int8 and no test of its own"),
        ("l = 1", r"column l .* cannot be compared with 1; write a list, such as \[1, 2\]"),
        (
            "i = 1.5",
            "column i is int8 .* with 1.5; write a number without a point from -128 to 127",
        ),
        ("i < 1000", "write a number without a point"),
        ("u > -1", "from 0 to 18446744073709551615"),
        ("u IN (1, -1)", "cannot be compared with -1"),
        ("d = 1.1", r"or decimal\(3,2\) '1.5'"),
        ("i = 1e999999999 OR i = 1", "write a number without a point"),
        ("day = 'today'", "write a date or time between single quotes"),
        ("s IN ('a', 1)", "write a text"),
        ("i IN (1, 'a')", "write a number"),
    ],
)
def test_literals_of_another_kind_are_refused(predicate: str, message: str) -> None:
    with pytest.raises(TypeMismatchError, match=message):
        parsed(predicate).holds(BATCH)


def test_a_predicate_is_text() -> None:
    with pytest.raises(InvalidRequestError, match="give text such as"):
        parsed(None)  # type: ignore[arg-type]  # that is the point


def test_one_text_stands_for_all_spellings_of_a_predicate():
    spellings = ["i>1 and not s in('a','b')", " i > 1 AND NOT s IN ( 'a' , 'b' ) "]
    assert {parsed(each).text for each in spellings} == {"i > 1 AND NOT s IN ( 'a' , 'b' )"}


@pytest.mark.parametrize(
    ("one", "other"), [("s = 'A'", "s = 'a'"), ("`odd name` = 1", "`odd Name` = 1")]
)
def test_what_is_not_a_keyword_keeps_its_case(one, other):
    schema = pa.schema([("s", pa.string()), ("odd name", pa.int8()), ("odd Name", pa.int8())])
    assert parse_filter(one, schema).text != parse_filter(other, schema).text


def test_a_column_that_is_not_there_is_told_with_its_place():
    assert parsed("i > 1 AND (s = 'a' OR i < 0)").columns == ("i", "s")
    with pytest.raises(UnknownColumnError, match='"no" in the filter at character 12; columns are'):
        parsed("i > 1 AND (no = 'a' OR i < 0)")


def test_a_literal_that_does_not_fit_is_told_with_its_place():
    with pytest.raises(TypeMismatchError, match="at character 12: column i is int8"):
        rows("s = 'a' OR i = 'b'")


@pytest.mark.parametrize("many", [" OR ".join(["i = 3"] * 11), "i IN (1,2,3,4,5,6,7,8,9,10,11)"])
def test_a_predicate_with_too_many_comparisons_is_refused(many: str) -> None:
    limits = FilterLimits(characters=1000, comparisons=10)
    with pytest.raises(InvalidRequestError, match="more than 10 comparisons, which is the limit"):
        parsed(many, limits=limits)
    assert parsed(many, limits=FilterLimits(characters=1000, comparisons=11)).holds(BATCH)


def test_a_predicate_that_is_too_long_is_refused() -> None:
    limits = FilterLimits(characters=10, comparisons=10)
    with pytest.raises(InvalidRequestError, match="has 11 characters, the limit is 10"):
        parsed("s = 'texts'", limits=limits)


def test_reading_and_judging_a_large_predicate_can_be_stopped() -> None:
    class StoppedError(Exception):
        pass

    def stop() -> None:
        raise StoppedError

    for large in (" OR ".join(["i = 1"] * 1000), f"i IN ({', '.join(['1'] * 1000)})"):
        with pytest.raises(StoppedError):
            parsed(large, check=stop)
    judged = parsed("i = 1 OR NOT (i = 2 AND i = 3)")
    with pytest.raises(StoppedError):
        judged.holds(BATCH, stop)


def test_time_to_read_a_predicate_grows_with_its_length() -> None:
    def seconds(number: int) -> float:
        text = f"u IN ({', '.join(map(str, range(number)))})"
        started = time.process_time()
        assert rows(text) == [0, 1]
        return time.process_time() - started

    seconds(100)
    assert seconds(200_000) < 100 * seconds(10_000) + 0.5


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        ("f IN (0.1, -1.5, 1e400)", [0, 1, 2]),
        ("h IN (0.5, 2.5)", [0, 2]),
        ("b IN (TRUE)", [0, 2]),
        ("day IN (DATE '2024-01-01', '2024-01-03')", [0, 2]),
        ("time IN ('2024-01-02T12:00:00', '2024-01-03 12:00:00')", [1, 2]),
        ("time NOT IN ('2024-01-02T12:00:00')", [0, 2]),
    ],
)
def test_lists_of_literals_are_looked_in(predicate: str, expected: list[int]) -> None:
    assert rows(predicate) == expected


@pytest.mark.parametrize("list_of_values", ["'2024-01-01', 'today'", "'2024-01-01', 3"])
def test_the_literal_of_a_list_that_does_not_fit_is_told(list_of_values: str) -> None:
    culprit = list_of_values.partition(", ")[2]
    with pytest.raises(TypeMismatchError, match=f"cannot be compared with {culprit}; write a date"):
        rows(f"day IN ({list_of_values})")


def test_long_literals_are_told_shortened() -> None:
    with pytest.raises(TypeMismatchError) as told:
        rows(f"i = '{'x' * 100_000}'")
    assert "xxx..." in str(told.value)
    assert len(str(told.value)) < 300
    with pytest.raises(InvalidRequestError) as refused:
        parsed(f"i '{'x' * 100_000}'")
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize(
    ("predicate", "message"),
    [
        ("st.X = 1", r'"st\.X" in .* capitals of parts matter; columns are: st\.x, st\.`y\.z`'),
        ("st.x.y = 1", r'"st\.x\.y" in'),
        ("h = 65536", "write a number from -65504 to 65504"),
        ("fb = X'00'", "write 4 bytes, each as two hexadecimal digits"),
    ],
)
def test_refusals_tell_what_the_column_holds(predicate: str, message: str) -> None:
    part = pa.struct([("x", pa.int8()), ("y.z", pa.int8())])
    schema = pa.schema({"st": part, "h": pa.float16(), "fb": pa.binary(4)})
    with pytest.raises(InvalidRequestError, match=message):
        parse_filter(predicate, schema)
