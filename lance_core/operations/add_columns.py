"""Adding columns, without touching the files of those that are there."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_core.errors import (
    CommitConflictError,
    InvalidRequestError,
    LanceError,
    UnknownColumnError,
)
from lance_core.operations.append import file_version_of
from lance_core.operations.column_files import live_offsets, with_file, write_columns
from lance_core.operations.commit_planned import commit_planned
from lance_core.operations.data_files import discard
from lance_core.operations.field_ids import numbered_from, smallest_new_id
from lance_core.operations.given_rows import open_rows, schema_of_new
from lance_core.operations.whole_rows import WholeRows
from lance_core.schema.to_proto import field_messages
from lance_core.table.transaction import Merge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from lance_core.ids import FragmentId
    from lance_core.operations.given_rows import RowSource
    from lance_core.proto import table_pb2
    from lance_core.schema.field import LanceField
    from lance_core.schema.tree import LanceSchema
    from lance_core.table.files import TableFiles
    from lance_core.table.fragment import Fragment
    from lance_core.table.snapshot import Snapshot

    Compute = Callable[[pa.RecordBatch], pa.RecordBatch | pa.Table]
    """Returns the new columns of the rows that it is given."""


def add_null_columns(snapshot: Snapshot, columns: pa.Schema) -> Snapshot:
    """Add columns that are null in all rows; nothing but a version is written.

    Raises
    ------
    InvalidRequestError
        A column of the name is there already, or may not be null.
    UnsupportedFeatureError
        The format has no such type.
    """
    for field in columns:
        if not field.nullable:
            raise InvalidRequestError(
                f"column {field.name!r} may not be null and would be; give its values"
            )

    def plan(newest: Snapshot) -> Merge:
        added = _numbered(newest, columns)
        return _merge(newest, added, newest.manifest.message.fragments)

    return commit_planned(snapshot, plan)


def add_computed_columns(
    files: TableFiles,
    snapshot: Snapshot,
    compute: Compute,
    read_columns: Sequence[str] | None = None,
) -> Snapshot:
    """Add columns that are computed from others, a batch at a time.

    Parameters
    ----------
    files
        Opened files.
    snapshot
        The version whose rows are read first; the newest one after a conflict.
    compute
        Returns a batch or table of the new columns for a batch of live rows. It may be called again
        after a conflict, and with no rows where the dataset has none.
    read_columns
        Top-level columns that it needs; None = all.

    Raises
    ------
    InvalidRequestError, TypeMismatchError, UnsupportedFeatureError
        As `add_columns_of_rows`; or the columns are others for another batch.
    """

    def plan(newest: Snapshot) -> Merge:
        reader = WholeRows(files, newest, _fields(newest, read_columns))

        def computed(fragment: Fragment) -> Iterator[pa.RecordBatch]:
            rows = live_offsets(files, newest, fragment).row_offsets
            for batch in reader.batches(fragment, rows):
                yield _computed(compute, batch)

        results = {fragment.id: computed(fragment) for fragment in newest.fragments}
        first = _peek(results)
        given = _computed(compute, reader.schema.empty_table()) if first is None else first
        added = _numbered(newest, given.schema)
        return _written(files, newest, added, lambda fragment: results[fragment.id])

    return commit_planned(snapshot, plan)


def add_columns_of_rows(files: TableFiles, snapshot: Snapshot, data: RowSource) -> Snapshot:
    """Add columns whose values are given in the order of a scan.

    Parameters
    ----------
    files
        Opened files.
    snapshot
        The version whose rows the values belong to.
    data
        A row for each live row, read as a stream.

    Raises
    ------
    InvalidRequestError, TypeMismatchError
        A column of the name is there already, there are fewer or more values than rows, or one
        cannot be stored.
    UnsupportedFeatureError
        The format has no such type.
    CommitConflictError
        Others added or moved rows meanwhile, for which there are no values then.
    """
    rows = open_rows(data)
    added = _numbered(snapshot, rows.schema)
    cutter = _Cutter(rows)

    def given(fragment: Fragment) -> Iterator[pa.RecordBatch]:
        return cutter.next_rows(len(live_offsets(files, snapshot, fragment).row_offsets))

    first = _written(files, snapshot, added, given)
    new_files = {fragment.id: fragment.files[-1] for fragment in first.fragments}
    if cutter.has_more():
        discard(snapshot.scheduler.store, (file.path for file in new_files.values()))
        raise InvalidRequestError("more values are given than there are rows")

    def plan(newest: Snapshot) -> Merge:
        if newest is snapshot:
            return first
        return _again(newest, added, new_files)

    return commit_planned(snapshot, plan)


def _again(newest: Snapshot, added: LanceSchema, new_files: dict[int, table_pb2.DataFile]) -> Merge:
    """Add written files to the fragments of another version, which must be the same."""
    fragments = newest.manifest.message.fragments
    ids = {each.id for top in added.fields for each in top.walk()}
    taken = smallest_new_id(newest.manifest.message) > min(ids)
    if taken or not {each.id for each in fragments} <= new_files.keys():
        raise CommitConflictError(
            "rows or columns were added while values were written",
            version=newest.version,
            is_retryable=True,
        )
    _check_new(newest, [field.name for field in added.fields])
    return _merge(newest, added, (with_file(each, new_files[each.id]) for each in fragments))


def _written(
    files: TableFiles,
    snapshot: Snapshot,
    added: LanceSchema,
    values: Callable[[Fragment], Iterator[pa.RecordBatch]],
) -> Merge:
    """Write the new columns of every fragment."""
    messages = {each.id: each for each in snapshot.manifest.message.fragments}
    changed: dict[FragmentId, table_pb2.DataFragment] = {}
    try:
        for fragment in snapshot.fragments:
            live = live_offsets(files, snapshot, fragment)
            file = write_columns(snapshot, added, values(fragment), live)
            changed[fragment.id] = with_file(messages[fragment.id], file)
    except LanceError:
        discard(snapshot.scheduler.store, (each.files[-1].path for each in changed.values()))
        raise
    return _merge(snapshot, added, changed.values())


def _merge(
    snapshot: Snapshot, added: LanceSchema, fragments: Iterable[table_pb2.DataFragment]
) -> Merge:
    message = snapshot.manifest.message
    return Merge(
        tuple(fragments),
        (*message.fields, *field_messages(added)),
        dict(message.schema_metadata),
        preserves_nullability=all(field.nullable for field in added.fields),
    )


def _numbered(snapshot: Snapshot, columns: pa.Schema) -> LanceSchema:
    """Return the new columns as fields of the table."""
    _check_new(snapshot, columns.names)
    schema = schema_of_new(columns, file_version_of(snapshot))
    return numbered_from(schema, smallest_new_id(snapshot.manifest.message))


def _check_new(snapshot: Snapshot, names: Sequence[str]) -> None:
    known = [name for name in names if name in snapshot.schema.names]
    if len(known) > 0:
        raise InvalidRequestError(f"the dataset has columns {known} already; take other names")


def _fields(snapshot: Snapshot, names: Sequence[str] | None) -> list[LanceField]:
    by_name = {field.name: field for field in snapshot.schema.fields}
    if names is None:
        return list(by_name.values())
    for name in names:
        if name not in by_name:
            raise UnknownColumnError(name, snapshot.schema.names, where="the columns to read")
    return [by_name[name] for name in names]


def _computed(compute: Compute, rows: pa.RecordBatch | pa.Table) -> pa.RecordBatch:
    batch = rows if isinstance(rows, pa.RecordBatch) else _one_batch(rows)
    result = compute(batch)
    if isinstance(result, pa.Table):
        result = _one_batch(result)
    if not isinstance(result, pa.RecordBatch):
        raise InvalidRequestError(
            f"the function gave {type(result).__name__}; let it return a record batch or a table"
        )
    if result.num_rows != batch.num_rows:
        raise InvalidRequestError(
            f"the function gave {result.num_rows} rows for {batch.num_rows}; let it give one each"
        )
    return result


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    columns = [
        pa.concat_arrays(column.chunks) if column.num_chunks > 0 else column.combine_chunks()
        for column in table.columns
    ]
    return pa.RecordBatch.from_arrays(columns, schema=table.schema)


def _peek(results: dict[FragmentId, Iterator[pa.RecordBatch]]) -> pa.RecordBatch | None:
    """Return the first batch there is, and leave it where it is."""
    for fragment_id, batches in results.items():
        first = next(batches, None)
        if first is not None:
            results[fragment_id] = chain([first], batches)
            return first
    return None


class _Cutter:
    """Cuts a stream of batches where others begin."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._batches = iter(batches)
        self._left: pa.RecordBatch | None = None

    def next_rows(self, num_rows: int) -> Iterator[pa.RecordBatch]:
        """Yield the next rows, fewer if there are no more."""
        while num_rows > 0 and self.has_more():
            batch = self._left
            if batch is None:
                return
            self._left = batch.slice(num_rows) if batch.num_rows > num_rows else None
            piece = batch.slice(0, num_rows)
            num_rows -= piece.num_rows
            yield piece

    def has_more(self) -> bool:
        """Tell whether rows are left."""
        while self._left is None:
            batch = next(self._batches, None)
            if batch is None:
                return False
            self._left = batch if batch.num_rows > 0 else None
        return True
