"""Transaction messages as values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from google.protobuf.message import DecodeError

from lance_core.errors import CorruptFileError
from lance_core.proto import transaction_pb2
from lance_core.table.transaction import (
    Append,
    Clone,
    CreateIndex,
    DataReplacement,
    Delete,
    MapUpdate,
    Merge,
    Operation,
    Overwrite,
    Project,
    Replacement,
    ReserveFragments,
    Restore,
    Rewrite,
    RewriteGroup,
    Transaction,
    UnknownOperation,
    Update,
    UpdateBases,
    UpdateConfig,
    UpdateMode,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Message = transaction_pb2.Transaction


def transaction_from_bytes(data: bytes | memoryview, path: str) -> Transaction:
    """Parse a transaction.

    Parameters
    ----------
    data
        The message, without the length that precedes it in a manifest.
    path
        File that the bytes came from, for the error.

    Returns
    -------
    Transaction
        With `UnknownOperation` where this release knows no such operation, or has no notion of
        what it conflicts with.

    Raises
    ------
    CorruptFileError
        The bytes are no transaction.
    """
    try:
        message = transaction_pb2.Transaction.FromString(bytes(data))
    except DecodeError as error:
        raise CorruptFileError(path, f"Transaction: {error}") from error
    kind = message.WhichOneof("operation")
    convert = None if kind is None else _CONVERSIONS.get(kind)
    return Transaction(
        read_version=message.read_version,
        operation=UnknownOperation(str(kind)) if convert is None else convert(message),
        uuid=message.uuid,
        properties=dict(message.transaction_properties),
    )


def _append(message: Message) -> Append:
    return Append(tuple(message.append.fragments))


def _overwrite(message: Message) -> Overwrite:
    operation = message.overwrite
    return Overwrite(
        tuple(operation.fragments),
        tuple(operation.schema),
        dict(operation.schema_metadata),
        dict(operation.config_upsert_values),
        tuple(operation.initial_bases),
    )


def _delete(message: Message) -> Delete:
    operation = message.delete
    return Delete(
        tuple(operation.updated_fragments),
        tuple(operation.deleted_fragment_ids),
        operation.predicate,
    )


def _update(message: Message) -> Operation:
    operation = message.update
    modes = {mode.value: mode for mode in UpdateMode}
    mode = modes.get(operation.update_mode)
    if mode is None:
        return UnknownOperation(f"update of mode {operation.update_mode}")
    return Update(
        removed_fragment_ids=tuple(operation.removed_fragment_ids),
        updated_fragments=tuple(operation.updated_fragments),
        new_fragments=tuple(operation.new_fragments),
        fields_modified=tuple(operation.fields_modified),
        fields_preserving_coverage=tuple(operation.fields_for_preserving_frag_bitmap),
        mode=mode,
        inserted_rows=operation.inserted_rows if operation.HasField("inserted_rows") else None,
        updated_offsets=dict(operation.updated_fragment_offset_bitmaps),
    )


def _create_index(message: Message) -> CreateIndex:
    operation = message.create_index
    return CreateIndex(tuple(operation.new_indices), tuple(operation.removed_indices))


def _rewrite(message: Message) -> Rewrite:
    operation = message.rewrite
    groups = [
        RewriteGroup(tuple(group.old_fragments), tuple(group.new_fragments))
        for group in operation.groups
    ]
    if operation.old_fragments or operation.new_fragments:
        old, new = tuple(operation.old_fragments), tuple(operation.new_fragments)
        groups.append(RewriteGroup(old, new))
    return Rewrite(tuple(groups), tuple(operation.rewritten_indices))


def _merge(message: Message) -> Merge:
    operation = message.merge
    return Merge(
        tuple(operation.fragments),
        tuple(operation.schema),
        dict(operation.schema_metadata),
        operation.preserves_nullability,
    )


def _project(message: Message) -> Project:
    return Project(tuple(message.project.schema), message.project.preserves_nullability)


def _restore(message: Message) -> Restore:
    return Restore(message.restore.version)


def _reserve_fragments(message: Message) -> ReserveFragments:
    return ReserveFragments(message.reserve_fragments.num_fragments)


def _update_config(message: Message) -> UpdateConfig:
    operation = message.update_config
    old_config: dict[str, str | None] = dict(operation.upsert_values)
    old_config |= dict.fromkeys(operation.delete_keys)
    old_fields = {
        field_id: MapUpdate(dict(update.metadata), replaces=True)
        for field_id, update in operation.field_metadata.items()
    }
    fields = {
        field_id: _map_update(update)
        for field_id, update in operation.field_metadata_updates.items()
    }
    return UpdateConfig(
        config=_map_update(operation.config_updates)
        if operation.HasField("config_updates")
        else _unless_empty(MapUpdate(old_config)),
        table_metadata=_map_update(operation.table_metadata_updates)
        if operation.HasField("table_metadata_updates")
        else None,
        schema_metadata=_map_update(operation.schema_metadata_updates)
        if operation.HasField("schema_metadata_updates")
        else _unless_empty(MapUpdate(dict(operation.schema_metadata), replaces=True)),
        field_metadata=old_fields | fields,
    )


def _unless_empty(update: MapUpdate) -> MapUpdate | None:
    """Return what an old writer said, or None if it said nothing."""
    return update if update.entries else None


def _map_update(message: transaction_pb2.UpdateMap) -> MapUpdate:
    entries = {
        entry.key: entry.value if entry.HasField("value") else None
        for entry in message.update_entries
    }
    return MapUpdate(entries, message.replace)


def _data_replacement(message: Message) -> DataReplacement:
    return DataReplacement(
        tuple(
            Replacement(each.fragment_id, each.new_file)
            for each in message.data_replacement.replacements
        )
    )


def _clone(message: Message) -> Clone:
    operation = message.clone
    return Clone(
        is_shallow=operation.is_shallow,
        ref_name=operation.ref_name if operation.HasField("ref_name") else None,
        ref_version=operation.ref_version,
        ref_path=operation.ref_path,
        branch_name=operation.branch_name if operation.HasField("branch_name") else None,
    )


def _update_bases(message: Message) -> UpdateBases:
    return UpdateBases(tuple(message.update_bases.new_bases))


_CONVERSIONS: Mapping[str, Callable[[Message], Operation]] = {
    "append": _append,
    "delete": _delete,
    "overwrite": _overwrite,
    "create_index": _create_index,
    "rewrite": _rewrite,
    "merge": _merge,
    "restore": _restore,
    "reserve_fragments": _reserve_fragments,
    "update": _update,
    "project": _project,
    "update_config": _update_config,
    "data_replacement": _data_replacement,
    "clone": _clone,
    "update_bases": _update_bases,
}
