"""Rows of any types as Spark takes them, and back."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from lance_core.errors import InvalidRequestError, UnsupportedFeatureError
from pipeline.readable import readable, readable_array, readable_schema, readable_type
from pipeline.storable import storable, storable_array
from tests.lance_strategies import lance_cases, lenient
from tests.same_values import assert_same
from tests.spark_columns import COLUMNS, has_nanoseconds

if TYPE_CHECKING:
    from tests.lance_cases import LanceCase


def spark_takes(schema: pa.Schema) -> pa.Schema:
    """Return what Spark makes of a schema, which is just what it takes of us."""
    return to_arrow_schema(from_arrow_schema(schema), timezone="UTC")


@pytest.mark.parametrize("name", COLUMNS)
def test_every_type_has_a_place_in_spark_and_comes_back(name):
    array = COLUMNS[name]
    batch = pa.record_batch({"c": array})
    schema = readable_schema(batch.schema)
    assert spark_takes(schema).equals(schema)
    found = readable(batch, schema)
    found.validate(full=True)
    assert spark_takes(found.schema).equals(found.schema)
    back = storable(found, batch.schema)
    back.validate(full=True)
    assert_same(back.column(0), array)
    part = readable(batch.slice(1), schema)
    assert_same(part.column(0), found.column(0).slice(1))
    assert_same(storable(part, batch.schema).column(0), array.slice(1))


@pytest.mark.parametrize(
    ("given", "kind", "taken"),
    [
        (COLUMNS["uint64"], pa.decimal128(20, 0), [Decimal(0), None, Decimal(2**64 - 1)]),
        (COLUMNS["vectors"], pa.list_(pa.float32()), [[1.0, 2.0], None, [3.0, None]]),
        (COLUMNS["json"], pa.string(), ['{"a":1}', None, "1"]),
        (pa.array([1_999, -1_999]).cast(pa.timestamp("ns")), pa.timestamp("us"), None),
        (pa.array([1_999, -1_999]).cast(pa.duration("ns")), pa.duration("us"), None),
    ],
    ids=["numbers", "vectors", "json", "timestamps", "durations"],
)
def test_values_are_those_of_the_dataset(given, kind, taken):
    assert readable_type(given.type) == kind
    found = readable_array(given, kind)
    if taken is None:  # digits that Spark has not are cut
        assert found.cast(pa.int64()).to_pylist() == [1, -1]
    else:
        assert found.to_pylist() == taken


@given(lance_cases("2.2"))
@lenient
def test_random_columns_have_a_place_in_spark_and_come_back(case: LanceCase) -> None:
    for batch in case.table.slice(0, 200).to_batches():
        for column, field in zip(batch.columns, batch.schema, strict=True):
            one = pa.record_batch([column], schema=pa.schema([field]))
            try:
                schema = readable_schema(one.schema)
                found = readable(one, schema)
            except (InvalidRequestError, UnsupportedFeatureError) as error:
                assert f"column {field.name!r}" in str(error)  # noqa: PT017 - both kinds tell it
                continue
            assert spark_takes(schema).equals(schema)
            assert found.schema.equals(schema)
            found.validate(full=True)
            if not has_nanoseconds(field.type):
                assert_same(storable(found, one.schema).column(0), column)


@pytest.mark.parametrize(
    ("given", "kind", "told"),
    [
        (pa.array([[1.0], [1.0, 2.0]]), pa.list_(pa.float32(), 1), "2 items"),
        (pa.array([b"1234", b"12345"]), pa.list_(pa.float32(), 1), "bytes of 1 float32"),
        (pa.array([b"1234"]), pa.list_(pa.float64(), 1), "float32, not of double"),
        (pa.array([Decimal(2**64)]), pa.uint64(), "uint64"),
        (pa.array([-1]), pa.uint8(), "uint8"),
        (pa.array([b"abc"]), pa.binary(2), "binary"),
        (pa.array(["a"]), pa.null(), "nothing but nulls"),
        (pa.array([1]).cast(pa.timestamp("us")), pa.timestamp("s"), "timestamp"),
        (pa.array([{"a": 1}]), pa.struct({"b": pa.int64()}), "parts of a struct"),
    ],
    ids=range(9),
)
def test_what_does_not_fit_is_refused_by_its_column(given, kind, told):
    batch = pa.record_batch({"price": given})
    with pytest.raises(InvalidRequestError, match="column 'price'") as caught:
        storable(batch, pa.schema({"price": kind}))
    assert told in str(caught.value)


def test_bytes_become_vectors():
    vectors = pa.array([[1.0, 2.0], None, [3.0, 4.0]], pa.list_(pa.float32(), 2))
    given = pa.array([np.array([1, 2], "<f4").tobytes(), None, np.array([3, 4], "<f4").tobytes()])
    assert storable_array(given, vectors.type).equals(vectors)
    assert storable_array(given.slice(1), vectors.type).equals(vectors.slice(1))
    assert storable_array(pc.cast(given, pa.large_binary()), vectors.type).equals(vectors)


def test_decimals_of_too_many_digits_are_refused():
    with pytest.raises(UnsupportedFeatureError, match=r"column 'c'.*option columns"):
        readable_schema(pa.schema({"c": pa.decimal256(40, 3)}))
