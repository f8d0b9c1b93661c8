"""Which parts of a reuse history some index still needs, and how the history grows.

A history never gets shorter by itself: whoever builds or maintains indices trims it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lance_core.table.reuse_history import ReuseHistory

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyroaring import BitMap

    from lance_core.table.index_metadata import IndexMetadata


@dataclass(frozen=True, slots=True)
class ReuseGrowth:
    """How large a history has become.

    Parameters
    ----------
    num_versions
        Deferred compactions in it.
    num_removable
        Those that no index needs any more.
    num_fragments
        Fragments that were compacted.
    num_bytes
        Bytes of the surviving row addresses, nearly all of the history.
    oldest_version
        Version before that of the oldest compaction, None without any.
    """

    num_versions: int
    num_removable: int
    num_fragments: int
    num_bytes: int
    oldest_version: int | None


def trimmed(history: ReuseHistory, segments: Iterable[IndexMetadata]) -> ReuseHistory:
    """Return the part of a history that some segment still needs.

    Parameters
    ----------
    history
        All of it.
    segments
        All entries of the index section of the same version; system entries do not count.

    Notes
    -----
    Lance table format, section "Writing and trimming". A segment whose coverage is unknown needs
    everything. Any other needs a compaction of fragments that its bitmap names, as stored or led
    through the compactions before; and if it was built from a version before the compaction's own,
    also one from which fragments come that the bitmap names, since that may have been led through
    the history already while the files still name the old rows.
    """
    all_segments = [each for each in segments if not each.is_system]
    kept = [
        version
        for place, (version, reached) in enumerate(
            zip(history.versions, _reached(history), strict=True)
        )
        if any(_needs(each, history, place, reached) for each in all_segments)
    ]
    return ReuseHistory(tuple(kept))


def growth(history: ReuseHistory, segments: Iterable[IndexMetadata]) -> ReuseGrowth:
    """Measure a history; ``segments`` are all entries of the index section."""
    versions = history.versions
    return ReuseGrowth(
        num_versions=len(versions),
        num_removable=len(versions) - len(trimmed(history, segments).versions),
        num_fragments=sum(len(version.old_ids) for version in versions),
        num_bytes=history.num_bytes,
        oldest_version=min((version.dataset_version for version in versions), default=None),
    )


def _needs(segment: IndexMetadata, history: ReuseHistory, place: int, reached: BitMap) -> bool:
    """Tell whether a segment needs the compaction at a place of the history."""
    version, stored = history.versions[place], segment.fragment_bitmap
    if stored is None:
        return True
    # Fragments may have been compacted twice since anybody led the bitmap through the history.
    led = ReuseHistory(history.versions[:place]).fold(stored)
    if (stored | led).intersect(version.old_ids):
        return True
    # What was built from the version just before the compaction has the old fragments, too.
    return segment.dataset_version <= version.dataset_version and stored.intersect(reached)


def _reached(history: ReuseHistory) -> Sequence[BitMap]:
    """Return for each compaction the fragments that its rows were ever in after it."""
    found = []
    for place, version in enumerate(history.versions):
        reached = version.new_ids
        for later in history.versions[place + 1 :]:
            for group in later.groups:
                if reached.intersect(group.old_ids):
                    reached |= group.new_ids
        found.append(reached)
    return found
