"""Rows in the order of their values: each task gets a range of them, whatever file they come from.

Two stages go before the one that writes fragments. *Sample* looks at values, from which the ends of
ranges follow. *Scatter* reads all rows and puts them, range by range, into files of Arrow in the
journal; those are then ingested as any other file, sorted. No row crosses the JVM.
"""

from __future__ import annotations

import base64
import json
import math
import uuid
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_core.errors import InvalidRequestError, TypeMismatchError, UnknownColumnError
from pipeline.convert import Converter
from pipeline.ingest_items import Item, converted
from pipeline.kept_stage import run_kept
from pipeline.source_formats import Piece

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pipeline.convert import OnBadVector
    from pipeline.ingest_sources import Sources
    from pipeline.job import JobContext
    from pipeline.journal import Journal

    _Spilled = tuple[str, int, list[tuple[int, int]]]

_SAMPLED = 1024
"""Values that are looked at of an item."""
_RANGE_BYTES = 256 << 20
_SPILL_BYTES = 128 << 20
_STAGES = ("sample", "scatter")


def check_order(schema: pa.Schema, columns: Sequence[str]) -> None:
    """Check that rows can be ordered by columns.

    Raises
    ------
    InvalidRequestError
        A column is given twice.
    UnknownColumnError, TypeMismatchError
        There is no such column, or its values have no order.
    """
    for place, name in enumerate(columns):
        if name in columns[:place]:
            raise InvalidRequestError(f'column "{name}" to cluster by is given twice')
        if name not in schema.names:
            raise UnknownColumnError(name, schema.names, where="the columns to cluster by")
        kind = schema.field(name).type
        try:
            pc.rank(pa.nulls(0, kind))
        except pa.ArrowException as error:
            raise TypeMismatchError(f'column "{name}" is {kind}, which has no order') from error


def clustered(
    context: JobContext,
    sources: Sources,
    items: Sequence[Item],
    columns: Sequence[str],
    task_rows: int,
    on_bad: OnBadVector,
) -> list[Item]:
    """Return items that hold the same rows, each a range of values, in the order of these.

    Parameters
    ----------
    context
        Of the job, whose stages are run.
    sources
        How to read the items.
    items
        What there is to ingest.
    columns
        By which rows are ordered, see `check_order`. Ranges are those of the first column, nulls
        last; rows that have one value of it are in one range.
    task_rows
        About how many rows a range has at most; it has no more than fit into 256 MiB either.
    on_bad
        What becomes of bad vectors.

    Raises
    ------
    StageFailedError
        Files cannot be read.
    """
    messages = [item.to_bytes() for item in items]
    weights = [item.num_rows for item in items]
    sample = partial(sample_item, sources, columns[0], on_bad)
    samples = [_Sample.of(each) for each in run_kept(context, "sample", messages, sample)]
    ends = _ends(samples, sum(weights), task_rows)
    spill = partial(scatter_item, sources, columns[0], on_bad, _journal(context, "scatter"), ends)
    told = run_kept(context, "scatter", messages, spill, weights=weights)
    pieces: dict[int, list[Piece]] = {}
    for result in told:
        for path, size, batches in json.loads(result):
            for place, (number, rows) in enumerate(batches):
                piece = Piece(path, place, place + 1, rows, 0, size)
                pieces.setdefault(number, []).append(piece)
    first = items[0]
    return [Item(tuple(pieces[n]), first.target.aim, first.target) for n in sorted(pieces)]


def forget(context: JobContext) -> None:
    """Remove what the two stages kept: after the commit."""
    for name in _STAGES:
        _journal(context, name).remove()


def sample_item(sources: Sources, column: str, on_bad: OnBadVector, data: bytes) -> bytes:
    """Return some values of an item's column, and the bytes of its rows; runs in a worker."""
    item = Item.of(data)
    values: list[pa.Array] = []
    rows = num_bytes = 0
    for batch in converted(sources, item, Converter(item.target.aim, on_bad)):
        values.append(batch.column(column))
        rows, num_bytes = rows + batch.num_rows, num_bytes + batch.nbytes
    kind = item.target.aim.field(column).type
    whole = pa.chunked_array(values, kind).combine_chunks()
    places = np.unique(np.linspace(0, max(rows - 1, 0), min(_SAMPLED, rows)).astype(np.int64))
    return _Sample(whole.take(pa.array(places)), num_bytes / max(rows, 1)).to_bytes()


