"""Vectors to search by: read from files once, and kept in blocks that every worker can fetch.

They lie beside the journal of the job, so that none of them ever passes through the JVM.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_core.errors import CorruptFileError, InvalidRequestError, UnknownColumnError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from pipeline.journal import Journal

QUERY_ID = "query_id"
_VECTOR = "vector"
_SUMMARY = "queries.json"


@dataclass(frozen=True, slots=True)
class StoredQueries:
    """Queries as a journal keeps them.

    Parameters
    ----------
    num_queries, num_blocks
        How many there are; all blocks but the last have equally many.
    dimension
        Length of the vectors.
    """

    num_queries: int
    num_blocks: int
    dimension: int


@dataclass(frozen=True, slots=True, eq=False)
class QueryBlock:
    """Some queries that one task answers.

    Parameters
    ----------
    ids
        What the answer calls them, shape ``(n,)``.
    vectors
        Shape ``(n, d)``.
    """

    ids: pa.Array
    vectors: NDArray[np.float32]


def store_queries(
    journal: Journal,
    batches: Iterable[pa.RecordBatch],
    rows_per_block: int,
    *,
    column: str | None = None,
    id_column: str | None = None,
) -> StoredQueries:
    """Keep queries in blocks; nothing is read where an earlier run did so.

    Parameters
    ----------
    journal
        Of the job.
    batches
        Rows that hold the vectors, read one by one.
    rows_per_block
        Queries of a block.
    column
        Column of the vectors, lists of numbers or the bytes of float32; None = the only one that
        holds lists.
    id_column
        Column by which the answer names the queries; None = they are counted from 0.

    Raises
    ------
    InvalidRequestError
        There is no query, a vector is null, of another length, or holds NaN or an infinity.
    UnknownColumnError
        There is no such column.
    """
    stored = stored_queries(journal)
    if stored is not None:
        return stored
    num_queries = num_blocks = dimension = 0
    for block in _blocks(read_queries(batches, column, id_column), rows_per_block):
        dimension = block.vectors.shape[1]
        journal.put(_name(num_blocks), _block_bytes(block))
        num_blocks += 1
        num_queries += len(block.vectors)
    if num_queries == 0:
        raise InvalidRequestError("there is no query vector in what is given to search by")
    found = {"num_queries": num_queries, "num_blocks": num_blocks, "dimension": dimension}
    journal.put(_SUMMARY, json.dumps(found).encode())
    return StoredQueries(num_queries, num_blocks, dimension)


def stored_queries(journal: Journal) -> StoredQueries | None:
    """Return what `store_queries` has kept, None if it never came to its end."""
    data = journal.get(_SUMMARY)
    if data is None:
        return None
    found = json.loads(data)
    return StoredQueries(found["num_queries"], found["num_blocks"], found["dimension"])


def load_block(journal: Journal, number: int) -> QueryBlock:
    """Return a block of queries.

    Raises
    ------
    CorruptFileError
        It is not there any more.
    """
    data = journal.get(_name(number))
    if data is None:
        raise CorruptFileError(_name(number), "is gone")
    with pa.ipc.open_stream(data) as reader:
        batch = reader.read_next_batch()
    vectors = batch.column(_VECTOR)
    shape = len(vectors), vectors.type.list_size
    return QueryBlock(batch.column(QUERY_ID), vectors.flatten().to_numpy().reshape(shape))


def read_queries(
    batches: Iterable[pa.RecordBatch], column: str | None, id_column: str | None
) -> Iterator[QueryBlock]:
    """Yield queries as they come; parameters and errors as `store_queries`."""
    first = 0
    dimension: int | None = None
    for batch in batches:
        name = _vector_column(batch.schema) if column is None else column
        vectors = query_vectors(_column(batch, name), first, dimension)
        count = len(vectors)
        if count == 0:
            continue
        dimension = vectors.shape[1]
        ids = (
            pa.array(np.arange(first, first + count, dtype=np.int64))
            if id_column is None
            else _column(batch, id_column)
        )
        yield QueryBlock(ids, vectors)
        first += count


def query_vectors(
    values: pa.Array, first: int = 0, dimension: int | None = None
) -> NDArray[np.float32]:
    """Return vectors as float32.

    Parameters
    ----------
    values
        Lists of numbers of one length, or bytes of little-endian float32.
    first
        Number of the first row, for errors.
    dimension
        Length that they must have; None = that of the first.

    Returns
    -------
    NDArray[np.float32]
        Shape ``(n, d)``.

    Raises
    ------
    InvalidRequestError
        They are no such vectors.
    """
    if values.null_count > 0:
        row = first + int(np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False))[0])
        raise InvalidRequestError(f"query {row} is null; leave out rows without a vector")
    if len(values) == 0:
        return np.empty((0, 0), np.float32)
    lengths, numbers = _numbers(values)
    wanted = int(lengths[0]) if dimension is None else dimension
    wrong = np.flatnonzero(lengths != wanted)
    if len(wrong) > 0 or wanted == 0:
        row = 0 if len(wrong) == 0 else int(wrong[0])
        raise InvalidRequestError(
            f"query {first + row} has {lengths[row]} numbers, others have {wanted}; give vectors"
            " of one length, at least one number each"
        )
    vectors = numbers.reshape(-1, wanted)
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(bad) > 0:
        raise InvalidRequestError(
            f"query {first + int(bad[0])} holds null, NaN or an infinity; all its numbers must be"
            " finite"
        )
    return vectors


def _numbers(values: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return how many numbers each row has, and all of them."""
    kind = values.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        sizes = pc.binary_length(values).to_numpy().astype(np.int64)
        if (sizes % np.dtype("<f4").itemsize).any():
            raise InvalidRequestError("query vectors given as bytes hold no whole float32 numbers")
        raw = b"".join(values.to_pylist())
        return sizes // np.dtype("<f4").itemsize, np.frombuffer(raw, "<f4")
    if pa.types.is_fixed_size_list(kind):
        lengths = np.full(len(values), kind.list_size, np.int64)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        lengths = pc.list_value_length(values).to_numpy().astype(np.int64)
    else:
        raise InvalidRequestError(f"query vectors are {kind}; give lists of numbers, or bytes")
    items = values.flatten()
    if not (pa.types.is_floating(items.type) or pa.types.is_integer(items.type)):
        raise InvalidRequestError(f"query vectors are {kind}; give lists of numbers, or bytes")
    with np.errstate(over="ignore"):  # what is too large becomes an infinity, which is refused
        return lengths, items.to_numpy(zero_copy_only=False).astype(np.float32)


