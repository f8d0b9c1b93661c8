"""Indices of any column answer any query as a look at every value does."""

from __future__ import annotations

import decimal
import math
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from hypothesis import given, settings, strategies as st

from lance_core.expr.index_query import AnyOf, Between, HasLabels, IsNull, StartsWith
from tests.scalar_indices import bitmap, btree, check_answer, label_list

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lance_core.expr.index_query import LeafQuery

FLOATS = [0.0, -0.0, 1.5, -1.5, math.inf, -math.inf, math.nan, -math.nan, 5e-324, 65504.0]
TEXTS = st.text("ab\0é\U0001f600", max_size=4) | st.just("a" * 30)
WHOLE = st.integers(-3, 3) | st.sampled_from([-128, 127])
NATURAL = st.integers(0, 5) | st.just(255)
COLUMNS: list[tuple[pa.DataType, st.SearchStrategy[object]]] = [
    *((kind, WHOLE) for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())),
    *((kind, NATURAL) for kind in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())),
    (pa.int64(), st.sampled_from([-(2**63), 2**63 - 1, 0, 1])),
    (pa.uint64(), st.sampled_from([2**64 - 1, 2**63, 0, 1])),
    *((kind, st.sampled_from(FLOATS)) for kind in (pa.float16(), pa.float32(), pa.float64())),
    (pa.bool_(), st.booleans()),
    (pa.string(), TEXTS),
    (pa.large_string(), TEXTS),
    (pa.binary(), st.binary(max_size=3) | st.sampled_from([b"\xff\xff", b"\xff", b"a\xff"])),
    (pa.large_binary(), st.binary(max_size=3)),
    (pa.binary(2), st.binary(min_size=2, max_size=2)),
    (pa.decimal128(9, 2), st.integers(-300, 300).map(lambda n: decimal.Decimal(n).scaleb(-2))),
    (pa.decimal256(50, 0), st.integers(-(10**49), 10**49).map(decimal.Decimal)),
    *((kind, WHOLE) for kind in (pa.date32(), pa.duration("ms"), pa.timestamp("ns"))),
    (pa.timestamp("us", "America/New_York"), WHOLE),
    (pa.date64(), WHOLE.map(lambda day: day * 86_400_000)),
    (pa.time32("s"), NATURAL),
    (pa.time64("us"), NATURAL),
]


def column_of(kind: pa.DataType, given_values: list[object]) -> pa.Array:
    if pa.types.is_temporal(kind):
        width = pa.int32() if kind.bit_width == 32 else pa.int64()
        return pa.array(given_values, width).view(kind)
    if pa.types.is_floating(kind):
        numbers = np.array([0 if v is None else v for v in given_values], kind.to_pandas_dtype())
        return pa.array(numbers, kind, mask=np.array([v is None for v in given_values], bool))
    return pa.array(given_values, kind)


def names_of(draw: st.DrawFn, num_rows: int) -> NDArray[np.uint64]:
    fragment_ids = draw(
        st.lists(st.sampled_from([0, 1, 7, 2**32 - 1]), min_size=num_rows, max_size=num_rows)
    )
    offsets = draw(st.permutations(range(num_rows)))
    return np.array(fragment_ids, np.uint64) << np.uint64(32) | np.array(offsets, np.uint64)


@st.composite
def queries(draw: st.DrawFn, kind: pa.DataType, one: st.SearchStrategy[object]) -> LeafQuery:
    values = column_of(kind, draw(st.lists(one, min_size=2, max_size=9)))
    shapes = ["any", "between", "null"]
    is_text = kind in {pa.string(), pa.large_string(), pa.binary(), pa.large_binary()}
    shape = draw(st.sampled_from([*shapes, "prefix"] if is_text else shapes))
    if shape == "any":
        return AnyOf(values.slice(0, draw(st.integers(0, len(values)))))
    if shape == "between":
        lower, upper = (draw(st.sampled_from([None, values[i]])) for i in (0, 1))
        return Between(lower, upper, draw(st.booleans()), draw(st.booleans()))
    return StartsWith(values[0], draw(st.booleans())) if shape == "prefix" else IsNull()


@settings(max_examples=150)
@given(st.data())
def test_an_index_answers_as_a_look_at_every_value(data: st.DataObject) -> None:
    kind, one = data.draw(st.sampled_from(COLUMNS))
    values = column_of(kind, data.draw(st.lists(one | st.none(), max_size=30)))
    names = data.draw(st.composite(names_of)(len(values)))
    version = data.draw(st.sampled_from(["2.0", "2.1", "2.2"]))
    written = [
        btree(values, names, data.draw(st.integers(1, 8))),
        bitmap(values, names, is_shuffled=data.draw(st.booleans())),
    ]
    asked = data.draw(st.lists(queries(kind, one), min_size=1, max_size=4))
    for each in written:
        each.version = version
        segment = each.open()
        for query in asked:
            check_answer(segment, query, values, names)


@settings(max_examples=50)
@given(st.data())
def test_labels_are_found_as_by_a_look_at_every_list(data: st.DataObject) -> None:
    label = st.sampled_from(["a", "b", "ab", "", None])
    some = st.lists(label, max_size=4) | st.none()
    kind = data.draw(st.sampled_from([pa.list_(pa.string()), pa.large_list(pa.string())]))
    lists = pa.array(data.draw(st.lists(some, max_size=20)), kind)
    names = data.draw(st.composite(names_of)(len(lists)))
    wanted = pa.array(data.draw(st.lists(label, min_size=1, max_size=4)), pa.string())
    query = HasLabels(wanted, data.draw(st.booleans()))
    check_answer(label_list(lists, names).open(), query, lists, names)
