"""Columns of Spark of another form than those of a dataset."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lance_core.errors import InvalidRequestError
from pipeline.storable import storable

NUMBERS = pa.array([1, 2])
TYPES = {
    "lists": pa.list_(pa.int64()),
    "large lists": pa.large_list(pa.int64()),
    "vectors": pa.list_(pa.float32(), 2),
    "maps": pa.map_(pa.string(), pa.int64()),
    "structs": pa.struct({"x": pa.int64()}),
}


@pytest.mark.parametrize("kind", TYPES.values(), ids=TYPES)
def test_values_of_another_form_are_refused_and_named(kind):
    with pytest.raises(InvalidRequestError, match="column 'x' is int64 in the rows"):
        storable(pa.record_batch({"x": NUMBERS}), pa.schema([("x", kind)]))


@pytest.mark.parametrize("kind", [*TYPES.values(), pa.float16(), pa.uint64()], ids=str)
def test_a_column_of_nothing_is_one_of_nulls(kind):
    batch = pa.record_batch({"x": pa.nulls(2)})
    assert storable(batch, pa.schema([("x", kind)]))["x"].equals(pa.nulls(2, kind))
