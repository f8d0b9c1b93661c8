"""The manifest that an operation makes of the newest version."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import singledispatch
from typing import TYPE_CHECKING

from pyroaring import BitMap

from lance_core.errors import InvalidRequestError
from lance_core.proto import table_pb2
from lance_core.table import fragment_upkeep as fragments, index_upkeep as indices
from lance_core.table.flags import Feature
from lance_core.table.index_metadata import REUSE_INDEX_NAME
from lance_core.table.metadata_upkeep import apply_config
from lance_core.table.row_lineage import (
    add_lineage,
    check_complete,
    has_stable_row_ids,
    stamp_all_rows,
    stamp_updated_rows,
)
from lance_core.table.transaction import (
    Append,
    CreateIndex,
    DataReplacement,
    Delete,
    Merge,
    Operation,
    Overwrite,
    Project,
    ReserveFragments,
    Restore,
    Rewrite,
    Update,
    UpdateBases,
    UpdateConfig,
    UpdateMode,
)
from lance_core.table.writer_flags import set_flags

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from lance_core.proto import file_pb2
    from lance_core.proto.transaction_pb2 import Transaction
    from lance_core.table.manifest import Manifest

    RewrittenIndex = Transaction.Rewrite.RewrittenIndex

_OTHER_2_0 = (0, 3)
"""How some writers spell the version of 2.0 files."""


@dataclass(slots=True)
class Draft:
    """The next version while an operation is applied to it.

    Parameters
    ----------
    message
        Manifest of the newest version, then of the next one; without version, time and
        transaction, which are those of the attempt to commit.
    version
        Number of the next version.
    indices
        Its index entries.
    fold
        Leads coverage through the reuse history of the newest version.
    read_version
        The version that the operation was computed from.
    restored
        The version that a restore brings back.
    reuse_entry
        What a deferred rewrite puts in place of the entry of the reuse history.
    """

    message: table_pb2.Manifest
    version: int
    indices: list[table_pb2.IndexMetadata]
    fold: Callable[[BitMap], BitMap]
    read_version: int
    restored: Manifest | None = None
    reuse_entry: table_pb2.IndexMetadata | None = None

    @property
    def fragments_by_id(self) -> dict[int, table_pb2.DataFragment]:
        """Fragments of the draft by id."""
        return {fragment.id: fragment for fragment in self.message.fragments}


def apply_operation(draft: Draft, operation: Operation) -> None:
    """Turn the newest version into the next one.

    Raises
    ------
    InvalidRequestError
        The operation changes fragments that are not there, brings files of another version than
        the dataset's, or cannot be committed at all.

    Notes
    -----
    Lance table format, section "Building the manifest"; verified against pylance 14.0.2.
    """
    known = {file.path for fragment in draft.message.fragments for file in fragment.files}
    _apply(operation, draft)
    if not isinstance(operation, Restore):
        _check_file_versions(draft.message, known)
    set_flags(draft.message, draft.indices)


@singledispatch
def _apply(operation: Operation, draft: Draft) -> None:
    raise InvalidRequestError(f"{type(operation).__name__} cannot be committed here")


@_apply.register
def _append(operation: Append, draft: Draft) -> None:
    fragments.set_fragments(
        draft.message, [*draft.message.fragments, *_new(draft, operation.fragments)]
    )


@_apply.register
def _overwrite(operation: Overwrite, draft: Draft) -> None:
    message = draft.message
    fragments.set_fragments(message, _new(draft, operation.fragments))
    _set_schema(message, operation.fields)
    _set_metadata(message, operation.schema_metadata)
    message.config.update(operation.config_upserts)
    message.base_paths.extend(operation.base_paths)
    version = _file_version(operation.fragments)
    if version is not None:
        message.data_format.version = version
    draft.indices.clear()


@_apply.register
def _delete(operation: Delete, draft: Draft) -> None:
    present = draft.fragments_by_id
    fragments.set_fragments(
        draft.message,
        fragments.replaced(
            draft.message.fragments,
            updated=fragments.with_deletions_of(present, operation.updated_fragments),
            removed=operation.deleted_fragment_ids,
        ),
    )


@_apply.register
def _update(operation: Update, draft: Draft) -> None:
    if operation.mode is UpdateMode.REWRITE_ROWS:
        _update_rows(operation, draft)
    else:
        _update_columns(operation, draft)


def _update_rows(operation: Update, draft: Draft) -> None:
    message, present = draft.message, draft.fragments_by_id
    added = fragments.numbered(operation.new_fragments, fragments.next_fragment_id(message))
    updated = fragments.with_deletions_of(present, operation.updated_fragments)
    remaining = fragments.replaced(
        message.fragments, updated=updated, removed=operation.removed_fragment_ids, added=added
    )
    if has_stable_row_ids(message):
        changed = {*operation.removed_fragment_ids, *(fragment.id for fragment in updated)}
        sources = [present[fragment_id] for fragment_id in sorted(changed)]
        if add_lineage(message, added, draft.version, sources):
            indices.cover_moved_rows(
                draft.indices,
                BitMap(changed),
                BitMap(fragment.id for fragment in added),
                indices.related_fields(operation.fields_preserving_coverage, message.fields),
            )
    fragments.set_fragments(message, remaining)


def _update_columns(operation: Update, draft: Draft) -> None:
    updated = [fragments.copied(fragment) for fragment in operation.updated_fragments]
    for fragment in updated:
        offsets = operation.updated_offsets.get(fragment.id)
        if offsets is not None:
            stamp_updated_rows(fragment, offsets, draft.version)
    fragments.set_fragments(
        draft.message,
        fragments.replaced(
            draft.message.fragments,
            updated=updated,
            removed=operation.removed_fragment_ids,
            added=_new(draft, operation.new_fragments),
        ),
    )
    _withdraw(draft, {fragment.id: set(operation.fields_modified) for fragment in updated})


@_apply.register
def _data_replacement(operation: DataReplacement, draft: Draft) -> None:
    present, changed = draft.fragments_by_id, []
    fields_of: dict[int, set[int]] = defaultdict(set)
    for replacement in operation.replacements:
        fields_of[replacement.fragment_id].update(replacement.new_file.fields)
    for fragment_id in fields_of:
        if fragment_id not in present:
            raise InvalidRequestError(f"there is no fragment {fragment_id} to change")
        own = [each for each in operation.replacements if each.fragment_id == fragment_id]
        fragment = fragments.with_replacements(present[fragment_id], own)
        stamp_all_rows(fragment, draft.version)
        changed.append(fragment)
    fragments.set_fragments(
        draft.message, fragments.replaced(draft.message.fragments, updated=changed)
    )
    _withdraw(draft, fields_of)


@_apply.register
def _merge(operation: Merge, draft: Draft) -> None:
    before = draft.fragments_by_id
    _withdraw(
        draft,
        {
            fragment.id: fragments.moved_fields(before[fragment.id], fragment)
            for fragment in operation.fragments
            if fragment.id in before
        },
    )
    merged = [fragments.copied(fragment) for fragment in operation.fragments]
    if has_stable_row_ids(draft.message):
        check_complete(merged)
        for fragment in merged:
            if fragment.id in before and fragment.files != before[fragment.id].files:
                stamp_all_rows(fragment, draft.version)
    fragments.set_fragments(draft.message, merged)
    _set_schema(draft.message, operation.fields)
    _set_metadata(draft.message, operation.schema_metadata)
    draft.indices = indices.without_dropped_fields(draft.indices, operation.fields)


@_apply.register
def _project(operation: Project, draft: Draft) -> None:
    pruned = [
        fragments.without_dead_files(fragment, operation.fields)
        for fragment in draft.message.fragments
    ]
    fragments.set_fragments(draft.message, pruned)
    _set_schema(draft.message, operation.fields)
    draft.indices = indices.without_dropped_fields(draft.indices, operation.fields)


@_apply.register
def _rewrite(operation: Rewrite, draft: Draft) -> None:
    old = [fragment.id for group in operation.groups for fragment in group.old_fragments]
    new = [fragment for group in operation.groups for fragment in group.new_fragments]
    fragments.set_fragments(
        draft.message, fragments.replaced(draft.message.fragments, removed=old, added=new)
    )
    is_stable = has_stable_row_ids(draft.message)
    if is_stable:
        check_complete(new)
    rewritten = {each.old_id.uuid: each for each in operation.rewritten_indices}
    for entry in draft.indices:
        change = rewritten.get(entry.uuid.uuid)
        if change is not None or (is_stable and indices.stores_row_ids(entry)):
            entry.fragment_bitmap = indices.rewritten_coverage(entry, operation.groups, draft.fold)
        if change is not None:
            _replace_files(entry, change, draft)
    if draft.reuse_entry is not None:
        others = [e for e in draft.indices if e.name != draft.reuse_entry.name]
        draft.indices = [*others, draft.reuse_entry]


def _replace_files(entry: table_pb2.IndexMetadata, change: RewrittenIndex, draft: Draft) -> None:
    """Let an entry name the files that were written anew; they are of this dataset."""
    entry.uuid.CopyFrom(change.new_id)
    entry.index_details.CopyFrom(change.new_index_details)
    entry.index_version = change.new_index_version
    del entry.files[:]
    entry.files.extend(change.new_index_files)
    entry.ClearField("base_id")
    if any(each.name == REUSE_INDEX_NAME for each in draft.indices):
        # They name rows as of the version read: deferred compactions up to it were followed.
        entry.dataset_version = max(entry.dataset_version, draft.read_version)


@_apply.register
def _create_index(operation: CreateIndex, draft: Draft) -> None:
    removed = {entry.uuid.uuid for entry in operation.removed_indices}
    removed |= {entry.uuid.uuid for entry in operation.new_indices}
    kept = [entry for entry in draft.indices if entry.uuid.uuid not in removed]
    draft.indices = [*kept, *operation.new_indices]


@_apply.register
def _reserve_fragments(operation: ReserveFragments, draft: Draft) -> None:
    if operation.num_fragments < 1:
        raise InvalidRequestError(f"{operation.num_fragments} fragments cannot be reserved")
    last = fragments.next_fragment_id(draft.message) + operation.num_fragments - 1
    draft.message.max_fragment_id = last


@_apply.register
def _restore(operation: Restore, draft: Draft) -> None:
    old = draft.restored
    if old is None or old.version != operation.version:
        raise InvalidRequestError(f"version {operation.version} is not there to be restored")
    newest = draft.message
    draft.message = table_pb2.Manifest()
    draft.message.CopyFrom(old.message)
    draft.indices = list(old.index_section.indices)
    draft.message.next_row_id = max(newest.next_row_id, old.message.next_row_id)
    if newest.HasField("max_fragment_id"):
        draft.message.max_fragment_id = max(newest.max_fragment_id, old.message.max_fragment_id)


@_apply.register
def _update_config(operation: UpdateConfig, draft: Draft) -> None:
    apply_config(draft.message, operation)


@_apply.register
def _update_bases(operation: UpdateBases, draft: Draft) -> None:
    draft.message.base_paths.extend(operation.new_bases)


def _new(
    draft: Draft, new_fragments: Iterable[table_pb2.DataFragment]
) -> list[table_pb2.DataFragment]:
    """Return new fragments as they enter the manifest: with ids, and their rows with theirs."""
    added = fragments.numbered(new_fragments, fragments.next_fragment_id(draft.message))
    if has_stable_row_ids(draft.message):
        add_lineage(draft.message, added, draft.version)
    return added


def _withdraw(draft: Draft, fields_of: dict[int, set[int]]) -> None:
    """Withdraw coverage of fragments from indices on fields with new values, and their parents."""
    by_field: dict[int, set[int]] = defaultdict(set)
    for fragment_id, field_ids in fields_of.items():
        for field in indices.with_ancestors(field_ids, draft.message.fields):
            by_field[field].add(fragment_id)
    draft.indices = indices.withdraw(draft.indices, by_field, draft.fold)


def _set_schema(message: table_pb2.Manifest, fields: Sequence[file_pb2.Field]) -> None:
    del message.fields[:]
    message.fields.extend(fields)
    if message.HasField("max_allocated_field_id"):
        largest = max((field.id for field in fields), default=-1)
        message.max_allocated_field_id = max(message.max_allocated_field_id, largest)


def _set_metadata(message: table_pb2.Manifest, metadata: Mapping[str, bytes]) -> None:
    message.schema_metadata.clear()
    message.schema_metadata.update(metadata)


def _file_version(new_fragments: Iterable[table_pb2.DataFragment]) -> str | None:
    """Return the version that all files have, None without files or with several versions."""
    versions = {_version_of(file) for fragment in new_fragments for file in fragment.files}
    return versions.pop() if len(versions) == 1 else None


def _version_of(file: table_pb2.DataFile) -> str:
    number = (file.file_major_version, file.file_minor_version)
    return "2.0" if number == _OTHER_2_0 else f"{number[0]}.{number[1]}"


def _check_file_versions(message: table_pb2.Manifest, known: Collection[str]) -> None:
    """Refuse new files of another version; the reference does not open a dataset with both."""
    expected = message.data_format.version
    if message.reader_feature_flags & Feature.MIXED_FILE_VERSIONS:
        return
    for fragment in message.fragments:
        for file in fragment.files:
            if file.path not in known and _version_of(file) != expected:
                raise InvalidRequestError(
                    f"{file.path} is a file of version {_version_of(file)}, those of the dataset "
                    f"are of version {expected}"
                )
