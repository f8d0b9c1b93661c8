"""Filters of times with zones find pylance's rows, before standard time, after 2037, by index."""

from __future__ import annotations

import datetime as dt
from random import Random

import lance
import pyarrow as pa
import pytest

import lance_core

pytestmark = pytest.mark.interop

ZONES = {"ny": "America/New_York", "london": "Europe/London", "lord": "Australia/Lord_Howe"}
NEW_YORKS = ("ny", "day")
STARTS = {
    "long ago": -2_717_650_802,
    "no leap year of old": -2_208_990_000,
    "now": 1_720_000_000,
    "far": 2_284_004_350,
    "farther": 4_086_892_800,
}
"""pylance ends daylight saving with 2099, on which zones have not decided."""


def times() -> pa.Array:
    random = Random(5)
    drawn = [
        start + random.randrange(-200, 200) * 3600 + random.randrange(3600)
        for start in STARTS.values()
        for _ in range(12)
    ]
    return pa.array([*STARTS.values(), *drawn, None], pa.int64()).cast(pa.timestamp("s"))


STAMPS = times()
DAYS = STAMPS.cast(pa.date32(), safe=False)


@pytest.fixture(scope="module", params=[None, "BTREE", "BITMAP"])
def both(request, tmp_path_factory):
    uri = str(tmp_path_factory.mktemp("zoned") / "t.lance")
    table = pa.table(
        {
            "row": range(len(STAMPS)),
            "day": DAYS,
            "plain": STAMPS,
            **{name: STAMPS.cast(pa.timestamp("us", zone)) for name, zone in ZONES.items()},
        }
    )
    theirs = lance.write_dataset(table, uri, max_rows_per_file=30)
    if request.param is not None:
        for name in ("day", *ZONES):
            lance_core.open_dataset(uri).create_index(name, request.param)
    return theirs, lance_core.open_dataset(uri)


def rows(both, text: str) -> tuple[list[int], list[int]]:
    theirs, ours = both
    expected = theirs.to_table(columns=["row"], filter=text, use_scalar_index=False)
    return ours.scan(["row"], filter=text).read_all()["row"].to_pylist(), expected[
        "row"
    ].to_pylist()


def filters(name: str) -> list[str]:
    made = []
    for start in STARTS.values():
        wall = dt.datetime.fromtimestamp(start, dt.UTC).replace(tzinfo=None)
        made += [f"{name} {operator} timestamp '{wall}'" for operator in ("=", "<", ">=", "<>")] + [
            f"{name} = date '{wall.date()}'",
            f"CAST({name} AS date) = date '{wall.date()}'",
            f"to_date({name}) = date '{wall.date()}'",
            f"NOT (to_date({name}) <= date '{wall.date()}')",
            f"{name} BETWEEN timestamp '{wall}' AND timestamp '{wall + dt.timedelta(hours=30)}'",
            f"date_trunc('day', {name}) >= timestamp '{wall.date()}'",
        ]
    made += [f"date_part('{part}', {name}) = {at}" for part in ("hour", "dow") for at in range(7)]
    made += [f"date_part('second', {name}) = {at}" for at in (0, 2, 56, 58)]
    made += [f"{name} = plain", f"{name} < day", f"{name} > london", f"day >= {name}"]
    return made


@pytest.mark.parametrize("name", ZONES)
def test_a_filter_of_times_with_a_zone_finds_the_rows_of_pylance(both, name):
    found = 0
    for text in filters(name):
        ours, expected = rows(both, text)
        assert ours == expected, text
        found += len(ours)
    assert found > 0


@pytest.mark.parametrize("name", ZONES)
def test_values_made_of_times_with_a_zone_are_those_of_pylance(both, name):
    theirs, ours = both
    units = ("second", "minute", "hour", "day", "week", "month", "quarter", "year")
    texts = [f"date_trunc('{unit}', {name})" for unit in units]
    texts += [f"date_part('{unit}', {name})" for unit in (*units, "doy", "dow", "epoch")]
    texts += [f"CAST({name} AS {kind})" for kind in ("string", "date", "timestamp", "bigint")]
    texts += [f"to_date({name})", f"to_timestamp({name})", f"arrow_cast({name}, 'Time64(us)')"]
    made = ours.scan({text: text for text in texts}).read_all()
    for text in texts:
        expected = theirs.to_table(columns={"x": text})["x"].combine_chunks()
        assert made[text].combine_chunks().equals(expected), text
