"""The Fragment Reuse Index of a version, as readers of other indices use it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lance_core.cache.keys import CacheKey
from lance_core.errors import UnsupportedFeatureError
from lance_core.table.reuse_entry import find_reuse_entry, read_reuse_history
from lance_core.table.reuse_map import AddressMap

if TYPE_CHECKING:
    from lance_core.cache.byte_cache import ByteCache
    from lance_core.table.index_metadata import IndexMetadata
    from lance_core.table.reuse_history import ReuseHistory
    from lance_core.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True, eq=False)
class FragmentReuse:
    """Where deferred compactions put the rows that index files name.

    ``uuid`` names this very history in cache keys: every change of it gives it a new one.
    """

    uuid: str
    history: ReuseHistory
    addresses: AddressMap

    @property
    def nbytes(self) -> int:
        """Memory of history and map."""
        return self.history.num_bytes + self.addresses.nbytes


def load_frag_reuse(cache: ByteCache, snapshot: Snapshot) -> FragmentReuse | None:
    """Return the Fragment Reuse Index of a version, None if it has none.

    Raises
    ------
    CorruptFileError
        It contradicts the format.
    UnsupportedFeatureError
        It is tagged, or rows have stable ids, which it does not say how to follow: indices must not
        be used, as their rows cannot be found.
    """
    path = snapshot.manifest.path
    entry = find_reuse_entry(snapshot.indices, path)
    if entry is None:
        return None
    if snapshot.has_stable_row_ids:
        raise UnsupportedFeatureError(f"{path}: a fragment reuse index beside stable row ids")
    key = CacheKey("fragment reuse", snapshot.scheduler.store.key, entry.uuid)
    return cache.get_or_load(key, lambda: _load(snapshot, entry, path))


def _load(snapshot: Snapshot, entry: IndexMetadata, path: str) -> FragmentReuse:
    history = read_reuse_history(entry, path, snapshot.index_place)
    return FragmentReuse(entry.uuid, history, AddressMap(history, path))
