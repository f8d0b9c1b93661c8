"""The reuse history of a version, as commits use it."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from lance_core.errors import UnsupportedFeatureError
from lance_core.table.base_paths import Place
from lance_core.table.naming import INDICES_FOLDER
from lance_core.table.reuse_entry import find_reuse_entry, read_reuse_history, write_reuse_entry
from lance_core.table.reuse_history import ReuseGroup, ReuseHistory, ReuseVersion, check_order

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lance_core.io.scheduler import RangeScheduler
    from lance_core.proto import table_pb2
    from lance_core.table.index_metadata import IndexMetadata
    from lance_core.table.manifest import Manifest

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
    return write_reuse_entry(
        scheduler.store,
        history,
        history.new_ids,
        dataset_version=newest.version,
        created_at_ms=time.time_ns() // _NS_PER_MS,
    )


def _folder(scheduler: RangeScheduler, entry: IndexMetadata) -> Place:
    if entry.base_id is not None:
        raise UnsupportedFeatureError(
            f"the fragment reuse index lies below base path {entry.base_id}; it is not written to"
        )
    return Place(scheduler, f"{INDICES_FOLDER}/{entry.uuid}")
