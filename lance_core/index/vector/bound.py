"""A segment bound to an ordinal space: partitions on demand, searched by one kernel call."""

from __future__ import annotations

import threading
from operator import call
from typing import TYPE_CHECKING
from weakref import ref

import numpy as np

from lance_core.cache.keys import CacheKey
from lance_core.errors import InvalidRequestError
from lance_core.index.candidates import Candidates
from lance_core.index.vector.blocks import PartitionBlock, load_blocks
from lance_core.index.vector.coded_flat import coded_flat
from lance_core.index.vector.held_partitions import HeldPartitions
from lance_core.io.metering import current_meter
from lance_core.kernels.gather import pick_rows
from lance_core.kernels.topk import TopRows
from lance_core.row_set import num_words

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from numpy.typing import NDArray

    from lance_core.cache.byte_cache import ByteCache
    from lance_core.index.ordinals import RowSpace
    from lance_core.index.vector.quantizer import Searcher, SearchOptions
    from lance_core.index.vector.segment import VectorSegment
    from lance_core.io.scheduler import RangeScheduler
    from lance_core.table.frag_reuse import FragmentReuse


_REFERENCE_BYTES = 128
"""About what a weak reference to a block takes."""


def _absent() -> None:
    """Stand in for the reference to a block that is not loaded."""


class BoundSegment:
    """A segment whose partitions are loaded as ordinals of one space.

    Keeps a table of the blocks in memory, without owning them: the cache does, under its budget,
    and so do searches that hold them. So there is nothing to undo when the cache drops a block.

    Parameters
    ----------
    segment
        The opened segment.
    scheduler
        Reads from the root of the dataset.
    cache
        Keeps loaded partitions.
    space
        Numbers the rows that may be found; rows outside it never are.
    store_key
        Names the store of the segment in the cache.
    reuse
        Deferred compactions that the row addresses of the files are led through when a partition is
        loaded; None where the version has none.
    """

    def __init__(
        self,
        segment: VectorSegment,
        scheduler: RangeScheduler,
        cache: ByteCache,
        space: RowSpace,
        store_key: str,
        reuse: FragmentReuse | None = None,
    ) -> None:
        self.segment = segment
        self.space = space
        self._store = scheduler.store
        self._cache = cache
        self._reuse = reuse
        reuse_key = None if reuse is None else reuse.uuid
        self._store_key = store_key
        self._name = (segment.uuid, space.key, reuse_key)
        self._mapped = segment.mapped_payload(scheduler.store)
        self._searcher: Searcher = coded_flat(segment, cache, store_key) or segment.searcher
        self._lock = threading.Lock()
        # An array, since many of them are picked at once: one after another takes twice as long.
        self._blocks: NDArray[np.object_] = np.full(segment.num_partitions, _absent, np.object_)
        self._row_width = segment.num_arrays + 2  # beside the arrays: ordinals, number of rows
        self._rows = np.zeros((segment.num_partitions, self._row_width), np.int64)

    @property
    def nbytes(self) -> int:
        """Memory of the table of blocks, without blocks."""
        return int(self._rows.nbytes) + _REFERENCE_BYTES * len(self._blocks)

    def resident(self, partitions: NDArray[np.int64]) -> HeldPartitions | None:
        """Hold partitions if all of them are in memory, else return None; never reads.

        Parameters
        ----------
        partitions
            Shape ``(n,)``, each once, below the number of partitions.

        Raises
        ------
        CorruptFileError
            A mapped file has shrunk since it was mapped.
        """
        if self._mapped is not None:
            self._store.map(self.segment.storage.reader.path)
        rows = np.empty((len(partitions), self._row_width), np.int64)
        with self._lock:
            blocks = list(map(call, self._blocks[partitions]))
            pick_rows(self._rows, partitions, rows)
        if None in blocks:
            return None
        current_meter().cache_hits += len(blocks)
        self._cache.add_hits(self._store_key, len(blocks))
        if self._cache.is_half_full:
            # Recency only matters, and is only worth its time, when something will have to leave.
            self._cache.touch(map(self._key, partitions.tolist()))
        return HeldPartitions(partitions, rows, blocks)

    def acquire(self, partitions: NDArray[np.int64]) -> HeldPartitions:
        """Hold partitions, reading in one batch those that are not in memory.

        Parameters
        ----------
        partitions
            Shape ``(n,)``, each once, below the number of partitions.

        Raises
        ------
        CorruptFileError
            A partition contradicts the format.
        UnsupportedFeatureError
            A column has an encoding that is not supported.
        """
        held = self.resident(partitions)
        return self._load(partitions) if held is None else held

    def search(
        self,
        held: HeldPartitions,
        query: NDArray[np.float32],
        words: NDArray[np.uint64],
        options: SearchOptions,
    ) -> Candidates:
        """Return the nearest rows of the held partitions.

        Parameters
        ----------
        held
            What to search.
        query
            Shape ``(d,)``; divided by its norm for cosine.
        words
            Dense bitset over the space's ordinals and its size: the rows that may be found.
        options
            How many rows, inside which bounds, how finely; memory is bounded by the rows held.

        Returns
        -------
        Candidates
            By distance, then row id. For quantised vectors estimates of the metric (cosine: of
            twice ``1 - cos``), else exact. Rows without a distance (NaN) are never found.
        """
        top = TopRows(options.k, held.num_rows, options.lower, options.upper)
        self.search_into(held, query, words, top, options)
        return self.candidates(top)

    def search_into(
        self,
        held: HeldPartitions,
        query: NDArray[np.float32],
        words: NDArray[np.uint64],
        top: TopRows,
        options: SearchOptions,
    ) -> None:
        """Offer the rows of the held partitions to ``top``; otherwise like `search`."""
        segment = self.segment
        if len(query) != segment.dimension:
            raise InvalidRequestError(
                f"the query has {len(query)} dimensions, the index {segment.dimension}"
            )
        if len(words) < num_words(self.space.size + 1):
            raise InvalidRequestError(
                f"a mask of {len(words)} words is too short for {self.space.size} rows"
            )
        self._searcher.search(held, np.array(query, np.float32), words, top, options)

    def candidates(self, top: TopRows) -> Candidates:
        """Return what ``top`` has kept of this segment's rows, by distance, then row id."""
        distances, ordinals = top.nearest()
        return Candidates(distances, self.space.to_row_ids(ordinals))

    def _load(self, partitions: NDArray[np.int64]) -> HeldPartitions:
        by_key: dict[Hashable, int] = {self._key(p): p for p in partitions.tolist()}
        blocks = self._cache.get_or_load_many(
            list(by_key), lambda missing: self._read([by_key[key] for key in missing])
        )
        rows = np.array([block.row for block in blocks], np.int64).reshape(-1, self._row_width)
        with self._lock:
            self._rows[partitions] = rows
            for p, block in zip(by_key.values(), blocks, strict=True):
                self._blocks[p] = ref(block)
        return HeldPartitions(partitions, rows, blocks)

    def _key(self, partition: int) -> CacheKey:
        return CacheKey("partition", self._store_key, (self._name, partition))

    def _read(self, partitions: Sequence[int]) -> list[PartitionBlock]:
        return load_blocks(self.segment, self.space, partitions, self._mapped, self._reuse)
