"""The reuse history of a version, as commits use it."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from pyroaring import BitMap

from lance_core.errors import UnsupportedFeatureError
from lance_core.ids import FragmentId
from lance_core.table.base_paths import Place
from lance_core.table.index_metadata import REUSE_INDEX_NAME
from lance_core.table.naming import INDICES_FOLDER
from lance_core.table.reuse_doubt import hides_loss
from lance_core.table.reuse_entry import find_reuse_entry, read_reuse_history, write_reuse_entry
from lance_core.table.reuse_history import (
    FragmentDigest,
    ReuseGroup,
    ReuseHistory,
    ReuseVersion,
    check_order,
)
from lance_core.table.reuse_trim import trimmed
from lance_core.table.transaction import CreateIndex
from lance_core.table.treemap import encode_treemap

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lance_core.io.scheduler import RangeScheduler
    from lance_core.proto import table_pb2
    from lance_core.table.index_metadata import IndexMetadata
    from lance_core.table.manifest import Manifest
    from lance_core.table.transaction import RewriteGroup

_NS_PER_MS = 1_000_000


def reuse_of(scheduler: RangeScheduler, manifest: Manifest) -> ReuseHistory:
    """Read the reuse history of a version; one without has an empty one.

    Raises
    ------
    CorruptFileError
        The history contradicts the format.
    UnsupportedFeatureError
        It is tagged, or lies in a file below another base path.
    """
    entry = find_reuse_entry(manifest.indices, manifest.path)
    if entry is None:
        return ReuseHistory(())
    return read_reuse_history(entry, manifest.path, partial(_folder, scheduler))


def group_of(group: RewriteGroup, deleted: Mapping[int, BitMap]) -> ReuseGroup:
    """Describe a compacted group for the history.

    Parameters
    ----------
    group
        Old and new fragments, each in the order of the rows; the new ones have their final ids and
        no deletions.
    deleted
        Deleted offsets of the old fragments, by fragment id, as the compaction saw them; fragments
        without an entry have none.
    """
    survivors = {
        old.id: BitMap(range(old.physical_rows)) - deleted.get(old.id, BitMap())
        for old in group.old_fragments
    }
    return ReuseGroup(
        encode_treemap(survivors),
        tuple(
            FragmentDigest(
                FragmentId(old.id), old.physical_rows, old.physical_rows - len(survivors[old.id])
            )
            for old in group.old_fragments
        ),
        tuple(FragmentDigest(FragmentId(n.id), n.physical_rows, 0) for n in group.new_fragments),
    )


def with_compaction(
    scheduler: RangeScheduler, groups: Iterable[ReuseGroup], newest: Manifest
) -> table_pb2.IndexMetadata:
    """Make the entry that adds a deferred compaction to the history of the newest version.

    To be called at every attempt to commit the compaction, with the version that the attempt is
    based on: `functools.partial` of the first two makes it a ``ReuseWriter``.

    Parameters
    ----------
    scheduler
        Reads from the root of the dataset; its store is written to if the history is long.
    groups
        What was compacted.
    newest
        The version before the one that the compaction is going to be.

    Raises
    ------
    CorruptFileError
        The history, or what it becomes, contradicts the format.
    UnsupportedFeatureError
        The history is tagged.

    Notes
    -----
    Lance table format, section "Writing and trimming". All other entries stay as they are.
    """
    version = ReuseVersion(newest.version, tuple(groups))
    history = ReuseHistory((*reuse_of(scheduler, newest).versions, version))
    check_order(history, newest.path)
    return _entry(scheduler, history, newest.version)


def trim_of(scheduler: RangeScheduler, manifest: Manifest) -> CreateIndex | None:
    """Shorten the history of a version to what its indices need; None if they need all of it.

    What shows that an index has lost rows stays too, until that index is built anew.

    Parameters
    ----------
    scheduler
        Reads from the root of the dataset; its store is written to if what is left is long.
    manifest
        The version, which is to be the read version of the transaction: a trim must not forget a
        compaction that came after it.

    Returns
    -------
    CreateIndex
        Replaces the entry, or removes it.

    Raises
    ------
    CorruptFileError
        The history contradicts the format.
    UnsupportedFeatureError
        It is tagged: another rule holds then, which nobody has tried.
    """
    history = reuse_of(scheduler, manifest)
    needed, live = trimmed(history, manifest.indices), BitMap(manifest.fragments_by_id)
    left = ReuseHistory(
        tuple(
            each
            for each in history.versions
            if each in needed.versions or hides_loss(each, history, manifest.indices, live)
        )
    )
    if len(left.versions) == len(history.versions):
        return None
    entries = manifest.index_section.indices
    (old,) = [entry for entry in entries if entry.name == REUSE_INDEX_NAME]
    if len(left.versions) == 0:
        return CreateIndex(removed_indices=(old,))
    new = _entry(scheduler, left, old.dataset_version)
    return CreateIndex(new_indices=(new,), removed_indices=(old,))


def _entry(
    scheduler: RangeScheduler, history: ReuseHistory, dataset_version: int
) -> table_pb2.IndexMetadata:
    return write_reuse_entry(
        scheduler.store,
        history,
        dataset_version=dataset_version,
        created_at_ms=time.time_ns() // _NS_PER_MS,
    )


def _folder(scheduler: RangeScheduler, entry: IndexMetadata) -> Place:
    if entry.base_id is not None:
        raise UnsupportedFeatureError(
            f"the fragment reuse index lies below base path {entry.base_id}; it is not written to"
        )
    return Place(scheduler, f"{INDICES_FOLDER}/{entry.uuid}")
