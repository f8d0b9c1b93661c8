"""Giving new values to rows, which moves them to new fragments."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_core.errors import InvalidRequestError, TypeMismatchError, UnknownColumnError
from lance_core.file.stored_arrays import has_json
from lance_core.operations.commit_planned import commit_planned
from lance_core.operations.found_rows import find_rows, write_deletions
from lance_core.operations.moved_rows import read_whole, write_moved
from lance_core.schema.arrow import to_arrow_field
from lance_core.schema.blobs import with_bytes
from lance_core.table.transaction import Update

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from lance_core.schema.field import LanceField
    from lance_core.table.files import TableFiles
    from lance_core.table.snapshot import Snapshot

    NewValue = object | Callable[[pa.RecordBatch], pa.Array]
    """A Python value or Arrow scalar for all rows, or what computes a value for each."""


def update_rows(
    files: TableFiles, snapshot: Snapshot, values: Mapping[str, NewValue], predicate: str
) -> Snapshot:
    """Set columns of the rows that a predicate names.

    Parameters
    ----------
    files
        Opened files.
    snapshot
        The version whose rows are judged first; the newest one after a conflict.
    values
        New values by top-level column: one for all rows, None being null, or a function from
        batches of whole rows, as they are, to arrays of the column's type. Functions may be called
        again after a conflict.
    predicate
        True for the rows to update, see `lance_core.expr`.

    Returns
    -------
    Snapshot
        A new version, also when there was no such row. Rows keep their stable ids, if they have
        such; their addresses change.

    Raises
    ------
    InvalidRequestError, TypeMismatchError
        As `find_rows`; or there is no such column, or a value is not one of its type.
    """
    _check_values(values)

    def plan(newest: Snapshot) -> Update:
        fields = [_field(newest, name) for name in values]
        rows = find_rows(files, newest, predicate)
        stored = read_whole(files, newest, rows, newest.schema.fields)
        pairs: Iterable[tuple[pa.RecordBatch, pa.RecordBatch]]
        pairs = ((batch, batch) for batch in stored)
        if _shows_json(newest, values):
            shown = read_whole(files, newest, rows, newest.schema.fields, keeps_json=False)
            pairs = zip(stored, shown, strict=True)
        batches = _updated(pairs, values, [to_arrow_field(with_bytes(each)) for each in fields])
        moved = write_moved(files, newest, rows, batches)
        deleted = write_deletions(files, newest, rows)
        return Update(
            deleted.removed_fragment_ids,
            deleted.updated_fragments,
            tuple(moved),
            fields_preserving_coverage=tuple(each.id for top in fields for each in top.walk()),
        )

    return commit_planned(snapshot, plan)


def _check_values(values: object) -> None:
    if not isinstance(values, Mapping) or len(values) == 0:
        raise InvalidRequestError(f"values is {values!r}; give new values by column, at least one")


def _field(snapshot: Snapshot, name: str) -> LanceField:
    for field in snapshot.schema.fields:
        if field.name == name:
            return field
    raise UnknownColumnError(name, snapshot.schema.names, where="the new values")


def _shows_json(snapshot: Snapshot, values: Mapping[str, NewValue]) -> bool:
    """Tell whether a function is to see JSON, which it gets as text."""
    return any(map(callable, values.values())) and any(map(has_json, snapshot.schema.fields))


def _updated(
    batches: Iterable[tuple[pa.RecordBatch, pa.RecordBatch]],
    values: Mapping[str, NewValue],
    given: Sequence[pa.Field],
) -> Iterator[pa.RecordBatch]:
    """Yield rows with new values.

    Parameters
    ----------
    batches
        Rows as files keep them, and as functions see them.
    values
        New values by column.
    given
        The columns as users give them, in the order of ``values``.
    """
    for stored, shown in batches:
        arrays = dict(zip(stored.schema.names, stored.columns, strict=True))
        fields = {field.name: field for field in stored.schema}
        for field, value in zip(given, values.values(), strict=True):
            fields[field.name] = field
            arrays[field.name] = _column(shown, field, value)
        yield pa.RecordBatch.from_arrays(list(arrays.values()), schema=pa.schema(fields.values()))


def _column(batch: pa.RecordBatch, field: pa.Field, value: NewValue) -> pa.Array:
    if not callable(value):
        return _repeated(field, value, batch.num_rows)
    array = value(batch)
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if not isinstance(array, pa.Array) or array.type != field.type or len(array) != len(batch):
        given = f"{len(array)} of {array.type}" if isinstance(array, pa.Array) else repr(array)
        raise TypeMismatchError(
            f"column {field.name!r} takes {len(batch)} values of {field.type} for these rows, the"
            f" function gave {given}"
        )
    return array


def _repeated(field: pa.Field, value: object, num_rows: int) -> pa.Array:
    kind = field.type
    storage = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
    try:
        if isinstance(value, pa.Scalar):
            value = value.as_py()
        array = _safe(value, storage).take(pa.nulls(num_rows, pa.int64()).fill_null(0))
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise TypeMismatchError(
            f"column {field.name!r} is {kind}, which {value!r} is not; give a value of that type"
        ) from None
    return pa.ExtensionArray.from_storage(kind, array) if storage is not kind else array


def _safe(value: object, kind: pa.DataType) -> pa.Array:
    """Return an array of one value, refusing to cut anything off: 1.5 is no whole number."""
    array = pa.array([value], kind)
    with suppress(pa.ArrowNotImplementedError, pa.ArrowTypeError):  # what Arrow cannot cast
        pa.array([value]).cast(kind)
    return array
