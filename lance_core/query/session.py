"""What datasets share: the byte cache and the limit of requests under way."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from os import fspath
from typing import TYPE_CHECKING

from lance_core.cache.byte_cache import ByteCache
from lance_core.io.disk_tier import DiskTier
from lance_core.io.scheduler import RangeScheduler
from lance_core.query.planner import DEFAULT_FEW_ROWS
from lance_core.table.dataset_stores import KEPT_OBJECTS, open_dataset_store
from lance_core.table.files import TableFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from os import PathLike

    from lance_core.cache.byte_cache import CacheStats
    from lance_core.io.disk_tier import DiskTierStats
    from lance_core.io.observing import ReadObserver
    from lance_core.io.store import ObjectStore
    from lance_core.table.base_paths import OpenBase

DEFAULT_CACHE_BYTES = 2 << 30
DEFAULT_CONCURRENCY = 16
DEFAULT_DISK_CACHE_BYTES = 16 << 30


class Session:
    """A cache with a byte budget that any number of datasets use together.

    Parameters
    ----------
    cache_bytes
        Bytes of decoded metadata, index partitions and vectors kept in memory.
    max_concurrency
        Requests to object stores under way at one time; local files need none.
    few_rows
        A filter that leaves no more rows than these has them scored exactly, one by one, instead of
        searching indices; as many rows that an index leaves out are scored so.
    disk_cache
        Folder of a local disk where bytes of remote datasets are kept for this and other processes;
        None = nowhere.
    disk_cache_bytes
        Bytes kept there.
    observer
        Told of reads of stores; None = nobody is.
    """

    def __init__(
        self,
        cache_bytes: int = DEFAULT_CACHE_BYTES,
        max_concurrency: int = DEFAULT_CONCURRENCY,
        few_rows: int = DEFAULT_FEW_ROWS,
        *,
        disk_cache: str | PathLike[str] | None = None,
        disk_cache_bytes: int = DEFAULT_DISK_CACHE_BYTES,
        observer: ReadObserver | None = None,
    ) -> None:
        self.cache = ByteCache(cache_bytes)
        self.files = TableFiles(self.cache)
        self.few_rows = few_rows
        self._disk_tier = (
            None
            if disk_cache is None
            else DiskTier(fspath(disk_cache), disk_cache_bytes, KEPT_OBJECTS)
        )
        self._observer = observer
        # Its threads start when a remote store is first read.
        self._pool = ThreadPoolExecutor(max_concurrency, "lance-serve-read")

    @property
    def cache_stats(self) -> CacheStats:
        """Sizes and counters of the cache."""
        return self.cache.stats

    @property
    def disk_cache_stats(self) -> DiskTierStats | None:
        """Sizes and counters of the local disk cache, None where there is none."""
        return None if self._disk_tier is None else self._disk_tier.stats

    def scheduler(
        self, uri: str, storage_options: Mapping[str, str] | None = None
    ) -> RangeScheduler:
        """Return the means to read below ``uri``."""
        return self.scheduler_for(open_dataset_store(uri, storage_options, self._disk_tier))

    def base_opener(
        self,
        storage_options: Mapping[str, str] | None = None,
        check_base: Callable[[str], None] | None = None,
    ) -> OpenBase:
        """Return what opens the base paths of a dataset, each once.

        Parameters
        ----------
        storage_options
            Configuration of remote stores, as for the dataset itself.
        check_base
            Called with a base path before it is opened; raises if it must not be read. None = all
            may be.
        """
        opened: dict[str, RangeScheduler] = {}

        def open_base(path: str) -> RangeScheduler:
            found = opened.get(path)
            if found is None:
                if check_base is not None:
                    check_base(path)
                found = opened.setdefault(path, self.scheduler(path, storage_options))
            return found

        return open_base

    def scheduler_for(self, store: ObjectStore) -> RangeScheduler:
        """Return the means to read from a store that the caller made."""
        return RangeScheduler(store, pool=self._pool, observer=self._observer)