def scatter_item(
    sources: Sources, column: str, on_bad: OnBadVector, journal: Journal, ends: bytes, data: bytes
) -> bytes:
    """Put the rows of an item into files by their ranges; runs in a worker.

    Returns path and size of each file, and range and rows of each of its batches, as JSON.
    """
    item = Item.of(data)
    bounds = _values_of(ends)
    found: list[_Spilled] = []
    waiting: list[pa.RecordBatch] = []
    num_bytes = 0
    for batch in converted(sources, item, Converter(item.target.aim, on_bad)):
        if batch.num_rows > 0:
            waiting.append(batch)
        num_bytes += batch.nbytes
        if num_bytes >= _SPILL_BYTES:
            found.append(_spilled(waiting, column, bounds, journal))
            waiting, num_bytes = [], 0
    if waiting:
        found.append(_spilled(waiting, column, bounds, journal))
    return json.dumps(found).encode()


def ranges_of(values: pa.Array, bounds: pa.Array) -> NDArray[np.int64]:
    """Return the range of each value: how many bounds are not above it.

    Parameters
    ----------
    values
        Of any type that has an order; nulls are above all, below them is NaN.
    bounds
        Of the same type, ascending, without a null.

    Examples
    --------
    >>> ranges_of(pa.array(["b", None, "a", "c"]), pa.array(["b", "c"])).tolist()
    [1, 2, 0, 2]
    """
    together = pa.concat_arrays([bounds, values])
    ranks = np.asarray(pc.rank(together, "ascending", tiebreaker="min"))
    return np.searchsorted(ranks[: len(bounds)], ranks[len(bounds) :], side="right")


@dataclass(frozen=True, slots=True)
class _Sample:
    """Some values of a column, and the mean bytes of a row."""

    values: pa.Array
    row_bytes: float

    def to_bytes(self) -> bytes:
        text = base64.b64encode(_bytes_of(self.values)).decode()
        return json.dumps({"values": text, "row_bytes": self.row_bytes}).encode()

    @classmethod
    def of(cls, data: bytes) -> _Sample:
        found = json.loads(data)
        return cls(_values_of(base64.b64decode(found["values"])), float(found["row_bytes"]))


def _ends(samples: Sequence[_Sample], num_rows: int, task_rows: int) -> bytes:
    """Return the values at which ranges end, as a message."""
    known = pa.concat_arrays([each.values for each in samples]).drop_null()
    largest = max(each.row_bytes for each in samples)
    count = math.ceil(max(num_rows / task_rows, num_rows * largest / _RANGE_BYTES, 1))
    ordered = known.take(pc.sort_indices(known))
    places = [len(ordered) * number // count for number in range(1, count)]
    ends = pc.unique(ordered.take(pa.array(places, pa.int64()))) if len(ordered) > 0 else ordered
    return _bytes_of(ends)


def _spilled(
    batches: Sequence[pa.RecordBatch], column: str, bounds: pa.Array, journal: Journal
) -> _Spilled:
    """Write a file with a batch for each range that has rows."""
    rows = pa.Table.from_batches(batches).combine_chunks()
    numbers = ranges_of(rows[column].combine_chunks(), bounds)
    order = np.argsort(numbers, kind="stable")
    present, starts = np.unique(numbers[order], return_index=True)
    sink = pa.BufferOutputStream()
    told = []
    with pa.ipc.new_file(sink, rows.schema) as writer:
        ends = np.append(starts[1:], len(order))
        for number, start, end in zip(present, starts, ends, strict=True):
            part = rows.take(pa.array(order[start:end])).combine_chunks()
            writer.write_batch(part.to_batches()[0])
            told.append((int(number), part.num_rows))
    data = sink.getvalue().to_pybytes()
    name = f"rows/{uuid.uuid4().hex}.arrow"
    journal.put(name, data)
    return f"{journal.state_uri.rstrip('/')}/{journal.job_id}/{name}", len(data), told


def _journal(context: JobContext, stage: str) -> Journal:
    return replace(context.journal, job_id=f"{context.job_id}.{stage}")


def _bytes_of(values: pa.Array) -> bytes:
    sink = pa.BufferOutputStream()
    batch = pa.record_batch([values], ["values"])
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _values_of(data: bytes) -> pa.Array:
    return pa.ipc.open_stream(data).read_all()["values"].combine_chunks()
