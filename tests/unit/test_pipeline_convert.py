"""Vectors out of lists and bytes, and other columns by casts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from lance_core.errors import InvalidRequestError, TypeMismatchError
from pipeline.convert import Converter, OnBadVector, dimension_of, to_vectors, vector_field

DIM = 3
VECTORS = pa.schema([pa.field("v", pa.list_(pa.float32(), DIM))])
ROWS = [[1.0, 2.0, 3.0], None, [4.0, 5.0], [6.0, None, 7.0], [], [8.0, 9.0, 10.0]]
LISTS = [
    pa.list_(pa.float32()),
    pa.list_(pa.field("element", pa.float64())),
    pa.large_list(pa.float32()),
    pa.list_(pa.int64()),
]


def place(row):
    return f"row {row} of a.parquet"


def packed(row, dtype=np.float32):
    return None if row is None else np.array([np.nan if x is None else x for x in row], dtype).tobytes()  # fmt: skip  # noqa: E501


@pytest.mark.parametrize("kind", LISTS, ids=str)
@pytest.mark.parametrize("start", [0, 1])
def test_lists_become_vectors_and_bad_ones_null(kind, start):
    array = pa.array([None, *ROWS], kind)[1:][start:]
    vectors, bad = to_vectors(array, VECTORS.field("v"))
    fine = [ROWS[0], None, None, None, None, ROWS[5]]
    assert vectors.to_pylist() == fine[start:]
    assert bad.tolist() == [False, False, True, True, True, False][start:]
    vectors.validate(full=True)


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary_view()], ids=str)
def test_bytes_become_vectors_and_those_of_other_lengths_null(kind):
    rows = [ROWS[0], None, ROWS[2], [], ROWS[5]]
    array = pa.array([b"xyz", *map(packed, rows)], kind)[1:]
    vectors, bad = to_vectors(array, VECTORS.field("v"))
    assert vectors.to_pylist() == [ROWS[0], None, None, None, ROWS[5]]
    assert bad.tolist() == [False, False, True, True, False]


def test_bytes_of_a_fixed_width_become_vectors():
    array = pa.array([packed(ROWS[0]), None, packed(ROWS[5])], pa.binary(4 * DIM))
    vectors, bad = to_vectors(array, VECTORS.field("v"))
    assert vectors.to_pylist() == [ROWS[0], None, ROWS[5]]
    assert not bad.any()
    _, bad = to_vectors(pa.array([b"x", None], pa.binary(1)), VECTORS.field("v"))
    assert bad.tolist() == [True, False]


def test_whole_lists_of_the_right_type_are_not_copied():
    array = pa.array([ROWS[0]] * 10, LISTS[0])[2:7]
    vectors, _ = to_vectors(array, VECTORS.field("v"))
    assert vectors.values.buffers()[1].address == array.flatten().buffers()[1].address
    assert len(vectors) == 5


@given(
    st.lists(
        st.none() | st.lists(st.none() | st.floats(width=32, allow_nan=False), max_size=4),
        max_size=12,
    )
)
def test_each_row_is_judged_as_one_by_itself_would_be(rows):
    vectors, bad = to_vectors(pa.array(rows, pa.list_(pa.float32())), VECTORS.field("v"))
    fine = [row is not None and len(row) == DIM and None not in row for row in rows]
    expected = [row if is_fine else None for row, is_fine in zip(rows, fine, strict=True)]
    assert vectors.to_pylist() == expected
    assert bad.tolist() == [r is not None and not f for r, f in zip(rows, fine, strict=True)]


def test_a_bad_vector_is_told_with_its_file_and_row():
    batch = pa.record_batch({"v": pa.array(ROWS, LISTS[0])})
    with pytest.raises(InvalidRequestError, match=r'row 2 of a\.parquet, column "v".*3 numbers'):
        Converter(VECTORS).convert(batch, place)


def test_bad_vectors_are_made_null_or_dropped_as_asked_for():
    batch = pa.record_batch({"id": pa.array(range(6)), "v": pa.array(ROWS, LISTS[0])})
    aim = pa.schema([pa.field("id", pa.int64()), VECTORS.field("v")])
    nulled, dropped = (Converter(aim, way) for way in (OnBadVector.NULL, OnBadVector.DROP))
    made = nulled.convert(batch, place)
    assert made["v"].is_null().to_pylist() == [False, True, True, True, True, False]
    assert (nulled.num_bad, nulled.num_dropped) == (3, 0)
    made = dropped.convert(batch, place)
    assert made["id"].to_pylist() == [0, 1, 5]
    assert (dropped.num_bad, dropped.num_dropped) == (3, 3)


def test_null_is_no_answer_where_the_column_may_hold_none():
    aim = pa.schema([VECTORS.field("v").with_nullable(False)])
    batch = pa.record_batch({"v": pa.array(ROWS[2:3], LISTS[0])})
    with pytest.raises(InvalidRequestError, match="--on-bad-vector drop"):
        Converter(aim, OnBadVector.NULL).convert(batch, place)


@pytest.mark.parametrize(
    ("given", "element"),
    [
        (pa.list_(pa.float64()), pa.float32()),
        (pa.list_(pa.int64()), pa.float32()),
        (pa.list_(pa.float16()), pa.float16()),
        (pa.large_list(pa.uint8()), pa.uint8()),
        (pa.binary(), pa.float32()),
        (pa.binary(12), pa.float32()),
    ],
    ids=str,
)
def test_elements_are_those_that_vectors_have(given, element):
    field = vector_field(pa.field("v", given, nullable=False), DIM)
    assert field.type == pa.list_(element, DIM)
    assert not field.nullable


@pytest.mark.parametrize("given", [pa.string(), pa.list_(pa.string()), pa.int64()], ids=str)
def test_columns_that_hold_no_numbers_are_refused(given):
    with pytest.raises(TypeMismatchError, match='column "v"'):
        vector_field(pa.field("v", given), DIM)


def test_dimensions_are_those_of_the_first_vector():
    assert dimension_of(pa.array([None, [1.0, 2.0]])) == 2
    assert dimension_of(pa.array([None, b"12345678"])) == 2
    assert dimension_of(pa.array([None], pa.binary(16))) == 4
    assert dimension_of(pa.array([None], pa.list_(pa.float32(), 5))) == 5
    assert dimension_of(pa.array([None], pa.list_(pa.float32()))) is None


def test_other_columns_are_cast_and_missing_ones_null():
    aim = pa.schema({"s": pa.large_string(), "n": pa.int32(), "t": pa.timestamp("us"), "x": pa.int8()})  # fmt: skip  # noqa: E501
    batch = pa.record_batch({"n": pa.array([1]), "s": ["a"], "t": pa.array([5], pa.timestamp("ms")), "more": [1]})  # fmt: skip  # noqa: E501
    made = Converter(aim).convert(batch, place)
    assert made.schema == aim
    assert made["n"].to_pylist() == [1]
    assert made["x"].to_pylist() == [None]
    with pytest.raises(TypeMismatchError, match=r'row 0 of a\.parquet and after, column "n"'):
        Converter(aim).convert(pa.record_batch({"n": pa.array([1 << 40])}), place)
