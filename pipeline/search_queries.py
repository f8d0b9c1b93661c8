"""Vectors to search by: read from files once, and kept in blocks that every worker can fetch.

They lie beside the journal of the job, so that none of them ever passes through the JVM.
"""

from __future__ import annotations

import io
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.errors import CorruptFileError, InvalidRequestError, UnknownColumnError
from pipeline.query_vectors import (
    holds_lists,
    is_list,
    list_lengths,
    query_lists,
    query_vectors,
)

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
    are_lists
        Whether each is a list of vectors.
    """

    num_queries: int
    num_blocks: int
    dimension: int
    are_lists: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class QueryBlock:
    """Some queries that one task answers.

    Parameters
    ----------
    ids
        What the answer calls them, shape ``(n,)``.
    vectors
        Shape ``(n, d)``; where queries are lists of vectors those of all, ``(m, d)``.
    counts
        How many vectors each query has, at least one, shape ``(n,)``; None = they are no lists.
    """

    ids: pa.Array
    vectors: NDArray[np.float32]
    counts: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        """Return the number of queries."""
        return len(self.ids)

    def slice(self, start: int, count: int) -> QueryBlock:
        """Return some queries that follow one another."""
        ids = self.ids.slice(start, count)
        if self.counts is None:
            return QueryBlock(ids, self.vectors[start : start + count])
        before, own = self.counts[:start].sum(), self.counts[start : start + count]
        return QueryBlock(ids, self.vectors[before : before + own.sum()], own)

    def each(self) -> list[NDArray[np.float32]]:
        """Return the vectors of each query, shape ``(m, d)``."""
        counts = np.ones(len(self), np.int64) if self.counts is None else self.counts
        return np.split(self.vectors, np.cumsum(counts)[:-1])


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
        Column of the vectors, lists of numbers or the bytes of float32, or of lists of them; None =
        the only one that holds lists.
    id_column
        Column by which the answer names the queries; None = they are counted from 0.

    Raises
    ------
    InvalidRequestError
        There is no query, a vector is null, of another length, or holds NaN or an infinity, or a
        list of vectors is empty.
    UnknownColumnError
        There is no such column.
    """
    stored = stored_queries(journal)
    if stored is not None:
        return stored
    num_queries = num_blocks = dimension = 0
    are_lists = False
    for block in _blocks(read_queries(batches, column, id_column), rows_per_block):
        dimension, are_lists = block.vectors.shape[1], block.counts is not None
        journal.put(_name(num_blocks), _block_bytes(block))
        num_blocks += 1
        num_queries += len(block)
    if num_queries == 0:
        raise InvalidRequestError("there is no query vector in what is given to search by")
    found = StoredQueries(num_queries, num_blocks, dimension, are_lists)
    journal.put(_SUMMARY, json.dumps(asdict(found)).encode())
    return found


def stored_queries(journal: Journal) -> StoredQueries | None:
    """Return what `store_queries` has kept, None if it never came to its end."""
    data = journal.get(_SUMMARY)
    if data is None:
        return None
    return StoredQueries(**json.loads(data))


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
    vectors, counts = batch.column(_VECTOR), None
    if holds_lists(vectors.type):
        vectors, counts = vectors.flatten(), list_lengths(vectors)
    shape = len(vectors), vectors.type.list_size
    return QueryBlock(batch.column(QUERY_ID), vectors.flatten().to_numpy().reshape(shape), counts)


def read_queries(
    batches: Iterable[pa.RecordBatch], column: str | None, id_column: str | None
) -> Iterator[QueryBlock]:
    """Yield queries as they come; parameters and errors as `store_queries`."""
    first = 0
    dimension: int | None = None
    for batch in batches:
        name = _vector_column(batch.schema) if column is None else column
        values, counts = _column(batch, name), None
        if len(values) == 0:
            continue
        if holds_lists(values.type):
            vectors, counts = query_lists(values, first, dimension)
        else:
            vectors = query_vectors(values, first, dimension)
        dimension = vectors.shape[1]
        ids = (
            pa.array(np.arange(first, first + len(values), dtype=np.int64))
            if id_column is None
            else _column(batch, id_column)
        )
        yield QueryBlock(ids, vectors, counts)
        first += len(values)


def _vector_column(schema: pa.Schema) -> str:
    names: list[str] = [field.name for field in schema if is_list(field.type)]
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
        while start < len(part):
            piece = part.slice(start, min(rows - count, len(part) - start))
            held.append(piece)
            start += len(piece)
            count += len(piece)
            if count == rows:
                yield _joined(held)
                held, count = [], 0
    if held:
        yield _joined(held)


def _joined(parts: list[QueryBlock]) -> QueryBlock:
    ids = pa.concat_arrays([part.ids for part in parts])
    counts = [part.counts for part in parts if part.counts is not None]
    return QueryBlock(
        ids,
        np.concatenate([part.vectors for part in parts]),
        np.concatenate(counts) if counts else None,
    )


def _block_bytes(block: QueryBlock) -> bytes:
    numbers = pa.array(np.ascontiguousarray(block.vectors).reshape(-1))
    vectors = pa.FixedSizeListArray.from_arrays(numbers, block.vectors.shape[1])
    if block.counts is not None:
        offsets = pa.array(np.cumsum([0, *block.counts]), pa.int64())
        vectors = pa.LargeListArray.from_arrays(offsets, vectors)
    batch = pa.record_batch({QUERY_ID: block.ids, _VECTOR: vectors})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def _name(number: int) -> str:
    return f"queries/{number:08d}.arrow"
