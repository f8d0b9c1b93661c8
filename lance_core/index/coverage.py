"""Which fragments a segment answers for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyroaring import BitMap

from lance_core.table.reuse_doubt import doubtful_fragments

if TYPE_CHECKING:
    from collections.abc import Iterable

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


def claimed_fragments(segments: Iterable[IndexMetadata], name: str) -> BitMap:
    """Return the fragments that an index says it was built from, live or not."""
    bitmaps = (each.fragment_bitmap for each in segments if each.name == name)
    return BitMap.union(BitMap(), *(each for each in bitmaps if each is not None))


def doubtful_coverage(segment: IndexMetadata, live: BitMap, history: ReuseHistory | None) -> BitMap:
    """Return fragments that a segment claims to cover, but whose rows its files may have lost.

    Parameters
    ----------
    segment, live, history
        As for `effective_coverage`.

    Notes
    -----
    `lance_core.table.reuse_doubt` says how that comes about.
    """
    if history is None:
        return BitMap()
    found = (doubtful_fragments(segment, each, history, live) for each in history.versions)
    return BitMap.union(BitMap(), *found)
