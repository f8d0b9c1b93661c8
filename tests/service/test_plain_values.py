"""Columns that are read, and answered, without an Arrow array of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from lance_core.encodings.arrow_arrays import PlainValues, as_array
from lance_core.file.reader import LanceFileReader
from lance_core.file.writer import LanceFileWriter
from lance_core.io.metering import metered
from lance_core.query.query_result import AnswerRows
from lance_core.scan.stored_rows import take_values, take_whole
from service.api.arrow_bodies import encode_table
from service.api.arrow_templates import encode_answer
from service.api.json_rows import encode_rows
from service.api.negotiation import Encoding

if TYPE_CHECKING:
    from pathlib import Path

ARRAYS = {
    "small": pa.array([3, -1, 7], pa.int8()),
    "id": pa.array([1, 2, 2**40], pa.int64()),
    "score": pa.array([0.1, -2.0, np.inf], pa.float32()),
    "double": pa.array([0.1, 1e300, np.nan], pa.float64()),
    "half": pa.array(np.array([0.1, 2, -3], np.float16)),
    "day": pa.array([0, 1, 20_000], pa.date32()),
    "moment": pa.array([0, 1, 10**15], pa.timestamp("us", "UTC")),
    "span": pa.array([1, 2, 3], pa.duration("ms")),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_plain_values_are_answered_like_the_array_of_them(name: str) -> None:
    array = ARRAYS[name]
    data = np.frombuffer(array.buffers()[1], np.uint8)[: array.nbytes]
    schema = pa.schema({name: array.type})
    plain = AnswerRows(schema, [PlainValues(data, len(array), array.type)])
    whole = AnswerRows(schema, [array])
    assert plain.num_rows == 3
    assert plain.to_table().equals(whole.to_table()) or name == "double"  # which holds NaN
    assert encode_rows(plain) == encode_rows(whole)
    for _ in range(2):
        assert encode_answer(plain, Encoding()) == encode_table(whole.to_table(), Encoding())


def test_rows_are_taken_as_plain_values_where_they_are_such_and_counted_once(
    tmp_path: Path,
) -> None:
    table = pa.table(
        {
            "id": pa.array(range(1000)),
            "nulls": pa.array([None if row % 2 else row for row in range(1000)]),
            "text": pa.array([str(row) for row in range(1000)]),
            "score": pa.array(np.arange(1000, dtype=np.float32)),
        }
    )
    place = str(tmp_path / "a.lance")
    with LanceFileWriter.open_path(place, table.schema) as writer:
        writer.write_batch(table)
    rows = np.array([7, 0, 999, 7])
    with LanceFileReader.open_path(place) as reader:
        targets = [reader.target(name) for name in table.schema.names]
        expected = take_whole(reader, targets, rows)  # loads what later ones find
        with metered() as meter:
            take_whole(reader, targets, rows)
        with metered() as plain_meter:
            found = take_values(reader, targets, rows)
    assert [isinstance(each, PlainValues) for each in found] == [True, False, False, True]
    assert [as_array(each).to_pylist() for each in found] == [e.to_pylist() for e in expected]
    assert plain_meter.bytes_read == meter.bytes_read
    assert plain_meter.store_requests == meter.store_requests
