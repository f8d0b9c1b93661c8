"""Columns of lists that are to be vectors."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_core.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def with_vectors(
    schema: pa.Schema, batches: Iterator[pa.RecordBatch], columns: Sequence[str]
) -> pa.RecordBatchReader:
    """Turn columns of lists into vectors of float32, whose dimension is that of the first one.

    Parameters
    ----------
    schema
        Schema of the batches.
    batches
        The rows.
    columns
        Columns of lists of numbers, all of one length; those that are vectors already stay.

    Raises
    ------
    InvalidRequestError
        A column is no such thing. Later batches raise it while they are read.
    """
    wanted = [name for name in columns if _is_list(schema, name)]
    waiting: list[pa.RecordBatch] = []
    dimensions: dict[str, int] = {}
    for batch in batches if wanted else ():
        waiting.append(batch)
        for name in wanted:
            if name not in dimensions:
                dimensions.update(_dimension(name, batch.column(name)))
        if len(dimensions) == len(wanted):
            break
    missing = [name for name in wanted if name not in dimensions]
    if missing:
        raise InvalidRequestError(f'column "{missing[0]}" holds no list, so no dimension is known')
    for name, dimension in dimensions.items():
        place = schema.get_field_index(name)
        vector = pa.list_(pa.field("item", pa.float32()), dimension)
        schema = schema.set(place, schema.field(place).with_type(vector))
    every = chain(waiting, batches)
    return pa.RecordBatchReader.from_batches(schema, (_cast(batch, schema) for batch in every))


def _is_list(schema: pa.Schema, name: str) -> bool:
    place = schema.get_field_index(name)
    if place < 0:
        raise InvalidRequestError(f'there is no column "{name}" to make vectors of')
    kind = schema.field(place).type
    if pa.types.is_fixed_size_list(kind):
        return False
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        raise InvalidRequestError(f'column "{name}" has type {kind}, which is no list')
    return True


def _dimension(name: str, array: pa.Array) -> dict[str, int]:
    lengths = array.value_lengths().drop_null()
    return {name: lengths[0].as_py()} if len(lengths) > 0 else {}


def _cast(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    if batch.schema == schema:
        return batch
    try:
        return batch.cast(schema, safe=False)  # doubles become float32
    except pa.ArrowException as error:
        raise InvalidRequestError(f"not all vectors are of one length: {error}") from error
