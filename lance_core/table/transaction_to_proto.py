"""Transactions as the messages that a manifest and a transaction file hold."""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING

from lance_core.errors import InvalidRequestError
from lance_core.proto import transaction_pb2
from lance_core.table.transaction import (
    Append,
    Clone,
    CreateIndex,
    DataReplacement,
    Delete,
    MapUpdate,
    Merge,
    Overwrite,
    Project,
    ReserveFragments,
    Restore,
    Rewrite,
    Transaction,
    Update,
    UpdateBases,
    UpdateConfig,
    UpdateMode,
)

if TYPE_CHECKING:
    from lance_core.table.transaction import Operation

Message = transaction_pb2.Transaction


def transaction_to_bytes(transaction: Transaction) -> bytes:
    """Serialize a transaction; equal transactions give equal bytes.

    Raises
    ------
    InvalidRequestError
        The operation is one that this release does not know.
    """
    message = _message(transaction.operation)
    message.read_version = transaction.read_version
    message.uuid = transaction.uuid
    message.transaction_properties.update(transaction.properties)
    return message.SerializeToString(deterministic=True)


@singledispatch
def _message(operation: Operation) -> Message:
    raise InvalidRequestError(f"{operation} cannot be committed")


@_message.register
def _append(operation: Append) -> Message:
    return Message(append=Message.Append(fragments=operation.fragments))


@_message.register
def _overwrite(operation: Overwrite) -> Message:
    return Message(
        overwrite=Message.Overwrite(
            fragments=operation.fragments,
            schema=operation.fields,
            schema_metadata=operation.schema_metadata,
            config_upsert_values=operation.config_upserts,
            initial_bases=operation.base_paths,
        )
    )


@_message.register
def _delete(operation: Delete) -> Message:
    return Message(
        delete=Message.Delete(
            updated_fragments=operation.updated_fragments,
            deleted_fragment_ids=operation.deleted_fragment_ids,
            predicate=operation.predicate,
        )
    )


@_message.register
def _update(operation: Update) -> Message:
    in_place = operation.mode is UpdateMode.REWRITE_COLUMNS
    return Message(
        update=Message.Update(
            removed_fragment_ids=operation.removed_fragment_ids,
            updated_fragments=operation.updated_fragments,
            new_fragments=operation.new_fragments,
            fields_modified=operation.fields_modified,
            fields_for_preserving_frag_bitmap=operation.fields_preserving_coverage,
            update_mode=Message.Update.REWRITE_COLUMNS if in_place else Message.Update.REWRITE_ROWS,
            inserted_rows=operation.inserted_rows,
            updated_fragment_offset_bitmaps=operation.updated_offsets,
        )
    )


@_message.register
def _create_index(operation: CreateIndex) -> Message:
    return Message(
        create_index=Message.CreateIndex(
            new_indices=operation.new_indices, removed_indices=operation.removed_indices
        )
    )


@_message.register
def _rewrite(operation: Rewrite) -> Message:
    groups = [
        Message.Rewrite.RewriteGroup(
            old_fragments=group.old_fragments, new_fragments=group.new_fragments
        )
        for group in operation.groups
    ]
    return Message(
        rewrite=Message.Rewrite(groups=groups, rewritten_indices=operation.rewritten_indices)
    )


@_message.register
def _merge(operation: Merge) -> Message:
    return Message(
        merge=Message.Merge(
            fragments=operation.fragments,
            schema=operation.fields,
            schema_metadata=operation.schema_metadata,
            preserves_nullability=operation.preserves_nullability,
        )
    )


@_message.register
def _project(operation: Project) -> Message:
    return Message(
        project=Message.Project(
            schema=operation.fields, preserves_nullability=operation.preserves_nullability
        )
    )


@_message.register
def _restore(operation: Restore) -> Message:
    return Message(restore=Message.Restore(version=operation.version))


@_message.register
def _reserve_fragments(operation: ReserveFragments) -> Message:
    return Message(
        reserve_fragments=Message.ReserveFragments(num_fragments=operation.num_fragments)
    )


@_message.register
def _update_config(operation: UpdateConfig) -> Message:
    return Message(
        update_config=Message.UpdateConfig(
            config_updates=_update_map(operation.config),
            table_metadata_updates=_update_map(operation.table_metadata),
            schema_metadata_updates=_update_map(operation.schema_metadata),
            field_metadata_updates={
                field_id: _filled(update) for field_id, update in operation.field_metadata.items()
            },
        )
    )


@_message.register
def _data_replacement(operation: DataReplacement) -> Message:
    replacements = [
        Message.DataReplacement.Replacement(fragment_id=each.fragment_id, new_file=each.new_file)
        for each in operation.replacements
    ]
    return Message(data_replacement=Message.DataReplacement(replacements=replacements))


@_message.register
def _clone(operation: Clone) -> Message:
    return Message(
        clone=Message.Clone(
            is_shallow=operation.is_shallow,
            ref_name=operation.ref_name,
            ref_version=operation.ref_version,
            ref_path=operation.ref_path,
            branch_name=operation.branch_name,
        )
    )


@_message.register
def _update_bases(operation: UpdateBases) -> Message:
    return Message(update_bases=Message.UpdateBases(new_bases=operation.new_bases))


def _update_map(update: MapUpdate | None) -> transaction_pb2.UpdateMap | None:
    return None if update is None else _filled(update)


def _filled(update: MapUpdate) -> transaction_pb2.UpdateMap:
    entries = [
        transaction_pb2.UpdateMap.Entry(key=key, value=value)
        for key, value in update.entries.items()
    ]
    return transaction_pb2.UpdateMap(update_entries=entries, replace=update.replaces)
