"""Index segments that pylance built, opened by us and searched by both."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import lance
import numpy as np
import pyarrow as pa

from lance_core.cache.byte_cache import ByteCache
from lance_core.index.ordinals import OrdinalSpace, live_words
from lance_core.index.vector.bound import BoundSegment
from lance_core.index.vector.quantizer import SearchOptions
from lance_core.index.vector.segment import VectorSegment
from lance_core.io.open import open_store
from lance_core.io.scheduler import RangeScheduler
from lance_core.table.files import TableFiles
from lance_core.table.snapshot import open_snapshot

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from lance_core.index.candidates import Candidates
    from lance_core.io.store import ObjectStore

CACHE_BYTES = 64 << 20


@dataclass(frozen=True, eq=False)
class BuiltIndex:
    """A dataset with one index segment over all its fragments, and the vectors in it."""

    path: Path
    vectors: NDArray[np.floating]

    def store(self) -> ObjectStore:
        return open_store(str(self.path))

    def queries(self, count: int) -> NDArray[np.float32]:
        """Draw queries near stored vectors, exact in the column's own type."""
        generator = np.random.default_rng(99)
        chosen = self.vectors[generator.integers(len(self.vectors), size=count)]
        noise = generator.standard_normal(chosen.shape) * 0.3
        return (chosen + noise).astype(self.vectors.dtype).astype(np.float32)

    def search_by_pylance(self, query: NDArray[np.float32], k: int, nprobes: int) -> pa.Table:
        return lance.dataset(self.path).to_table(
            nearest={
                "column": "v",
                "q": query.astype(self.vectors.dtype),
                "k": k,
                "nprobes": nprobes,
            },
            columns=["_distance"],
            with_row_id=True,
        )


def build_index(
    path: Path,
    index_type: str,
    metric: str,
    *,
    num_rows: int = 2_000,
    dimension: int = 16,
    dtype: type[np.floating] = np.float32,
    version: Literal["2.0", "2.1", "2.2"] = "2.1",
    options: Mapping[str, Any] = MappingProxyType({}),
) -> BuiltIndex:
    """Write clustered vectors in two fragments and index them."""
    generator = np.random.default_rng(7)
    centres = 3 * generator.standard_normal((20, dimension))
    vectors = centres[generator.integers(20, size=num_rows)]
    vectors = (vectors + generator.standard_normal(vectors.shape)).astype(dtype)
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), dimension)
    dataset = lance.write_dataset(
        pa.table({"id": np.arange(num_rows), "v": column}),
        path,
        max_rows_per_file=num_rows // 2,
        data_storage_version=version,
    )
    dataset.create_index("v", index_type, metric=metric, num_partitions=6, **options)
    return BuiltIndex(path, vectors)


@dataclass(frozen=True, eq=False)
class OpenedSegment:
    """The only segment of a dataset, bound to all its fragments."""

    segment: VectorSegment
    bound: BoundSegment
    live: NDArray[np.uint64]

    def search(self, query: NDArray[np.float32], k: int, nprobes: int) -> Candidates:
        if self.segment.metric == "cosine":
            query = query / np.linalg.norm(query)
        order, _ = self.segment.rank(query)
        held = self.bound.acquire(order[:nprobes])
        return self.bound.search(held, query, self.live, SearchOptions(k))


def open_segment(store: ObjectStore, cache_bytes: int = CACHE_BYTES) -> OpenedSegment:
    """Open the latest version's only segment."""
    scheduler = RangeScheduler(store)
    snapshot = open_snapshot(scheduler)
    (index,) = snapshot.indices
    segment = VectorSegment.open(snapshot.index_place(index), index.uuid, index.files)
    fragments = snapshot.fragments
    space = OrdinalSpace([f.id for f in fragments], [f.physical_rows for f in fragments])
    cache = ByteCache(cache_bytes)
    files = TableFiles(cache)
    deleted = {int(f.id): files.deleted(snapshot, f) for f in fragments}
    bound = BoundSegment(segment, scheduler, cache, space, snapshot.incarnation)
    return OpenedSegment(segment, bound, live_words(space, deleted))
