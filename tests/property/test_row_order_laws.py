from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st
from pyroaring import BitMap

from lance_core.errors import InvalidRequestError, TypeMismatchError
from lance_core.row_set import words_of
from lance_core.scan.chosen_rows import BitmapRows, MaskedRows
from lance_core.scan.ordering import OrderBy, require_ordered, sortable, sorted_positions
from lance_core.scan.top_rows import TopRows

if TYPE_CHECKING:
    Value = float | int | str | bytes | bool | None

floats = st.floats(width=64) | st.sampled_from([0.0, -0.0, float("nan"), -float("nan")])
columns = st.sampled_from(
    [
        (pa.float64(), floats),
        (pa.float32(), st.floats(width=32) | st.sampled_from([0.0, -0.0])),
        (pa.float16(), st.floats(width=16)),
        (pa.int8(), st.integers(-3, 3)),
        (pa.uint64(), st.integers(0, 2**64 - 1)),
        (pa.bool_(), st.booleans()),
        (pa.string(), st.text("aZé", max_size=3)),
        (pa.string_view(), st.text("aZé", max_size=3)),
        (pa.large_binary(), st.binary(max_size=2)),
        (pa.dictionary(pa.int8(), pa.string()), st.text("abc", max_size=2)),
        (pa.timestamp("us", "UTC"), st.integers(-5, 5)),
        (pa.duration("s"), st.integers(-5, 5)),
        (pa.null(), st.none()),
    ]
)
orders = st.builds(OrderBy, st.just("c"), st.booleans(), st.booleans())


def total_order(value: Value) -> object:
    """Return a key by which Python orders values as the page says."""
    if isinstance(value, float):
        bits = struct.unpack("<q", struct.pack("<d", value))[0]
        return bits if bits >= 0 else bits ^ (2**63 - 1)
    return value.encode() if isinstance(value, str) else value


def by_hand(rows: list[tuple[Value, ...]], order: list[OrderBy]) -> list[int]:
    """Order rows by one column after the other, the last first: sorting is stable."""
    places = list(range(len(rows)))
    for column, each in reversed(list(enumerate(order))):
        nulls = [place for place in places if rows[place][column] is None]
        others = [place for place in places if rows[place][column] is not None]
        groups: dict[object, list[int]] = {}
        for place in others:
            groups.setdefault(total_order(rows[place][column]), []).append(place)
        keys = sorted(groups, reverse=not each.ascending)  # type: ignore[type-var]  # of one type
        others = [place for key in keys for place in groups[key]]
        places = nulls + others if each.nulls_first else others + nulls
    return places


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[pa.Array], list[tuple[Value, ...]]]:
    kinds = draw(st.lists(columns, min_size=1, max_size=3))
    num_rows = draw(st.integers(0, 30))
    values = [
        draw(st.lists(st.none() | own, min_size=num_rows, max_size=num_rows)) for _, own in kinds
    ]
    arrays = [
        pa.array(own, kind.value_type).cast(kind)
        if pa.types.is_dictionary(kind)
        else pa.array(own, pa.int64()).cast(kind)
        if pa.types.is_temporal(kind)
        else pa.array(own, kind)
        for own, (kind, _) in zip(values, kinds, strict=True)
    ]
    return arrays, list(zip(*values, strict=True))


@given(tables(), st.data())
def test_rows_are_sorted_by_total_order_and_ties_stay(
    table: tuple[list[pa.Array], list[tuple[Value, ...]]], data: st.DataObject
) -> None:
    arrays, rows = table
    order = data.draw(st.lists(orders, min_size=len(arrays), max_size=len(arrays)))
    keys = [sortable(array) for array in arrays]
    assert sorted_positions(keys, order).tolist() == by_hand(rows, order)


@given(tables(), st.data(), st.none() | st.integers(1, 12), st.integers(1, 7))
def test_the_top_rows_are_the_first_of_all_sorted(
    table: tuple[list[pa.Array], list[tuple[Value, ...]]],
    data: st.DataObject,
    most: int | None,
    piece: int,
) -> None:
    arrays, rows = table
    order = data.draw(st.lists(orders, min_size=len(arrays), max_size=len(arrays)))
    top = TopRows(order, most, spare_rows=3)
    addresses = np.arange(len(rows), dtype=np.uint64)
    for start in range(0, len(rows), piece):
        part = [array.slice(start, piece) for array in arrays]
        top.offer(part, addresses[start : start + piece])
    assert top.addresses().tolist() == by_hand(rows, order)[:most]


@given(st.sets(st.integers(0, 200_000), max_size=50), st.integers(0, 60), st.integers(0, 60))
def test_members_of_a_set_are_found_by_their_places(
    members: set[int], start: int, stop: int
) -> None:
    words = words_of(np.array(sorted(members), np.uint32), 200_001)
    start, stop = min(start, len(members)), min(stop, len(members))
    for rows in (MaskedRows(words, len(members)), BitmapRows(BitMap(members))):
        assert rows.row_offsets(start, max(start, stop)).tolist() == sorted(members)[start:stop]


@pytest.mark.parametrize(
    "kind",
    [pa.list_(pa.int8()), pa.list_(pa.float32(), 2), pa.struct({"x": pa.int8()})],
    ids=str,
)
def test_values_without_an_order_are_refused(kind: pa.DataType) -> None:
    with pytest.raises(TypeMismatchError, match='order_by: column "c" holds'):
        require_ordered(OrderBy("c"), kind)


@pytest.mark.parametrize("given", [{"ascending": 1}, {"nulls_first": "yes"}, {"column": 3}])
def test_an_order_is_made_of_a_name_and_flags(given: dict[str, object]) -> None:
    with pytest.raises(InvalidRequestError):
        OrderBy(**{"column": "c", **given})  # type: ignore[arg-type]  # on purpose
