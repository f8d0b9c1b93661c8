"""Columns of a fragment, written beside those that it has: a value for every physical row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.encodings.version import FileVersion
from lance_core.errors import InvalidRequestError
from lance_core.operations.append import file_version_of
from lance_core.operations.data_files import NewDataFile
from lance_core.operations.given_rows import fitted
from lance_core.row_set import bitmap_offsets
from lance_core.table.fragment_upkeep import copied

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from lance_core.proto import table_pb2
    from lance_core.schema.tree import LanceSchema
    from lance_core.table.files import TableFiles
    from lance_core.table.fragment import Fragment
    from lance_core.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True, eq=False)
class LiveOffsets:
    """Rows of a fragment that get values, ascending, and how many rows there are."""

    row_offsets: NDArray[np.int64]
    physical_rows: int


def live_offsets(files: TableFiles, snapshot: Snapshot, fragment: Fragment) -> LiveOffsets:
    """Return the live rows of a fragment."""
    every = np.arange(fragment.physical_rows, dtype=np.int64)
    deleted = bitmap_offsets(files.deleted(snapshot, fragment))
    return LiveOffsets(np.delete(every, deleted), fragment.physical_rows)


def write_columns(
    snapshot: Snapshot, schema: LanceSchema, batches: Iterable[pa.RecordBatch], live: LiveOffsets
) -> table_pb2.DataFile:
    """Write columns of a fragment to a file of their own.

    Parameters
    ----------
    snapshot
        The version that the fragment is of.
    schema
        The columns, with ids that no other field has.
    batches
        Their values in the live rows, in order. Deleted rows get nulls, and values of other rows
        where a column may not be null: nobody reads them.
    live
        The rows of the fragment.

    Raises
    ------
    InvalidRequestError, TypeMismatchError, UnsupportedFeatureError
        As `LanceFileWriter`, or there are fewer or more values than rows. No file is left then.
    """
    version = file_version_of(snapshot)
    may_be_null = all(field.nullable for field in schema.fields)
    may_be_null = may_be_null and version is not FileVersion.V2_0  # which has no null structs
    file = NewDataFile(snapshot.scheduler.store, schema, version)
    try:
        for batch in _with_deleted_rows(fitted(batches, schema), live, may_be_null=may_be_null):
            file.writer.write_batch(batch)
        return file.finish()[0]
    except BaseException:
        file.discard()
        raise


def with_file(fragment: table_pb2.DataFragment, file: table_pb2.DataFile) -> table_pb2.DataFragment:
    """Return a fragment with one more data file."""
    changed = copied(fragment)
    changed.files.append(file)
    return changed


def _with_deleted_rows(
    batches: Iterable[pa.RecordBatch], live: LiveOffsets, *, may_be_null: bool
) -> Iterator[pa.RecordBatch]:
    offsets, num_rows = live.row_offsets, live.physical_rows
    rank = start = 0
    for batch in batches:
        own = offsets[rank : rank + batch.num_rows]
        rank += batch.num_rows
        if rank > len(offsets):
            break
        end = num_rows if rank == len(offsets) else int(own[-1]) + 1
        yield batch if end - start == len(own) else _spread(batch, own, start, end, may_be_null)
        start = end
    if rank != len(offsets):
        raise InvalidRequestError(f"{rank} values are given for {len(offsets)} rows")


def _spread(
    batch: pa.RecordBatch, own: NDArray[np.int64], start: int, end: int, may_be_null: bool
) -> pa.RecordBatch:
    """Return physical rows ``[start, end)``, of which those at ``own`` have values."""
    every = np.arange(start, end)
    places = np.minimum(np.searchsorted(own, every), len(own) - 1)
    is_deleted = own[places] != every
    return batch.take(pa.array(places, mask=is_deleted if may_be_null else None))
