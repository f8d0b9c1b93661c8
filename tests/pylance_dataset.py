"""A small dataset written by pylance: an index, rows that it does not cover, deleted rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from pathlib import Path

NUM_INDEXED, NUM_APPENDED, DIMENSION = 600, 20, 16
VECTORS = (
    np.random.default_rng(7)
    .standard_normal((NUM_INDEXED + NUM_APPENDED, DIMENSION))
    .astype(np.float32)
)
LIVE = np.array([i for i in range(len(VECTORS)) if i >= NUM_INDEXED or i % 50 != 49])


def rows(first: Any, last: Any) -> Any:
    ids = range(first, last)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "kind": [f"kind {i % 5}" for i in ids],
            "price": pa.array([i * 0.25 for i in ids], pa.float64()),
            "vec": pa.FixedSizeListArray.from_arrays(
                pa.array(VECTORS[first:last].ravel()), DIMENSION
            ),
        }
    )


def write_dataset(path: Path) -> None:
    """Write versions 1 (rows), 2 (index), 3 (appended) and 4 (deleted)."""
    dataset = lance.write_dataset(rows(0, NUM_INDEXED), str(path), max_rows_per_file=300)
    dataset.create_index("vec", "IVF_PQ", metric="l2", num_partitions=4, num_sub_vectors=8)
    lance.write_dataset(rows(NUM_INDEXED, len(VECTORS)), str(path), mode="append")
    lance.dataset(str(path)).delete(f"id < {NUM_INDEXED} AND id % 50 = 49")


def nearest(query: Any, k: int | None, ids: Any = LIVE) -> Any:
    """Return ids and squared distances of the nearest live rows, by brute force."""
    distances = ((VECTORS[ids] - np.asarray(query, np.float32)) ** 2).sum(axis=1)
    order = np.argsort(distances, kind="stable")[:k]
    return ids[order].tolist(), distances[order]
