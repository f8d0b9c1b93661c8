"""Wall-clock times of zones are those of Python's zoneinfo, long ago and far ahead."""

from __future__ import annotations

import datetime as dt
from functools import cache
from random import Random
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from lance_core.errors import TypeMismatchError
from lance_core.expr.filter import parse_expression, parse_filter
from lance_core.expr.zones import instants, seconds_ahead, wall_clock

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
DAY = 86_400
ZONES = (
    *("America/New_York", "Europe/London", "Europe/Dublin", "Asia/Kolkata", "Africa/Casablanca"),
    *("Australia/Lord_Howe", "Pacific/Apia", "America/Sao_Paulo", "America/Nuuk", "Asia/Gaza"),
    *("Africa/Monrovia", "Antarctica/Troll", "Etc/GMT+5", "UTC"),
)
FAR_AHEAD = 40_000_000_000
"""The year 3237."""


def moment(second: int) -> dt.datetime:
    return EPOCH + dt.timedelta(seconds=second)


def ahead(second: int, zone: str) -> int:
    offset = moment(second).astimezone(ZoneInfo(zone)).utcoffset()
    assert offset is not None
    return int(offset.total_seconds())


@cache
def odd_seconds(zone: str) -> list[int]:
    """Return times of all ages, and those right before, at and behind changes of clocks."""
    random = Random(zone)
    drawn = [random.randrange(-5_000_000_000, FAR_AHEAD) for _ in range(50)]
    for year in (1883, 1916, 2011, 2024, 2037, 2038, 2100, 2437, 2438):
        start = int(dt.datetime(year, 1, 1, tzinfo=dt.UTC).timestamp())
        for low in range(start, start + 365 * DAY, 28 * DAY):
            before, after = low, low + 28 * DAY
            if ahead(before, zone) == ahead(after, zone):
                continue
            while after - before > 1:
                middle = (before + after) // 2
                is_old = ahead(middle, zone) == ahead(low, zone)
                before, after = (middle, after) if is_old else (before, middle)
            drawn += [before, after, after + 1800, after + 5400]
    return drawn


def stamps(seconds: list[int], unit: str = "s", zone: str | None = None) -> pa.Array:
    return pa.array(seconds, pa.int64()).cast(pa.timestamp("s")).cast(pa.timestamp(unit, zone))


@pytest.mark.parametrize("unit", ["s", "us"])
@pytest.mark.parametrize("zone", ZONES)
def test_clocks_show_what_zoneinfo_says(zone: str, unit: str) -> None:
    seconds = odd_seconds(zone)
    expected = [second + ahead(second, zone) for second in seconds]
    assert wall_clock(stamps(seconds, unit, zone)).equals(stamps(expected, unit))
    assert wall_clock(stamps(seconds, unit, zone)[0]).equals(stamps(expected, unit)[0])
    assert seconds_ahead(stamps(seconds, unit, zone)).tolist() == [
        ahead(each, zone) for each in seconds
    ]


@pytest.mark.parametrize("zone", ZONES)
def test_a_time_is_the_first_at_which_clocks_show_it(zone: str) -> None:
    shown = [second + ahead(second, zone) for second in odd_seconds(zone)]
    expected = []
    for each in shown:
        wall = moment(each).replace(tzinfo=ZoneInfo(zone), fold=0)
        expected.append(int((wall.astimezone(dt.UTC) - EPOCH).total_seconds()))
    assert instants(stamps(shown), zone).equals(stamps(expected, zone=zone))


@pytest.mark.parametrize("year", [2024, 2042, 2500])
def test_a_time_that_clocks_skip_is_that_of_the_change(year: int) -> None:
    first = dt.datetime(year, 3, 1, 2, tzinfo=dt.UTC)
    sunday = first + dt.timedelta(days=(6 - first.weekday()) % 7 + 7)
    skipped = pa.array([sunday.replace(minute=30, tzinfo=None)], pa.timestamp("us"))
    change = sunday + dt.timedelta(hours=5)
    found = instants(skipped, "America/New_York").cast(pa.timestamp("us", "UTC"))
    assert found.to_pylist() == [change]


def test_nulls_and_empty_columns_stay() -> None:
    kind = pa.timestamp("ns", "Europe/Paris")
    assert wall_clock(pa.array([None, 0], kind)).to_pylist()[0] is None
    assert len(wall_clock(pa.array([], kind))) == 0
    assert instants(pa.array([None], pa.timestamp("ms")), "Asia/Tokyo").to_pylist() == [None]
    assert not wall_clock(pa.scalar(None, kind)).is_valid


@pytest.mark.parametrize(("zone", "hours"), [("+02:00", 2), ("-0530", -5.5), ("+09", 9)])
def test_zones_may_be_offsets(zone: str, hours: float) -> None:
    seconds = [0, -5_000_000_000, FAR_AHEAD]
    expected = stamps([second + int(hours * 3600) for second in seconds])
    assert wall_clock(stamps(seconds, zone=zone)).equals(expected)
    assert instants(expected, zone).equals(stamps(seconds, zone=zone))


@pytest.mark.parametrize("zone", ["Nowhere/Town", "America", "../UTC", "/etc/passwd", "+2", "utc"])
def test_unknown_zones_are_refused_with_the_place(zone: str) -> None:
    schema = pa.schema({"x": pa.timestamp("us", zone)})
    found = parse_filter("1 = 1 AND date_part('hour', x) = 1", schema)
    batch = pa.record_batch([pa.array([0], pa.timestamp("us", zone))], schema=schema)
    with pytest.raises(TypeMismatchError, match=r"character 11: the time zone .* is not known"):
        found.evaluate(batch)
    with pytest.raises(TypeMismatchError, match=r"the time zone .* is not known"):
        parse_filter("x > timestamp '2024-01-01 00:00:00'", schema)


@pytest.mark.parametrize("zone", ZONES)
def test_functions_count_in_the_zone(zone: str) -> None:
    seconds = odd_seconds(zone)
    kind = pa.timestamp("us", zone)
    batch = pa.record_batch({"x": stamps(seconds, "us", zone)})
    walls = [moment(second).astimezone(ZoneInfo(zone)) for second in seconds]
    for text, expected in {
        "date_part('second', x)": [each.second for each in walls],
        "date_part('hour', x)": [each.hour for each in walls],
        "date_part('doy', x)": [each.timetuple().tm_yday for each in walls],
        "date_part('week', x)": [each.isocalendar().week for each in walls],
        "date_part('epoch', x)": seconds,
        "to_date(x)": [each.date() for each in walls],
        "CAST(x AS date)": [each.date() for each in walls],
        "arrow_cast(x, 'Time32(Second)')": [each.time() for each in walls],
        "CAST(arrow_cast(date_trunc('hour', x), 'Timestamp(s, None)') AS bigint)": [
            second - each.minute * 60 - each.second
            for second, each in zip(seconds, walls, strict=True)
        ],
    }.items():
        made = parse_expression(text, pa.schema({"x": kind})).evaluate(batch)
        assert made.to_pylist() == expected, text
