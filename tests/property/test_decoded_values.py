"""Selecting decoded values by position, by range, and after joining them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from lance_core.encodings.arrow_arrays import fixed_width_rows, to_arrow
from lance_core.encodings.place import Place
from lance_core.encodings.values import (
    AllNull,
    FixedSizeLists,
    FixedWidth,
    Indexed,
    Packed,
    Values,
    Variable,
    concat_values,
    constant_rows,
)
from lance_core.errors import CorruptFileError, UnsupportedFeatureError

PLACE = Place("file.lance", "c")
TYPES: dict[str, pa.DataType] = {
    "numbers": pa.int32(),
    "flags": pa.bool_(),
    "texts": pa.string(),
    "lists": pa.list_(pa.int32(), 2),
    "indexed": pa.large_string(),
    "nulls": pa.float32(),
    "packed": pa.struct([("a", pa.int32()), ("b", pa.int32())]),
}


def numbers(count: int, seed: int, *, nulls: bool) -> FixedWidth:
    rng = np.random.default_rng(seed)
    data = rng.integers(0, 2**31, count).astype(np.int32).view(np.uint8)
    return FixedWidth(data, 32, count, rng.random(count) < 0.5 if nulls else None)


def texts(count: int, seed: int, *, nulls: bool) -> Variable:
    rng = np.random.default_rng(seed)
    values = [b"x" * int(size) for size in rng.integers(0, 9, count)]
    offsets = np.cumsum([0, *(len(value) for value in values)])
    data = np.frombuffer(b"".join(values), np.uint8).copy()
    return Variable(offsets, data, rng.random(count) < 0.5 if nulls else None)


def values_of(kind: str, count: int, *, nulls: bool) -> Values:
    rng = np.random.default_rng(count)
    validity = rng.random(count) < 0.5 if nulls else None
    children = (numbers(count, 5, nulls=False), numbers(count, 6, nulls=False))
    by_kind: dict[str, Values] = {
        "numbers": numbers(count, 1, nulls=nulls),
        "flags": FixedWidth(rng.integers(0, 2, count).astype(np.uint8), 1, count, validity),
        "texts": texts(count, 2, nulls=nulls),
        "lists": FixedSizeLists(numbers(count * 2, 3, nulls=nulls), 2, count, validity),
        "indexed": Indexed(rng.integers(0, 5, count), texts(5, 4, nulls=False), validity),
        "packed": Packed(children, count, validity),
        "nulls": AllNull(count),
    }
    return by_kind[kind]


cases = st.tuples(st.sampled_from(list(TYPES)), st.integers(0, 30), st.booleans())


@given(case=cases, data=st.data())
def test_taking_before_and_after_arrow_is_the_same(
    case: tuple[str, int, bool], data: st.DataObject
) -> None:
    kind, count, nulls = case
    values = values_of(kind, count, nulls=nulls)
    rows = data.draw(st.lists(st.integers(0, count - 1), max_size=9)) if count > 0 else []
    taken = to_arrow(values.take(np.array(rows, np.int64)), TYPES[kind], PLACE)
    taken.validate(full=True)
    whole = to_arrow(values, TYPES[kind], PLACE)
    assert taken.equals(whole.take(pa.array(rows, pa.int64())))


@given(case=cases, data=st.data())
def test_slicing_before_and_after_arrow_is_the_same(
    case: tuple[str, int, bool], data: st.DataObject
) -> None:
    kind, count, nulls = case
    values = values_of(kind, count, nulls=nulls)
    start, stop = sorted(data.draw(st.tuples(st.integers(0, count), st.integers(0, count))))
    part = to_arrow(values.slice(start, stop), TYPES[kind], PLACE)
    part.validate(full=True)
    assert part.equals(to_arrow(values, TYPES[kind], PLACE).slice(start, stop - start))


@given(counts=st.lists(st.integers(0, 9), min_size=1, max_size=4), kind=st.sampled_from("nt"))
def test_joining_is_concatenating(counts: list[int], kind: str) -> None:
    make = numbers if kind == "n" else texts
    arrow = pa.int32() if kind == "n" else pa.string()
    parts: list[Values] = [make(count, seed, nulls=False) for seed, count in enumerate(counts)]
    wanted = pa.concat_arrays([to_arrow(part, arrow, PLACE) for part in parts])
    assert to_arrow(concat_values(parts, PLACE), arrow, PLACE).equals(wanted)


def test_values_of_different_forms_are_not_joined() -> None:
    with pytest.raises(UnsupportedFeatureError, match="different forms"):
        concat_values([numbers(2, 0, nulls=False), texts(2, 0, nulls=False)], PLACE)


def test_one_value_is_repeated() -> None:
    repeated = to_arrow(constant_rows(texts(1, 7, nulls=False), 3), pa.string(), PLACE)
    assert len(set(repeated.to_pylist())) == 1
    assert len(repeated) == 3


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (numbers(2, 0, nulls=False), pa.int64()),
        (numbers(2, 0, nulls=False), pa.string()),
        (texts(2, 0, nulls=False), pa.int32()),
        (values_of("lists", 2, nulls=False), pa.list_(pa.int32(), 3)),
        (values_of("lists", 2, nulls=False), pa.int32()),
        (values_of("packed", 2, nulls=False), pa.struct([("a", pa.int32())])),
        (Indexed(np.array([5]), texts(5, 0, nulls=False)), pa.string()),
        (Indexed(np.array([-1]), texts(5, 0, nulls=False)), pa.string()),
        (Variable(np.array([0, 1]), np.array([0xFF], np.uint8)), pa.string()),
    ],
)
def test_values_that_do_not_fit_their_type_are_corrupt(values: Values, kind: pa.DataType) -> None:
    with pytest.raises(CorruptFileError, match="column 'c'"):
        to_arrow(values, kind, PLACE)


def test_an_index_under_a_null_may_be_anything() -> None:
    values = Indexed(np.array([99, 0]), texts(1, 0, nulls=False), np.array([False, True]))
    assert to_arrow(values, pa.string(), PLACE).to_pylist()[0] is None


def test_absurd_numbers_of_nulls_are_refused() -> None:
    with pytest.raises(UnsupportedFeatureError):
        to_arrow(AllNull(2**20), pa.list_(pa.list_(pa.int8(), 2**10), 2**10), PLACE)


def test_rows_without_nulls_become_nested_lists() -> None:
    data = np.arange(24, dtype=np.uint8)
    found = fixed_width_rows(data, 12, pa.list_(pa.list_(pa.uint16(), 3), 2), PLACE)
    wanted = data.view(np.uint16).reshape(2, 2, 3).tolist()
    assert found.to_pylist() == wanted


@pytest.mark.parametrize("row_bytes", [1, 10])
def test_rows_of_another_width_than_their_type_are_corrupt(row_bytes: int) -> None:
    with pytest.raises(CorruptFileError):
        fixed_width_rows(np.zeros(20, np.uint8), row_bytes, pa.list_(pa.uint16(), 3), PLACE)
