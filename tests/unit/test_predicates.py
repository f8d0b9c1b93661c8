"""Predicates over rows: what they mean in three-valued logic, and what they refuse."""

from __future__ import annotations

import datetime as dt
import time
from decimal import Decimal

import pyarrow as pa
import pytest

from lance_core.errors import InvalidRequestError, TypeMismatchError
from lance_core.expr.predicate import PredicateLimits, parse_predicate

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
        "`odd name`": [7, 8, 9, None],
    }
)


def rows(predicate: str) -> list[int]:
    holds = parse_predicate(predicate).holds(BATCH).to_pylist()
    return [row for row, value in enumerate(holds) if value]


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        ("i = 2", [1]),
        ("i == 2", [1]),
        ("i <> 2", [0, 2]),
        ("i != 2", [0, 2]),
        ("i >= 2 AND i < 3", [1]),
        ("i > 1.5", [1, 2]),
        ("i < 1.5", [0]),
        ("i <= 1.5 or i >= 2.5", [0, 2]),
        ("i = 1.5", []),
        ("i != 1.5", [0, 1, 2]),
        ("i < 1000", [0, 1, 2]),
        ("i > -1000", [0, 1, 2]),
        ("i = 1000", []),
        ("i >= 2e0", [1, 2]),
        ("u = 1e30", []),
        ("u = 18446744073709551615", [2]),
        ("u < -1", []),
        ("f = 0.1", [0]),
        ("f < -1", [1]),
        ("f > 1e30", [2]),
        ("h >= 1.5", [1, 2]),
        ("f > 1e400", []),
        ("f = 1e400", [2]),
        ("h > 65505e-1", []),
        ("d = 1.1", [0]),
        ("d = 1.105", []),
        ("d IN (1.105, 2.2)", [1]),
        ("d < 1.105", [0, 2]),
        ("d > 1e999999999", []),
        ("i = 1e999999999", []),
        ("i < 1e999999999", [0, 1, 2]),
        ("i > -1e999999999", [0, 1, 2]),
        ("i > 1e-999999999", [0, 1, 2]),
        ("i = 0e999999999 OR i = " + "9" * 5000, []),
        ("d >= 2.2", [1]),
        ("d < -2", [2]),
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
        ("i IN (1, 3, 1000, 2.5)", [0, 2]),
        ("i NOT IN (1, 3)", [1]),
        ("i IN (1, NULL)", [0]),
        ("i NOT IN (1, NULL)", []),
        ("i IN (NULL)", []),
        ("d IN (1.1, 2.2)", [0, 1]),
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
    predicate = parse_predicate("a.`b c`.d = 1 AND a.x IS NULL AND a.x = 2")
    assert predicate.columns == ("a.`b c`.d", "a.x")


def test_many_terms_are_fine_and_deep_nesting_is_refused() -> None:
    assert rows(" OR ".join(["i = 1"] * 50_000)) == [0]
    assert rows("(" * 90 + "i = 1" + ")" * 90) == [0]
    for deep in ("(" * 5000 + "i = 1" + ")" * 5000, "NOT " * 5000 + "b"):
        with pytest.raises(InvalidRequestError, match="nested deeper than 100"):
            parse_predicate(deep)


