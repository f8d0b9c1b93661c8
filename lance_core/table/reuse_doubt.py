"""Segments that may have lost rows when a table was compacted in two ways."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyroaring import BitMap

if TYPE_CHECKING:
    from lance_core.table.index_metadata import IndexMetadata
    from lance_core.table.reuse_history import ReuseHistory, ReuseVersion

_KINDS = frozenset(("btreeindexdetails", "ngramindexdetails", "invertedindexdetails", ""))
"""Of which pylance 14.0.2 loses rows; old writers left the kind out."""


def doubtful_fragments(
    segment: IndexMetadata, version: ReuseVersion, history: ReuseHistory, live: BitMap
) -> BitMap:
    """Return fragments that a segment claims, but whose rows a deferred compaction may hide.

    A compaction that follows indices at once leads just the rows that their files name to where it
    puts them. pylance 14.0.2 does so too where the files still name rows of before a deferred
    compaction: these are lost then, and its own filters do not find them either. So a segment is
    not believed that is older than a deferred compaction and claims fragments that are younger, if
    what that compaction wrote has gone without being in the history.

    Parameters
    ----------
    segment
        The segment.
    version
        A deferred compaction of the history.
    history
        All of them.
    live
        Ids of the fragments of the version.
    """
    old = BitMap.union(BitMap(), *(each.old_ids for each in history.versions))
    new = version.new_ids
    is_gone = bool(new - live - old)
    is_older = segment.dataset_version <= version.dataset_version
    if segment.fragment_bitmap is None or not is_gone or not is_older:
        return BitMap()
    return BitMap(each for each in segment.fragment_bitmap if each > new.max()) - history.new_ids


def hides_loss(
    version: ReuseVersion,
    history: ReuseHistory,
    segments: tuple[IndexMetadata, ...],
    live: BitMap,
) -> bool:
    """Tell whether some segment would be believed again without a deferred compaction."""
    return any(
        doubtful_fragments(each, version, history, live).intersect(live)
        for each in segments
        if not each.is_system and each.type_name.lower() in _KINDS
    )
