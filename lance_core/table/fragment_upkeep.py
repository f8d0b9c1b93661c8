"""What commits do to the fragments of a manifest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.errors import InvalidRequestError
from lance_core.proto import table_pb2

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from lance_core.proto import file_pb2
    from lance_core.table.transaction import Replacement

Fragment = table_pb2.DataFragment

TOMBSTONE = -2
"""Field id of a column whose values are to be found in another file, or nowhere."""


def numbered(fragments: Iterable[Fragment], first_id: int) -> list[Fragment]:
    """Return copies of new fragments with ids from ``first_id`` on, in their order."""
    return [_with_id(fragment, number) for number, fragment in enumerate(fragments, first_id)]


def next_fragment_id(manifest: table_pb2.Manifest) -> int:
    """Return the id of the next new fragment; ids are never used again."""
    return manifest.max_fragment_id + 1 if manifest.HasField("max_fragment_id") else 0


def set_fragments(manifest: table_pb2.Manifest, fragments: Iterable[Fragment]) -> None:
    """Give a manifest its fragments, ascending by id: the reference relies on the order."""
    ordered = sorted(fragments, key=lambda fragment: fragment.id)
    del manifest.fragments[:]
    manifest.fragments.extend(ordered)
    if ordered and ordered[-1].id >= next_fragment_id(manifest):
        manifest.max_fragment_id = ordered[-1].id


def replaced(
    fragments: Iterable[Fragment],
    *,
    updated: Iterable[Fragment] = (),
    removed: Collection[int] = (),
    added: Iterable[Fragment] = (),
) -> list[Fragment]:
    """Return fragments with some replaced, some removed and some added.

    Raises
    ------
    InvalidRequestError
        A fragment to replace or to remove is not there.
    """
    by_id = {fragment.id: fragment for fragment in fragments}
    for fragment in updated:
        _check_present(fragment.id, by_id)
        by_id[fragment.id] = fragment
    for fragment_id in removed:
        _check_present(fragment_id, by_id)
        del by_id[fragment_id]
    return [*by_id.values(), *added]


def with_deletions_of(
    fragments: Mapping[int, Fragment], updated: Iterable[Fragment]
) -> list[Fragment]:
    """Return what deletions make of fragments.

    Only the deletion files are taken from ``updated``: the data files of the newest version may
    be others, where a column was dropped meanwhile.
    """
    changed: list[Fragment] = []
    for update in updated:
        _check_present(update.id, fragments)
        fragment = copied(fragments[update.id])
        fragment.deletion_file.CopyFrom(update.deletion_file)
        changed.append(fragment)
    return changed


def without_dead_files(fragment: Fragment, fields: Iterable[file_pb2.Field]) -> Fragment:
    """Return a fragment without the files that hold no field of the schema.

    Hidden columns of row lineage keep a file alive.
    """
    live = {field.id for field in fields}
    kept = copied(fragment)
    del kept.files[:]
    kept.files.extend(
        file
        for file in fragment.files
        if any(field in live or field < TOMBSTONE for field in file.fields)
    )
    return kept


def with_replacements(fragment: Fragment, replacements: Iterable[Replacement]) -> Fragment:
    """Return a fragment some of whose columns lie in other files now."""
    changed = copied(fragment)
    for replacement in replacements:
        replaced_fields = set(replacement.new_file.fields)
        for file in changed.files:
            file.fields[:] = [
                TOMBSTONE if field in replaced_fields else field for field in file.fields
            ]
        left = [file for file in changed.files if set(file.fields) != {TOMBSTONE}]
        del changed.files[:]
        changed.files.extend([*left, replacement.new_file])
    return changed


def moved_fields(old: Fragment, new: Fragment) -> set[int]:
    """Return the fields that lie in another file in ``new``, or in none."""
    before, after = _file_of_field(old), _file_of_field(new)
    return {field for field, path in before.items() if after.get(field) != path}


def _file_of_field(fragment: Fragment) -> dict[int, tuple[str, int | None]]:
    return {
        field: (file.path, file.base_id if file.HasField("base_id") else None)
        for file in fragment.files
        for field in file.fields
        if field >= 0
    }


def _check_present(fragment_id: int, fragments: Mapping[int, Fragment]) -> None:
    if fragment_id not in fragments:
        raise InvalidRequestError(f"there is no fragment {fragment_id} to change")


def copied(fragment: Fragment) -> Fragment:
    """Return a copy, to be changed."""
    copy = Fragment()
    copy.CopyFrom(fragment)
    return copy


def _with_id(fragment: Fragment, fragment_id: int) -> Fragment:
    copy = copied(fragment)
    copy.id = fragment_id
    return copy
