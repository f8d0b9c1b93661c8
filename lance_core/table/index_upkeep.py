"""What commits do to the index entries of a manifest.

Entries that an operation does not touch go to the next version as they are, fields unknown to this
release included.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyroaring import BitMap

from lance_core.proto import table_pb2
from lance_core.row_set import bitmap_from_bytes
from lance_core.table.index_metadata import SYSTEM_PREFIX

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from lance_core.proto import file_pb2
    from lance_core.table.transaction import RewriteGroup

Entry = table_pb2.IndexMetadata

_BTREE = "btreeindexdetails"
_OF_ROW_IDS = frozenset(
    (
        "vectorindexdetails",
        "bitmapindexdetails",
        "labellistindexdetails",
        "ngramindexdetails",
        "invertedindexdetails",
    )
)


def withdraw(
    entries: Iterable[Entry],
    fragments_by_field: Mapping[int, Collection[int]],
    fold: Callable[[BitMap], BitMap],
) -> list[Entry]:
    """Take fragments out of the coverage of segments whose values they no longer hold.

    Parameters
    ----------
    entries
        The entries of the version before.
    fragments_by_field
        Fragments with new values, by field; with all ancestors of the fields, since an index on a
        list names the list.
    fold
        Leads coverage through the reuse history: taking a fragment out of a bitmap that still
        names the fragments it was made of would take out nothing.

    Returns
    -------
    list[table_pb2.IndexMetadata]
        A segment of unknown coverage is left out, as nothing can be taken out of it.
    """
    kept: list[Entry] = []
    for entry in entries:
        changed = {f for field in entry.fields for f in fragments_by_field.get(field, ())}
        if not changed or is_system(entry):
            kept.append(entry)
        elif entry.fragment_bitmap:
            kept.append(_with_coverage(entry, fold(coverage(entry)) - BitMap(changed)))
    return kept


def without_dropped_fields(
    entries: Iterable[Entry], fields: Iterable[file_pb2.Field]
) -> list[Entry]:
    """Leave out segments on fields that the schema has no longer."""
    present = {field.id for field in fields}
    return [entry for entry in entries if is_system(entry) or present.issuperset(entry.fields)]


def with_ancestors(field_ids: Iterable[int], fields: Iterable[file_pb2.Field]) -> set[int]:
    """Return fields and all that contain them."""
    parents = {field.id: field.parent_id for field in fields}
    found: set[int] = set()
    for field_id in field_ids:
        each = field_id
        while each >= 0 and each not in found:
            found.add(each)
            each = parents.get(each, -1)
    return found


def related_fields(field_ids: Iterable[int], fields: Sequence[file_pb2.Field]) -> set[int]:
    """Return fields, all that contain them and all that they contain."""
    wanted = set(field_ids)
    below = {field.id for field in fields if with_ancestors([field.id], fields) & wanted}
    return with_ancestors(wanted, fields) | below


def stores_row_ids(entry: Entry) -> bool:
    """Tell whether a segment of a dataset with stable row ids names rows by those.

    Notes
    -----
    Lance table format, section "What does an index store"; verified against pylance 14.0.2. BTrees
    of version 1 and indices of zones store addresses.
    """
    kind = entry.index_details.type_url.rpartition(".")[2].lower()
    return kind in _OF_ROW_IDS or (kind == _BTREE and entry.index_version == 0)


def cover_moved_rows(
    entries: Iterable[Entry], sources: BitMap, moved: BitMap, changed_fields: Collection[int]
) -> None:
    """Add the fragments that rows were moved to, to the coverage of segments that find them there.

    Parameters
    ----------
    entries
        Entries of a dataset with stable row ids; changed in place.
    sources
        Fragments that the rows were moved from.
    moved
        New fragments, with no other rows in them.
    changed_fields
        Fields with new values; none = not known, and then nothing is covered.
    """
    for entry in entries:
        keeps = changed_fields and not set(entry.fields) & set(changed_fields)
        if not keeps or is_system(entry) or not stores_row_ids(entry) or not entry.fragment_bitmap:
            continue
        covered = coverage(entry)
        if sources.issubset(covered):
            entry.fragment_bitmap = coverage_bytes(covered | moved)


def rewritten_coverage(
    entry: Entry, groups: Sequence[RewriteGroup], fold: Callable[[BitMap], BitMap]
) -> bytes:
    """Return the coverage of a segment that followed a compaction.

    New fragments are covered where all old ones of their group were; unknown coverage stays so.
    The fragments compacted may have come out of deferred compactions, through which ``fold`` leads.
    """
    if not entry.fragment_bitmap:
        return b""
    covered = fold(coverage(entry))
    for group in groups:
        old = BitMap(fragment.id for fragment in group.old_fragments)
        if old.issubset(covered):
            covered |= BitMap(fragment.id for fragment in group.new_fragments)
        covered -= old
    return coverage_bytes(covered)


def coverage(entry: Entry) -> BitMap:
    """Return the stored coverage of a segment whose coverage is known."""
    return bitmap_from_bytes(entry.fragment_bitmap, f"index {entry.name}")


def coverage_bytes(fragment_ids: BitMap) -> bytes:
    """Serialize coverage; even that of nothing has bytes, since none mean unknown."""
    fragment_ids.run_optimize()
    data: bytes = fragment_ids.serialize()
    return data


def is_system(entry: Entry) -> bool:
    """Tell entries that serve the table itself from indices."""
    return entry.name.startswith(SYSTEM_PREFIX)


def _with_coverage(entry: Entry, fragment_ids: BitMap) -> Entry:
    changed = Entry()
    changed.CopyFrom(entry)
    changed.fragment_bitmap = coverage_bytes(fragment_ids)
    return changed
