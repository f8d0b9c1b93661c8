from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest

from lance_core.query.query_result import AnswerRows
from service.api.arrow_bodies import encode_table
from service.api.arrow_templates import encode_answer
from service.api.negotiation import Encoding, Format

IN_ONE_BATCH = [Encoding(Format.ARROW_FILE), Encoding(Format.ARROW_STREAM)]
encodings = pytest.mark.parametrize("encoding", IN_ONE_BATCH, ids=lambda each: each.format.name)


def numbers(num_rows: int, first: int = 0) -> AnswerRows:
    values = np.arange(first, first + num_rows)
    columns = [
        pa.array(values),
        pa.array(values.astype(np.float32)),
        pa.array(values.astype(np.uint8)),
        pa.array([dt.date(2026, 1, 1)] * num_rows),
    ]
    fields = [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("_distance", pa.float32()),
        pa.field("small", pa.uint8(), metadata={"a": "b"}),
        pa.field("day", pa.date32()),
    ]
    return AnswerRows(pa.schema(fields), columns)


def other_columns() -> dict[str, pa.Array]:
    return {
        "nulls": pa.array([1, None, 3]),
        "texts": pa.array(["a", "bc", ""]),
        "vectors": pa.array([[1.0, 2.0]] * 3, pa.list_(pa.float32(), 2)),
        "booleans": pa.array([True, False, True]),
        "part": pa.array([0, 1, 2, 3]).slice(1),
        "chunked": pa.chunked_array([[1], [2, 3]]),
        "nothing": pa.nulls(3),
    }


@encodings
@pytest.mark.parametrize("num_rows", [0, 1, 10, 1000, 1001])
def test_an_answer_from_a_template_equals_what_the_writer_writes(
    encoding: Encoding, num_rows: int
) -> None:
    kind = numbers(num_rows)
    for first in (0, 7):  # the second answer of a kind is the first that was not written for it
        rows = AnswerRows(kind.schema, numbers(num_rows, first).columns)
        assert encode_answer(rows, encoding) == encode_table(rows.to_table(), encoding)


@encodings
@pytest.mark.parametrize("name", other_columns())
def test_columns_that_fit_no_template_are_written(encoding: Encoding, name: str) -> None:
    column = other_columns()[name]
    rows = AnswerRows(pa.schema({name: column.type}), [column])
    assert encode_answer(rows, encoding) == encode_table(rows.to_table(), encoding)


@encodings
def test_schemas_that_differ_in_metadata_alone_keep_it(encoding: Encoding) -> None:
    column = pa.array([1])
    for metadata in ({"of": "first"}, {"of": "second"}):
        rows = AnswerRows(pa.schema({"a": pa.int64()}, metadata=metadata), [column])
        assert encode_answer(rows, encoding) == encode_table(rows.to_table(), encoding)


def test_compressed_answers_are_written() -> None:
    encoding = Encoding(Format.ARROW_STREAM, "zstd")
    rows = numbers(100)
    assert encode_answer(rows, encoding) == encode_table(rows.to_table(), encoding)
