"""Which zones may hold what is asked for, against looking at every value."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from lance_core.expr.index_query import AnyOf, Between, StartsWith
from lance_core.index.scalar.key_ranges import key_ranges
from lance_core.index.scalar.zone_bounds import ZoneBounds
from lance_core.index.scalar.zones import Zones

if TYPE_CHECKING:
    from lance_core.expr.index_query import LeafQuery

NAN = float("nan")
VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int16(): st.integers(-9, 9),
    pa.uint64(): st.sampled_from([0, 1, 5, 2**63, 2**64 - 1]),
    pa.float64(): st.sampled_from([NAN, -NAN, 0.0, -0.0, -math.inf, math.inf, 1.5, -2.5, 1e300]),
    pa.float32(): st.sampled_from([NAN, -NAN, 0.0, -0.0, -math.inf, math.inf, 1.5, -2.5]),
    pa.string(): st.text(alphabet="abé\U0001f600\0", max_size=3),
    pa.binary(): st.binary(max_size=2),
    pa.bool_(): st.booleans(),
}


def is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def order(value: Any) -> Any:
    """Return what orders values as the index does: NaNs and zeros by their sign, texts by bytes."""
    if isinstance(value, float):
        sign = math.copysign(1, value)
        return sign, sign * (2e308 if math.isnan(value) else abs(value)), math.isnan(value) * sign
    return value.encode() if isinstance(value, str) else value


def bounds_of(kind: pa.DataType, zones: list[list[Any]]) -> ZoneBounds:
    """Return bounds as pylance keeps them."""
    minima, maxima, has_nans = [], [], []
    for zone in zones:
        nans = [value for value in zone if is_nan(value)]
        numbers = sorted((v for v in zone if v is not None and not is_nan(v)), key=order)
        minima.append(numbers[0] if numbers else None)
        maxima.append(NAN if nans else numbers[-1] if numbers else None)
        has_nans.append(len(nans) > 0)
    is_empty = [least is None for least in minima]
    return ZoneBounds.of(
        pa.array(minima, kind),
        pa.array(maxima, kind),
        np.array(has_nans, bool),
        np.array(is_empty, bool),
    )


def in_range(query: Between, value: Any) -> bool:
    low, high = (None if each is None else each.as_py() for each in (query.lower, query.upper))
    key = order(value)
    is_above = low is None or key > order(low) or (query.includes_lower and key == order(low))
    is_below = high is None or key < order(high) or (query.includes_upper and key == order(high))
    return is_above and is_below


def check(kind: pa.DataType, zones: list[list[Any]], query: LeafQuery, passes: Any) -> None:
    """Check that zones with a value are chosen, and of the others none that its bounds exclude."""
    chosen = bounds_of(kind, zones).may_hold(key_ranges(query)).tolist()
    for zone, is_chosen in zip(zones, chosen, strict=True):
        present = [value for value in zone if value is not None]
        if any(passes(value) for value in present):
            assert is_chosen
        elif len(present) == 0 or _is_certain(present):
            assert not is_chosen


def _is_certain(values: list[Any]) -> bool:
    """Tell whether the bounds of a zone of these tell all: one value, which is not 0 or NaN."""
    return len(set(values)) == 1 and values[0] != 0 and not is_nan(values[0])


kinds = st.sampled_from(list(VALUES))


@given(kind=kinds, data=st.data())
def test_zones_with_a_value_in_a_range_are_chosen(kind: pa.DataType, data: st.DataObject) -> None:
    values = VALUES[kind]
    zones = data.draw(st.lists(st.lists(values | st.none(), max_size=4), max_size=5))
    ends = [data.draw(values | st.none()) for _ in range(2)]
    if None not in ends:
        ends.sort(key=order)
    low, high = (None if end is None else pa.scalar(end, kind) for end in ends)
    query = Between(low, high, data.draw(st.booleans()), data.draw(st.booleans()))
    check(kind, zones, query, lambda value: in_range(query, value))


@given(kind=kinds, data=st.data())
def test_zones_with_one_of_some_values_are_chosen(kind: pa.DataType, data: st.DataObject) -> None:
    values = VALUES[kind]
    zones = data.draw(st.lists(st.lists(values | st.none(), max_size=4), max_size=5))
    wanted = data.draw(st.lists(values, max_size=5))
    keys = {order(value) for value in wanted}
    check(kind, zones, AnyOf(pa.array(wanted, kind)), lambda value: order(value) in keys)


@pytest.mark.parametrize("kind", [pa.string(), pa.binary()])
@given(data=st.data())
def test_zones_with_a_prefix_are_chosen(kind: pa.DataType, data: st.DataObject) -> None:
    values = VALUES[kind]
    zones = data.draw(st.lists(st.lists(values | st.none(), max_size=4), max_size=5))
    prefix = data.draw(values)
    query = StartsWith(pa.scalar(prefix, kind), is_exact=True)
    check(kind, zones, query, lambda value: value.startswith(prefix))


@given(data=st.data())
def test_the_rows_of_chosen_zones_are_theirs(data: st.DataObject) -> None:
    number = st.integers(0, 60)
    places = data.draw(st.lists(st.tuples(st.integers(0, 2), number, st.integers(0, 9))))
    chosen = np.array(
        data.draw(st.lists(st.booleans(), min_size=len(places), max_size=len(places))), bool
    )
    table = np.array(places, np.int64).reshape(-1, 3)
    zones = Zones(table[:, 0], table[:, 1], table[:, 1] + table[:, 2])
    expected = {
        (fragment, offset)
        for (fragment, start, length), is_chosen in zip(places, chosen.tolist(), strict=True)
        if is_chosen
        for offset in range(start, start + length)
    }
    rows = zones.rows(chosen)
    assert {(key, offset) for key, bitmap in rows.items() for offset in bitmap} == expected
    assert all(len(bitmap) > 0 for bitmap in rows.values())