@pytest.mark.parametrize(
    ("predicate", "message"),
    [
        ("", "at character 1: expected a column.*, found the end"),
        ("i =", "at character 4: expected a number.*, found the end"),
        ("i = 1 x", "at character 7: expected AND, OR or the end, found 'x'"),
        ("i IN ()", r"expected a number.*, found '\)'"),
        ("i > 'a", "found "),
        ('"s" = 1', "names with other characters stand between backticks"),
        ("i = = 1", "expected a number.*, found '='"),
        ("i NOT 1", "expected IN or BETWEEN, found '1'"),
        ("i = -'a'", "expected a number"),
        ("(i = 1", r"expected \), found the end"),
        ("count(*) > 1", r"expected AND.*, found '\('"),
        ("NULL", "expected a column.*, found 'NULL'"),
    ],
)
def test_what_is_no_predicate_is_refused(predicate: str, message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        parse_predicate(predicate)


@pytest.mark.parametrize(
    ("predicate", "message"),
    [
        ("i = 'a'", "column i is int8 and cannot be compared with 'a'; write a number"),
        ("i = true", "write a number"),
        ("h = 65505", "column h is halffloat and cannot be compared with 65505"),
        ("s = 1", "write a text between single quotes"),
        ("b = 1", "write TRUE or FALSE"),
        ("i", "column i is int8 and cannot be compared with True"),
        ("l = 1", "ask only whether it IS NULL"),
        ("day = 'today'", "write a date or time between single quotes"),
        ("s IN ('a', 1)", "write a text"),
        ("i IN (1, 'a')", "write a number"),
    ],
)
def test_literals_of_another_kind_are_refused(predicate: str, message: str) -> None:
    with pytest.raises(TypeMismatchError, match=message):
        parse_predicate(predicate).holds(BATCH)


def test_a_predicate_is_text() -> None:
    with pytest.raises(InvalidRequestError, match="give text such as"):
        parse_predicate(None)  # type: ignore[arg-type]  # that is the point


def test_one_text_stands_for_all_spellings_of_a_predicate():
    spellings = ["i>1 and not s in('a','b')", " i > 1 AND NOT s IN ( 'a' , 'b' ) "]
    assert {parse_predicate(each).text for each in spellings} == {
        "i > 1 AND NOT s IN ( 'a' , 'b' )"
    }


@pytest.mark.parametrize(
    ("one", "other"), [("s = 'A'", "s = 'a'"), ("date = 1", "DATE = 1"), ("`or` = 1", "`OR` = 1")]
)
def test_what_is_not_a_keyword_keeps_its_case(one, other):
    assert parse_predicate(one).text != parse_predicate(other).text


def test_a_predicate_tells_where_it_names_its_columns():
    predicate = parse_predicate("i > 1 AND (s = 'a' OR i < 0)")
    assert predicate.columns == ("i", "s")
    assert predicate.places == (1, 12)


def test_a_literal_that_does_not_fit_is_told_with_its_place():
    with pytest.raises(TypeMismatchError, match="at character 12: column i is int8"):
        rows("s = 'a' OR i = 'b'")


@pytest.mark.parametrize("many", [" OR ".join(["i = 3"] * 11), "i IN (1,2,3,4,5,6,7,8,9,10,11)"])
def test_a_predicate_with_too_many_comparisons_is_refused(many: str) -> None:
    limits = PredicateLimits(characters=1000, comparisons=10)
    with pytest.raises(InvalidRequestError, match="more than 10 comparisons, which is the limit"):
        parse_predicate(many, limits)
    assert parse_predicate(many, PredicateLimits(characters=1000, comparisons=11)).holds(BATCH)


def test_a_predicate_that_is_too_long_is_refused() -> None:
    limits = PredicateLimits(characters=10, comparisons=10)
    with pytest.raises(InvalidRequestError, match="has 11 characters, the limit is 10"):
        parse_predicate("s = 'texts'", limits)


def test_reading_and_judging_a_large_predicate_can_be_stopped() -> None:
    class StoppedError(Exception):
        pass

    def stop() -> None:
        raise StoppedError

    for large in (" OR ".join(["i = 1"] * 1000), f"i IN ({', '.join(['1'] * 1000)})"):
        with pytest.raises(StoppedError):
            parse_predicate(large, check=stop)
    parsed = parse_predicate("i = 1 OR NOT (i = 2 AND i = 3)")
    with pytest.raises(StoppedError):
        parsed.holds(BATCH, stop)


def test_time_to_read_a_predicate_grows_with_its_length() -> None:
    def seconds(number: int) -> float:
        text = f"i IN ({', '.join(map(str, range(number)))})"
        started = time.process_time()
        assert rows(text) == [0, 1, 2]
        return time.process_time() - started

    seconds(100)
    assert seconds(200_000) < 100 * seconds(10_000) + 0.5


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        ("i IN (1, 1000, -1000, 3)", [0, 2]),
        ("i IN (2.0, 1e0, 7)", [0, 1]),
        ("u IN (-1, 18446744073709551615, 18446744073709551616)", [2]),
        ("f IN (0.1, -1.5, 1e400)", [0, 1, 2]),
        ("h IN (0.5, 2.5)", [0, 2]),
        ("b IN (TRUE)", [0, 2]),
        ("day IN (DATE '2024-01-01', '2024-01-03')", [0, 2]),
        ("time IN ('2024-01-02T12:00:00', '2024-01-03 12:00:00')", [1, 2]),
        ("time NOT IN ('2024-01-02T12:00:00')", [0, 2]),
        ("u IN (-1)", []),
        ("u NOT IN (-1)", [0, 1, 2]),
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
        parse_predicate(f"i '{'x' * 100_000}'")
    assert len(str(refused.value)) < 300
