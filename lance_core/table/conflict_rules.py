"""Rules for pairs of operations that conflict only sometimes."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from pyroaring import BitMap

from lance_core.row_set import bitmap_from_bytes
from lance_core.table.index_metadata import REUSE_INDEX_NAME
from lance_core.table.transaction import (
    Append,
    CreateIndex,
    DataReplacement,
    Delete,
    MapUpdate,
    Merge,
    Operation,
    Overwrite,
    Project,
    Rewrite,
    Update,
    UpdateBases,
    UpdateConfig,
)

if TYPE_CHECKING:
    from lance_core.proto import table_pb2, transaction_pb2


class Verdict(enum.Enum):
    """What two operations mean for the one that comes second."""

    NONE = "no conflict"
    MERGE_DELETIONS = "both deleted rows of one fragment; fine if they are different rows"
    RETRY = "the work has to be done anew"
    FAIL = "the work is pointless now"


@dataclass(frozen=True, slots=True)
class Side:
    """One of two operations; ``is_deferred`` marks a rewrite that left a reuse index behind."""

    operation: Operation
    is_deferred: bool = False


T = TypeVar("T", bound=Operation)


def _as(kind: type[T], side: Side) -> T:
    """Narrow an operation to what its row or column of the table says that it is."""
    operation = side.operation
    if not isinstance(operation, kind):
        raise TypeError(f"{type(operation).__name__} is no {kind.__name__}")
    return operation


def same_fragment(ours: Side, theirs: Side) -> Verdict:
    """Retry where both change a fragment in ways that cannot be put together."""
    return _retry_if(not _touched(ours.operation).isdisjoint(_touched(theirs.operation)))


def same_rows(ours: Side, theirs: Side) -> Verdict:
    """Merge deletions of one fragment; where one removed all of it, nothing is left to merge."""
    mine, other = _touched(ours.operation), _touched(theirs.operation)
    if mine & _removed(theirs.operation) or other & _removed(ours.operation):
        return Verdict.RETRY
    return Verdict.MERGE_DELETIONS if mine & other else Verdict.NONE


def appended_keys(ours: Side, theirs: Side) -> Verdict:
    """Retry where appended rows may have keys that a merge-insert found to be missing."""
    return _retry_if(_as(Update, ours).inserted_rows is not None)


def same_rows_or_keys(ours: Side, theirs: Side) -> Verdict:
    """Judge as `same_rows`, and retry where both may have inserted one key."""
    mine, other = _as(Update, ours), _as(Update, theirs)
    if mine.inserted_rows is not None and other.new_fragments:
        keys = other.inserted_rows
        if keys is None or _may_share_keys(mine.inserted_rows, keys):
            return Verdict.RETRY
    return same_rows(ours, theirs)


def may_meet_nulls(ours: Side, theirs: Side) -> Verdict:
    """Retry where a column that may have become non-nullable meets rows nobody checked."""
    changes = [
        side.operation for side in (ours, theirs) if isinstance(side.operation, Merge | Project)
    ]
    return _retry_if(not all(change.preserves_nullability for change in changes))


def new_columns_for_old(ours: Side, theirs: Side) -> Verdict:
    """Judge as `may_meet_nulls`, and retry where a column that was written is another one now.

    The reference commits then, and the values written for the column before its cast are lost.
    """
    kept = {field.id for field in _as(Merge, theirs).fields}
    written = {
        number
        for fragment in _as(Append, ours).fragments
        for file in fragment.files
        for number in file.fields
        if number >= 0
    }
    return Verdict.RETRY if written - kept else may_meet_nulls(ours, theirs)


def same_index_name(ours: Side, theirs: Side) -> Verdict:
    """Retry where both create or remove segments of one logical index."""
    return _retry_if(not _index_names(ours.operation).isdisjoint(_index_names(theirs.operation)))


def moved_under_index(ours: Side, theirs: Side) -> Verdict:
    """Retry where a compaction moved rows that a new segment was built from."""
    if isinstance(ours.operation, Rewrite):
        rewrite, index = ours, _as(CreateIndex, theirs)
    else:
        rewrite, index = theirs, _as(CreateIndex, ours)
    if not rewrite.is_deferred:
        moved = BitMap(_touched(rewrite.operation))
        return _retry_if(any(_may_cover(entry, moved) for entry in index.new_indices))
    if rewrite is theirs:  # a trim that was computed without the newest reuse version
        return _retry_if(REUSE_INDEX_NAME in _index_names(index))
    removed = {entry.name for entry in index.removed_indices}
    kept = {entry.name for entry in index.new_indices}
    return _retry_if(REUSE_INDEX_NAME in removed - kept)


def indexed_field_replaced(ours: Side, theirs: Side) -> Verdict:
    """Retry where values were replaced that a new segment was built from."""
    is_index = isinstance(ours.operation, CreateIndex)
    index = _as(CreateIndex, ours if is_index else theirs)
    replaced = _as(DataReplacement, theirs if is_index else ours)
    indexed = {field for entry in index.new_indices for field in entry.fields}
    return _retry_if(not indexed.isdisjoint(_replaced_fields(replaced)))


def metadata_retry(ours: Side, theirs: Side) -> Verdict:
    """Retry where a schema meets metadata of the one it replaces."""
    return _retry_if(_touches_schema(ours.operation) or _touches_schema(theirs.operation))


def metadata_fail(ours: Side, theirs: Side) -> Verdict:
    """Fail where metadata is meant for a schema that is there no longer."""
    touches = _touches_schema(ours.operation) or _touches_schema(theirs.operation)
    return Verdict.FAIL if touches else Verdict.NONE


def same_key(ours: Side, theirs: Side) -> Verdict:
    """Fail where both set one key of the configuration or of the metadata."""
    clash = any(
        _maps_clash(mine, other)
        for name, mine in _maps(ours.operation).items()
        if (other := _maps(theirs.operation).get(name)) is not None
    )
    return Verdict.FAIL if clash else Verdict.NONE


def config_overwritten(ours: Side, theirs: Side) -> Verdict:
    """Fail where the schema of the metadata, or a key, was overwritten."""
    if _touches_schema(ours.operation):
        return Verdict.FAIL
    return same_key(ours, theirs)


def replaced_fragment_gone(ours: Side, theirs: Side) -> Verdict:
    """Fail where a fragment is gone whose columns were to be replaced."""
    gone = _touched(ours.operation) & _removed(theirs.operation)
    return Verdict.FAIL if gone else Verdict.NONE


def replaced_field_dropped(ours: Side, theirs: Side) -> Verdict:
    """Fail where a column was dropped that was to be replaced."""
    left = {field.id for field in _as(Project, theirs).fields}
    if not _replaced_fields(_as(DataReplacement, ours)) <= left:
        return Verdict.FAIL
    return may_meet_nulls(ours, theirs)


def same_column(ours: Side, theirs: Side) -> Verdict:
    """Retry where both replace a column of one fragment."""
    mine, other = _as(DataReplacement, ours), _as(DataReplacement, theirs)
    return _retry_if(not _replaced_columns(mine).isdisjoint(_replaced_columns(other)))


def same_base(ours: Side, theirs: Side) -> Verdict:
    """Fail where both add a base path of one id, name or place."""
    mine, other = _as(UpdateBases, ours).new_bases, _as(UpdateBases, theirs).new_bases
    clash = any(_bases_clash(one, another) for one in mine for another in other)
    return Verdict.FAIL if clash else Verdict.NONE


def _retry_if(condition: bool) -> Verdict:
    return Verdict.RETRY if condition else Verdict.NONE


def _touched(operation: Operation) -> set[int]:
    """Return the fragments whose rows an operation deletes, moves or gives other values."""
    if isinstance(operation, Rewrite):
        return {fragment.id for group in operation.groups for fragment in group.old_fragments}
    if isinstance(operation, DataReplacement):
        return {each.fragment_id for each in operation.replacements}
    if isinstance(operation, Delete | Update):
        updated = {fragment.id for fragment in operation.updated_fragments}
        return updated | _removed(operation)
    return set()


def _removed(operation: Operation) -> set[int]:
    """Return the fragments that a deletion left without a row."""
    if isinstance(operation, Delete):
        return set(operation.deleted_fragment_ids)
    return set(operation.removed_fragment_ids) if isinstance(operation, Update) else set()


def _may_share_keys(
    ours: transaction_pb2.KeyExistenceFilter, theirs: transaction_pb2.KeyExistenceFilter
) -> bool:
    """Tell whether both may have inserted one key; only exact filters of equal columns can deny."""
    is_comparable = (
        ours.field_ids == theirs.field_ids and ours.HasField("exact") and theirs.HasField("exact")
    )
    if not is_comparable:
        return True
    return not set(ours.exact.key_hashes).isdisjoint(theirs.exact.key_hashes)


def _index_names(operation: Operation) -> set[str]:
    index = _as(CreateIndex, Side(operation))
    return {entry.name for entry in (*index.new_indices, *index.removed_indices)}


def _may_cover(entry: table_pb2.IndexMetadata, fragments: BitMap) -> bool:
    """Tell whether a segment covers one of ``fragments``; no bytes mean unknown coverage."""
    if not entry.fragment_bitmap:
        return True
    bitmap = bitmap_from_bytes(entry.fragment_bitmap, f"index {entry.name}")
    return len(bitmap & fragments) > 0


def _replaced_columns(operation: DataReplacement) -> set[tuple[int, int]]:
    return {
        (each.fragment_id, field)
        for each in operation.replacements
        for field in each.new_file.fields
        if field >= 0
    }


def _replaced_fields(operation: DataReplacement) -> set[int]:
    return {field for _, field in _replaced_columns(operation)}


def _touches_schema(operation: Operation) -> bool:
    return isinstance(operation, UpdateConfig) and (
        operation.schema_metadata is not None or len(operation.field_metadata) > 0
    )


def _maps(operation: Operation) -> dict[str, MapUpdate]:
    """Return the changes of maps that an operation makes, by the map's name."""
    if isinstance(operation, Overwrite):
        return {"config": MapUpdate(dict(operation.config_upserts))}
    update = _as(UpdateConfig, Side(operation))
    named = {
        "config": update.config,
        "table metadata": update.table_metadata,
        "schema metadata": update.schema_metadata,
        **{f"field {field}": change for field, change in update.field_metadata.items()},
    }
    return {name: change for name, change in named.items() if change is not None}


def _maps_clash(ours: MapUpdate, theirs: MapUpdate) -> bool:
    if ours.replaces or theirs.replaces:
        return True
    return not ours.entries.keys().isdisjoint(theirs.entries)


def _bases_clash(one: table_pb2.BasePath, another: table_pb2.BasePath) -> bool:
    same_name = one.HasField("name") and another.HasField("name") and one.name == another.name
    return one.id == another.id or one.path == another.path or same_name
