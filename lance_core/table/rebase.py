"""Putting a transaction on top of what others committed since it read the dataset."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyroaring import BitMap

from lance_core.errors import CommitConflictError
from lance_core.proto import table_pb2
from lance_core.table.deletion import deleted_offsets_at
from lance_core.table.deletion_writer import write_deletion_file
from lance_core.table.fragment import fragment_from_proto
from lance_core.table.fragment_upkeep import moved_fields
from lance_core.table.index_upkeep import with_ancestors, withdraw
from lance_core.table.transaction import (
    CreateIndex,
    DataReplacement,
    Delete,
    Merge,
    Operation,
    Transaction,
    Update,
    UpdateMode,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from lance_core.table.manifest import Manifest
    from lance_core.table.snapshot import Snapshot

Fragment = table_pb2.DataFragment


@dataclass(frozen=True, slots=True, eq=False)
class Ground:
    """What a transaction stands on, and what it is to stand on.

    Parameters
    ----------
    read
        The version that the transaction was computed from.
    newest
        The version it is to be committed on top of; the store of its scheduler is written to.
    fold
        Leads coverage through the reuse history of ``newest``.
    """

    read: Manifest
    newest: Snapshot
    fold: Callable[[BitMap], BitMap]


def needs_ground(operation: Operation) -> bool:
    """Tell whether an operation may have to be changed when others committed before it."""
    return isinstance(operation, CreateIndex | Delete) or (
        isinstance(operation, Update) and operation.mode is UpdateMode.REWRITE_ROWS
    )


def rebase(transaction: Transaction, theirs: Sequence[Operation], ground: Ground) -> Transaction:
    """Change a transaction so that it fits the newest version.

    Parameters
    ----------
    transaction
        Free of conflicts that the table of conflicts forbids.
    theirs
        What was committed between ``ground.read`` and ``ground.newest``.

    Returns
    -------
    Transaction
        Deletions name files with the deleted rows of both, and the newest version as the one
        read; new index segments no longer cover fragments with new values. Others need no change:
        ids are given out when the manifest is built.

    Raises
    ------
    CommitConflictError
        Both deleted the same row, or an indexed column is gone.

    Notes
    -----
    Lance table format, section "What rebasing changes"; verified against pylance 14.0.2.
    """
    operation = transaction.operation
    if isinstance(operation, Delete):
        updated, removed = _merged(
            operation.updated_fragments, operation.deleted_fragment_ids, ground
        )
        operation = replace(operation, updated_fragments=updated, deleted_fragment_ids=removed)
    elif isinstance(operation, Update) and operation.mode is UpdateMode.REWRITE_ROWS:
        updated, removed = _merged(
            operation.updated_fragments, operation.removed_fragment_ids, ground
        )
        operation = replace(operation, updated_fragments=updated, removed_fragment_ids=removed)
    elif isinstance(operation, CreateIndex):
        return replace(transaction, operation=_recovered(operation, theirs, ground))
    else:
        return transaction
    return replace(transaction, operation=operation, read_version=ground.newest.version)


def _merged(
    updated: Iterable[Fragment], removed: Iterable[int], ground: Ground
) -> tuple[tuple[Fragment, ...], tuple[int, ...]]:
    """Merge deletions fragment by fragment; one left without rows joins those removed."""
    before, after = _by_id(ground.read), _by_id(ground.newest.manifest)
    kept: list[Fragment] = []
    gone = list(removed)
    for fragment_id in gone:
        if fragment_id not in after or _differ(before[fragment_id], after[fragment_id]):
            raise _same_rows(fragment_id, ground)
    for fragment in updated:
        if fragment.id not in after:
            raise _same_rows(fragment.id, ground)
        if not _differ(before[fragment.id], after[fragment.id]):
            kept.append(fragment)
            continue
        deleted = _deleted_by_both(fragment, before[fragment.id], after[fragment.id], ground)
        if len(deleted) == fragment.physical_rows:
            gone.append(fragment.id)
        else:
            kept.append(_with_deletions(fragment, deleted, ground))
    return tuple(kept), tuple(gone)


def _deleted_by_both(ours: Fragment, before: Fragment, after: Fragment, ground: Ground) -> BitMap:
    """Return all rows that either deleted, if they deleted different ones."""
    ours_deleted = _deleted(ours, ground)
    theirs_deleted = _deleted(after, ground)
    if (ours_deleted & theirs_deleted) != _deleted(before, ground):
        raise _same_rows(ours.id, ground)
    return ours_deleted | theirs_deleted


def _deleted(fragment: Fragment, ground: Ground) -> BitMap:
    value = fragment_from_proto(fragment, ground.newest.manifest.path)
    if value.deletion_file is None:
        return BitMap()
    place = ground.newest.deletion_place(value.id, value.deletion_file)
    return deleted_offsets_at(place, value, value.deletion_file)


def _with_deletions(fragment: Fragment, deleted: BitMap, ground: Ground) -> Fragment:
    changed = Fragment()
    changed.CopyFrom(fragment)
    changed.deletion_file.CopyFrom(
        write_deletion_file(
            ground.newest.scheduler.store, fragment.id, ground.newest.version, deleted
        )
    )
    return changed


def _recovered(operation: CreateIndex, theirs: Sequence[Operation], ground: Ground) -> CreateIndex:
    """Give up the fragments whose indexed values others changed."""
    entries = list(operation.new_indices)
    for each in theirs:
        changed = _changed_fields(each, ground)
        by_field: dict[int, set[int]] = {}
        for fragment_id, fields in changed.items():
            for field in with_ancestors(fields, ground.read.message.fields):
                by_field.setdefault(field, set()).add(fragment_id)
        entries = withdraw(entries, by_field, ground.fold)
    present = {field.id for field in ground.newest.manifest.message.fields}
    if not all(present.issuperset(entry.fields) for entry in entries):
        raise CommitConflictError(
            "an indexed column is gone", version=ground.newest.version, is_retryable=True
        )
    return replace(operation, new_indices=tuple(entries))


def _changed_fields(operation: Operation, ground: Ground) -> dict[int, set[int]]:
    """Return the fields to which an operation gave new values in place, by fragment."""
    if isinstance(operation, Update) and operation.mode is UpdateMode.REWRITE_COLUMNS:
        fields = set(operation.fields_modified)
        return {fragment.id: fields for fragment in operation.updated_fragments}
    if isinstance(operation, DataReplacement):
        return {each.fragment_id: set(each.new_file.fields) for each in operation.replacements}
    if isinstance(operation, Merge):
        before = _by_id(ground.read)
        every_field = {field.id for field in operation.fields}
        return {
            fragment.id: moved_fields(before[fragment.id], fragment)
            if fragment.id in before
            else every_field  # it was made since, so nobody knows what it held before
            for fragment in operation.fragments
        }
    return {}


def _by_id(manifest: Manifest) -> dict[int, Fragment]:
    return {fragment.id: fragment for fragment in manifest.message.fragments}


def _differ(before: Fragment, after: Fragment) -> bool:
    """Tell whether others deleted rows of a fragment."""
    return before.deletion_file != after.deletion_file


def _same_rows(fragment_id: int, ground: Ground) -> CommitConflictError:
    return CommitConflictError(
        f"rows of fragment {fragment_id} were deleted or changed by both",
        version=ground.newest.version,
        is_retryable=True,
    )
