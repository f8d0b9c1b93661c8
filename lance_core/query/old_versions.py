"""What the cache keeps for a version alone, to be let go when nobody uses that version any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.cache.keys import CacheKey
from lance_core.errors import LanceError

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

    from lance_core.cache.byte_cache import ByteCache
    from lance_core.table.fragment import Fragment
    from lance_core.table.snapshot import Snapshot


def forget_version(cache: ByteCache, old: Snapshot, kept: Iterable[Snapshot]) -> None:
    """Discard what the cache holds for a version and for none of some others.

    That is what was made for this version, and parts of files that the others do not have: data
    files that were compacted away, segments that others took the place of.

    Parameters
    ----------
    cache
        The cache.
    old
        The version that nobody uses.
    kept
        Versions of the same dataset that are still used.
    """
    names = _names(old).difference(*map(_names, kept))
    cache.discard([key for key in cache.held_keys() if _is_named(key, names)])


def _names(snapshot: Snapshot) -> set[Hashable]:
    """Return what occurs in keys of a version: all of these are random or of this version only."""
    files = {path for each in snapshot.fragments for path in _files(snapshot, each)}
    return {snapshot.incarnation, *(each.uuid for each in snapshot.indices), *files}


def _files(snapshot: Snapshot, fragment: Fragment) -> Iterator[str]:
    try:
        yield from (snapshot.data_place(each).path for each in fragment.data_files)
        if fragment.deletion_file is not None:
            yield snapshot.deletion_place(fragment.id, fragment.deletion_file).path
    except LanceError:  # the place may not be read, so nothing of it is held
        return


def _is_named(key: Hashable, names: set[Hashable]) -> bool:
    return isinstance(key, CacheKey) and any(each in names for each in _flat(key.name))


def _flat(name: Hashable) -> Iterator[Hashable]:
    if not isinstance(name, tuple):
        yield name
        return
    for each in name:
        yield from _flat(each)
