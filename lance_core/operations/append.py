"""Adding rows: a new dataset of them, to a dataset, or in place of all that it has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.encodings.version import FileVersion
from lance_core.errors import (
    CommitConflictError,
    DatasetNotFoundError,
    InvalidRequestError,
    UnsupportedFeatureError,
)
from lance_core.operations.commit_planned import commit_planned
from lance_core.operations.data_files import discard
from lance_core.operations.field_ids import numbered_from, smallest_new_id
from lance_core.operations.given_rows import fitted, matching_fields, open_rows, schema_of_new
from lance_core.operations.write_fragments import FragmentOptions, write_fragments
from lance_core.schema.to_proto import schema_message
from lance_core.table.base_paths import refuse_base
from lance_core.table.commit import commit
from lance_core.table.next_version import NewDataset
from lance_core.table.transaction import Append, Overwrite, Transaction
from lance_core.table.versions import latest_version

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance_core.io.scheduler import RangeScheduler
    from lance_core.io.store import ObjectStore
    from lance_core.operations.given_rows import RowSource
    from lance_core.proto import table_pb2
    from lance_core.schema.tree import LanceSchema
    from lance_core.table.base_paths import OpenBase
    from lance_core.table.snapshot import Snapshot

_DEFAULTS = FragmentOptions()


def create_dataset(
    scheduler: RangeScheduler,
    data: RowSource,
    options: FragmentOptions = _DEFAULTS,
    *,
    has_stable_row_ids: bool = False,
    open_base: OpenBase = refuse_base,
) -> Snapshot:
    """Make a dataset at the root of the scheduler's store.

    Parameters
    ----------
    scheduler
        Its store is written to.
    data
        The rows, read as a stream; there may be none, but columns there must be.
    options
        Sizes of fragments, and the version of data files.
    has_stable_row_ids
        Whether rows get ids that they keep when they are updated or compacted.
    open_base
        For the snapshot returned.

    Raises
    ------
    InvalidRequestError
        There is a dataset already, or the rows cannot be stored.
    UnsupportedFeatureError
        A column has a type that the format does not store.
    """
    store = scheduler.store
    if _exists(store):
        raise _exists_already(store)
    version = FileVersion.of(options.file_version)
    rows = open_rows(data)
    schema = schema_of_new(rows.schema, version)
    operation = _overwrite(write_fragments(store, schema, fitted(rows, schema), options), schema)
    new = NewDataset(file_version=version.value, has_stable_row_ids=has_stable_row_ids)
    try:
        return commit(scheduler, Transaction(0, operation), new=new, open_base=open_base)
    except CommitConflictError:
        discard(store, (file.path for each in operation.fragments for file in each.files))
        raise _exists_already(store) from None


def append_rows(
    snapshot: Snapshot, data: RowSource, options: FragmentOptions = _DEFAULTS
) -> Snapshot:
    """Add rows at the end; the version of data files is that of the dataset.

    Parameters
    ----------
    snapshot
        The version that the rows are checked against first.
    data
        Columns of the table in any order, read as a stream. Those that are missing read as null.
    options
        Sizes of fragments.

    Raises
    ------
    InvalidRequestError, TypeMismatchError
        The columns do not fit those of the table, also when these change meanwhile.
    """
    rows = open_rows(data)
    used = matching_fields(rows.schema, snapshot.schema)
    sizes = with_version(options, file_version_of(snapshot))
    store = snapshot.scheduler.store
    written = tuple(write_fragments(store, used, fitted(rows, used), sizes))

    def plan(newest: Snapshot) -> Append:
        check_still_fits(used, newest.schema)
        return Append(written)

    return commit_planned(snapshot, plan)


def overwrite_rows(
    snapshot: Snapshot,
    data: RowSource,
    options: FragmentOptions = _DEFAULTS,
) -> Snapshot:
    """Replace all rows and the schema; older versions stay readable.

    Parameters
    ----------
    snapshot
        A version of the dataset.
    data
        The new rows, with the new columns, read as a stream.
    options
        Sizes of fragments, and the version of data files.

    Raises
    ------
    InvalidRequestError, UnsupportedFeatureError
        As `create_dataset`.
    """
    version = FileVersion.of(options.file_version)
    rows = open_rows(data)
    schema = schema_of_new(rows.schema, version)
    schema = numbered_from(schema, smallest_new_id(snapshot.manifest.message, replaces_all=True))
    store = snapshot.scheduler.store
    operation = _overwrite(write_fragments(store, schema, fitted(rows, schema), options), schema)
    return commit_planned(snapshot, lambda _: operation)


def file_version_of(snapshot: Snapshot) -> FileVersion:
    """Return the version that new data files of a dataset have.

    Raises
    ------
    UnsupportedFeatureError
        This release writes no such files.
    """
    text = snapshot.manifest.message.data_format.version
    try:
        return FileVersion.of(text)
    except InvalidRequestError:
        raise UnsupportedFeatureError(
            f'{snapshot.scheduler.store.uri} has data files of version "{text}", which are not'
            ' written; overwrite the dataset with files of version "2.2"'
        ) from None


def with_version(options: FragmentOptions, version: FileVersion) -> FragmentOptions:
    """Return options of the same sizes with another file version."""
    return FragmentOptions(options.max_rows_per_file, options.max_bytes_per_file, version)


def check_still_fits(written: LanceSchema, table: LanceSchema) -> None:
    """Refuse rows that were written for columns which have become others.

    Parameters
    ----------
    written
        Fields that the rows have values of, as they were when the rows were written.
    table
        Fields that the table has now.

    Raises
    ------
    InvalidRequestError
        Names the columns.
    """
    present = {field.id: field for field in table.fields}
    for field in written.fields:
        now = present.pop(field.id, None)
        if now is None or (now.logical_type, now.nullable) != (field.logical_type, field.nullable):
            raise InvalidRequestError(f"column {field.name!r} was changed while rows were written")
    needed = [field.name for field in present.values() if not field.nullable]
    if len(needed) > 0:
        raise InvalidRequestError(f"the rows lack {needed}, which may not be null any more")


def _overwrite(fragments: Sequence[table_pb2.DataFragment], schema: LanceSchema) -> Overwrite:
    message = schema_message(schema)
    return Overwrite(tuple(fragments), tuple(message.fields), dict(message.metadata))


def _exists(store: ObjectStore) -> bool:
    try:
        latest_version(store)
    except DatasetNotFoundError:
        return False
    return True


def _exists_already(store: ObjectStore) -> InvalidRequestError:
    return InvalidRequestError(
        f'there is a dataset at {store.uri} already; append to it or overwrite it by mode="append"'
        ' or mode="overwrite"'
    )
