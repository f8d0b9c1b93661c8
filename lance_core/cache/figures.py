"""What the cache has done for each dataset, which is named by the store that it lies in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lance_core.cache.keys import CacheKey

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

MAX_STORES = 4096
"""Datasets without an entry whose counters are kept on."""


@dataclass(slots=True)
class StoreFigures:
    """What the cache holds of one dataset, and the counters of the keys asked for.

    Files below a base path count as those of the dataset there. Counters of a dataset of which
    nothing is held may begin anew if there are very many datasets.
    """

    used_bytes: int = 0
    entries: int = 0
    hits: int = 0
    misses: int = 0
    evictions: int = 0


class FiguresByStore:
    """Figures of all datasets; whoever uses it holds the lock of the cache.

    Keys that are no ``CacheKey`` belong to no dataset.
    """

    def __init__(self) -> None:
        self._by_store: dict[str, StoreFigures] = {}

    def of(self, key: Hashable) -> StoreFigures:
        """Return the figures of the dataset of a key, to change them."""
        return self.of_store(key.store) if isinstance(key, CacheKey) else StoreFigures()

    def of_store(self, store: str) -> StoreFigures:
        """Return the figures of a dataset, to change them."""
        found = self._by_store.get(store)
        if found is None:
            if len(self._by_store) >= MAX_STORES:
                self._forget_unused()
            found = self._by_store[store] = StoreFigures()
        return found

    def copy(self) -> Mapping[str, StoreFigures]:
        """Return the figures of this moment, by store."""
        return {store: replace(figures) for store, figures in self._by_store.items()}

    def copy_of(self, store: str) -> StoreFigures:
        """Return the figures of one dataset at this moment."""
        found = self._by_store.get(store)
        return StoreFigures() if found is None else replace(found)

    def _forget_unused(self) -> None:
        self._by_store = {store: f for store, f in self._by_store.items() if f.entries > 0}