def _vector_column(schema: pa.Schema) -> str:
    names: list[str] = [
        field.name
        for field in schema
        if pa.types.is_list(field.type)
        or pa.types.is_large_list(field.type)
        or pa.types.is_fixed_size_list(field.type)
    ]
    if len(names) != 1:
        raise InvalidRequestError(
            f"{len(names)} columns of the queries hold lists; name the one with the vectors, of:"
            f" {', '.join(schema.names)}"
        )
    return names[0]


def _column(batch: pa.RecordBatch, name: str) -> pa.Array:
    if name not in batch.schema.names:
        raise UnknownColumnError(name, batch.schema.names)
    return batch.column(name)


def _blocks(parts: Iterable[QueryBlock], rows: int) -> Iterator[QueryBlock]:
    """Cut and join parts so that all but the last have ``rows`` queries."""
    held: list[QueryBlock] = []
    count = 0
    for part in parts:
        start = 0
        while start < len(part.vectors):
            piece = _slice(part, start, min(rows - count, len(part.vectors) - start))
            held.append(piece)
            start += len(piece.vectors)
            count += len(piece.vectors)
            if count == rows:
                yield _joined(held)
                held, count = [], 0
    if held:
        yield _joined(held)


def _slice(part: QueryBlock, start: int, count: int) -> QueryBlock:
    return QueryBlock(part.ids.slice(start, count), part.vectors[start : start + count])


def _joined(parts: list[QueryBlock]) -> QueryBlock:
    ids = pa.concat_arrays([part.ids for part in parts])
    return QueryBlock(ids, np.concatenate([part.vectors for part in parts]))


def _block_bytes(block: QueryBlock) -> bytes:
    numbers = pa.array(np.ascontiguousarray(block.vectors).reshape(-1))
    vectors = pa.FixedSizeListArray.from_arrays(numbers, block.vectors.shape[1])
    batch = pa.record_batch({QUERY_ID: block.ids, _VECTOR: vectors})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def _name(number: int) -> str:
    return f"queries/{number:08d}.arrow"
