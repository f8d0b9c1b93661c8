"""Renaming columns, allowing or forbidding nulls in them, changing their types, dropping them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from lance_core.errors import InvalidRequestError, LanceError
from lance_core.ids import FieldId
from lance_core.operations.append import file_version_of
from lance_core.operations.arguments import checked_names
from lance_core.operations.column_files import live_offsets, with_file, write_columns
from lance_core.operations.commit_planned import commit_planned
from lance_core.operations.data_files import discard
from lance_core.operations.field_ids import numbered_from, smallest_new_id
from lance_core.operations.given_rows import check_not_reserved, schema_of_new
from lance_core.operations.whole_rows import WholeRows
from lance_core.proto import file_pb2
from lance_core.scan.projection import resolve_projection
from lance_core.scan.rows import scan_rows
from lance_core.schema.arrow import to_arrow_field
from lance_core.schema.to_proto import field_messages
from lance_core.table.fragment_upkeep import without_dead_files
from lance_core.table.transaction import Merge, Project

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lance_core.proto import table_pb2
    from lance_core.schema.field import LanceField
    from lance_core.schema.tree import LanceSchema
    from lance_core.table.files import TableFiles
    from lance_core.table.snapshot import Snapshot

_OF_PARTS = frozenset(("struct", "list.struct", "large_list.struct"))


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """What is to change of a column; what is None stays.

    Parameters
    ----------
    path
        The column, or a part of a nested one: ``point.x``.
    name
        Its new name.
    nullable
        Whether it may be null from now on.
    data_type
        Its new type, to which all values are cast. Only for top-level columns of simple types.
    """

    path: str
    name: str | None = None
    nullable: bool | None = None
    data_type: pa.DataType | None = None

    def __post_init__(self) -> None:
        for name, kind in (
            ("path", str),
            ("name", str | None),
            ("nullable", bool | None),
            ("data_type", pa.DataType | None),
        ):
            value = getattr(self, name)
            if not isinstance(value, kind):
                raise InvalidRequestError(f"{name} of a change is {value!r}, which is no {kind}")


def alter_columns(
    files: TableFiles, snapshot: Snapshot, changes: Sequence[ColumnChange]
) -> Snapshot:
    """Change columns; data are written only where a type changes.

    Parameters
    ----------
    files
        Opened files.
    snapshot
        The version that is looked at first; the newest one after a conflict.
    changes
        Each of another column.

    Raises
    ------
    UnknownColumnError
        There is no such column.
    InvalidRequestError
        A name is taken or none, a column that may not be null has nulls, or values cannot be cast.

    Notes
    -----
    As pylance 14.0.2: a column of a new type is a new field, without the indices of the old one.
    """
    if len(changes) == 0 or not all(isinstance(each, ColumnChange) for each in changes):
        raise InvalidRequestError(f"changes are {changes!r}; give at least one ColumnChange")

    def plan(newest: Snapshot) -> Merge | Project:
        return _Changes(files, newest, changes).written()

    return commit_planned(snapshot, plan)


def drop_columns(snapshot: Snapshot, paths: Sequence[str]) -> Snapshot:
    """Drop columns, or parts of structs; data files are left out where no column of theirs is left.

    Raises
    ------
    UnknownColumnError
        There is no such column.
    InvalidRequestError
        No column would be left, or a part belongs to what is no struct.
    """
    names = checked_names("columns", paths)

    def plan(newest: Snapshot) -> Project:
        dropped: set[FieldId] = set()
        for path in names:
            dropped |= {each.id for each in newest.schema.field(path).walk()}
        left = [each for each in newest.manifest.message.fields if each.id not in dropped]
        _check_left(newest.schema, dropped)
        return Project(tuple(left), preserves_nullability=True)

    return commit_planned(snapshot, plan)


class _Changes:
    """Changes of the columns of one version."""

    def __init__(
        self, files: TableFiles, snapshot: Snapshot, changes: Sequence[ColumnChange]
    ) -> None:
        self._files = files
        self._snapshot = snapshot
        self._changes = {snapshot.schema.field(each.path).id: each for each in changes}
        if len(self._changes) < len(changes):
            raise InvalidRequestError("a column is to be changed twice; join the changes")
        self._messages: dict[int, file_pb2.Field] = {}
        for each in snapshot.manifest.message.fields:
            copy = self._messages[each.id] = file_pb2.Field()
            copy.CopyFrom(each)

    def written(self) -> Merge | Project:
        forbids = [each for each in self._changes.values() if each.nullable is False]
        for field_id, change in self._changes.items():
            self._rename(field_id, change)
        for change in forbids:
            self._check_no_nulls(change.path)
        casts = {n: each for n, each in self._changes.items() if each.data_type is not None}
        if len(casts) == 0:
            fields = tuple(self._messages.values())
            return Project(fields, preserves_nullability=len(forbids) == 0)
        return self._cast(casts)

    def _rename(self, field_id: FieldId, change: ColumnChange) -> None:
        message = self._messages[field_id]
        if change.nullable is not None:
            message.nullable = change.nullable
        if change.name is None or change.name == message.name:
            return
        taken = {
            each.name
            for each in self._messages.values()
            if each.parent_id == message.parent_id and each.id != field_id
        }
        if change.name in taken or change.name == "" or set(change.name) & {".", "\0"}:
            raise InvalidRequestError(
                f"column {change.path} cannot be named {change.name!r}: the name is taken, empty or"
                " has a dot"
            )
        if "." not in change.path:
            check_not_reserved(change.name)
        message.name = change.name

    def _check_no_nulls(self, path: str) -> None:
        read, way = self._snapshot.schema.stored_field(path)
        if read.below(way).id != self._snapshot.schema.field(path).id:
            raise InvalidRequestError(f"{path} is a part of list items, which may always be null")
        projection = resolve_projection(self._snapshot.schema, [path])
        for batch in scan_rows(self._files, self._snapshot, projection):
            if batch.column(0).null_count > 0:
                raise InvalidRequestError(
                    f"column {path} has nulls and cannot be declared without; fill them first"
                )

    def _cast(self, casts: dict[FieldId, ColumnChange]) -> Merge:
        schema = self._snapshot.schema
        old = [field for field in schema.fields if field.id in casts]
        if len(old) < len(casts):
            raise InvalidRequestError("types of parts of columns are not changed; add a new column")
        new = self._cast_fields(old, casts)
        messages = dict(zip((field.id for field in old), field_messages(new), strict=True))
        fields = tuple(messages.get(FieldId(n), each) for n, each in self._messages.items())
        known = {each.id: each for each in self._snapshot.manifest.message.fragments}
        fragments: list[table_pb2.DataFragment] = []
        reader = WholeRows(self._files, self._snapshot, old)
        try:
            for fragment in self._snapshot.fragments:
                live = live_offsets(self._files, self._snapshot, fragment)
                batches = _cast_batches(reader.batches(fragment, live.row_offsets), new)
                file = write_columns(self._snapshot, new, batches, live)
                changed = with_file(known[fragment.id], file)
                fragments.append(without_dead_files(changed, fields))
        except LanceError:
            store = self._snapshot.scheduler.store
            discard(store, (each.files[-1].path for each in fragments))
            raise
        return Merge(
            tuple(fragments),
            fields,
            dict(self._snapshot.manifest.message.schema_metadata),
            # nobody shall append values of the old type, which would read as nulls
            preserves_nullability=False,
        )

    def _cast_fields(
        self, old: Sequence[LanceField], casts: dict[FieldId, ColumnChange]
    ) -> LanceSchema:
        """Return the columns of new types, with ids of their own, in the order of the old ones."""
        fields = []
        for field in old:
            kind, message = casts[field.id].data_type, self._messages[field.id]
            given = to_arrow_field(field)
            if not isinstance(kind, pa.DataType) or len(field.children) > 0 or field.is_blob:
                raise InvalidRequestError(
                    f"column {field.name!r} of {field.logical_type} cannot become {kind}"
                )
            fields.append(pa.field(message.name, kind, message.nullable, given.metadata))
        schema = schema_of_new(pa.schema(fields), file_version_of(self._snapshot))
        return numbered_from(schema, smallest_new_id(self._snapshot.manifest.message))


def _cast_batches(batches: Iterator[pa.RecordBatch], new: LanceSchema) -> Iterator[pa.RecordBatch]:
    schema = pa.schema([to_arrow_field(field) for field in new.fields])
    for batch in batches:
        arrays = [
            _cast_array(array, field) for array, field in zip(batch.columns, schema, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _cast_array(array: pa.Array, field: pa.Field) -> pa.Array:
    try:
        return pc.cast(array, field.type)
    except pa.ArrowException as error:
        raise InvalidRequestError(
            f"column {field.name!r} cannot be cast from {array.type} to {field.type}: {error}"
        ) from None


def _check_left(schema: LanceSchema, dropped: set[FieldId]) -> None:
    """Refuse to drop all columns, all parts of one, or what is no part of a struct."""
    if all(field.id in dropped for field in schema.fields):
        raise InvalidRequestError("all columns would be dropped; a dataset keeps at least one")
    for field in schema.walk():
        below = {each.id for each in field.walk()} - {field.id}
        if field.id in dropped or below.isdisjoint(dropped):
            continue
        has_parts = field.logical_type in _OF_PARTS and not (field.is_packed or field.is_blob)
        if not has_parts or below <= dropped:
            raise InvalidRequestError(
                f"no part of {field.name!r} can be dropped alone, or none would be left; drop it"
            )
