"""Which fragments a segment answers for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyroaring import BitMap

if TYPE_CHECKING:
    from lance_core.table.index_metadata import IndexMetadata
    from lance_core.table.reuse_history import ReuseHistory


def effective_coverage(
    segment: IndexMetadata, live: BitMap, history: ReuseHistory | None
) -> BitMap:
    """Return the live fragments that a segment covers.

    The bitmap in the manifest may name fragments that are gone, and the files may hold rows of
    fragments that the bitmap no longer names: only rows of the fragments returned here may be
    found. Unknown and empty coverage are both no coverage; a segment without any may have no files.

    Parameters
    ----------
    segment
        The segment.
    live
        Ids of the fragments of the version.
    history
        Deferred compactions, None where the version has no reuse index. The bitmap may be older
        than some of them.
    """
    if segment.fragment_bitmap is None:
        return BitMap()
    bitmap = segment.fragment_bitmap
    return (bitmap if history is None else history.fold(bitmap)) & live


def doubtful_coverage(segment: IndexMetadata, live: BitMap, history: ReuseHistory | None) -> BitMap:
    """Return fragments that a segment claims to cover, but whose rows its files may have lost.

    A compaction that follows indices at once leads just the rows that their files name to where it
    puts them. pylance 14.0.2 does so too where the files of a BTREE still name rows of before a
    deferred compaction: these are lost then, and its own filters do not find them either.
    So a segment is not believed that is older than a deferred compaction and claims fragments that
    are younger, if what that compaction wrote has gone without being in the history.

    Parameters
    ----------
    segment, live, history
        As for `effective_coverage`.
    """
    doubtful = BitMap()
    if history is None or segment.fragment_bitmap is None:
        return doubtful
    old = BitMap.union(BitMap(), *(version.old_ids for version in history.versions))
    for version in history.versions:
        new = version.new_ids
        is_gone = bool(new - live - old)
        if is_gone and segment.dataset_version <= version.dataset_version:
            doubtful |= BitMap(each for each in segment.fragment_bitmap if each > new.max())
    return doubtful - history.new_ids
