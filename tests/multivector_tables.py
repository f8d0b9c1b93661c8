"""Tables whose rows hold lists of vectors, written by pylance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import lance
import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

DIMENSION = 16
NUM_CENTRES = 40


def list_array(
    vectors: NDArray[Any], lengths: NDArray[Any], is_null: NDArray[np.bool_]
) -> pa.Array:
    """Return lists of these lengths; the vectors of a null list stay in the array."""
    items = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), items, mask=pa.array(is_null))


def write_lists(
    path: Path,
    num_rows: int,
    *,
    seed: int,
    first: int = 0,
    dtype: type[np.generic] = np.float32,
    version: Literal["2.0", "2.1", "2.2"] = "2.1",
    has_stable_ids: bool = False,
) -> NDArray[Any]:
    """Append rows of 0 to 8 vectors around common centres, some of them null; returns vectors."""
    generator = np.random.default_rng(seed)
    centres = 2 * np.random.default_rng(1).standard_normal((NUM_CENTRES, DIMENSION))
    lengths = generator.integers(0, 9, num_rows)
    vectors = centres[generator.integers(NUM_CENTRES, size=lengths.sum())]
    vectors = vectors + generator.standard_normal(vectors.shape)
    if dtype == np.uint8:
        vectors = np.clip(vectors * 20 + 128, 0, 255)
    stored: NDArray[Any] = vectors.astype(dtype)
    column = list_array(stored, lengths, generator.random(num_rows) < 0.05)
    lance.write_dataset(
        pa.table({"id": np.arange(first, first + num_rows), "v": column}),
        path,
        mode="append" if path.exists() else "create",
        max_rows_per_file=num_rows // 2 + 1,
        data_storage_version=version,
        enable_stable_row_ids=has_stable_ids,
    )
    return stored


def draw_queries(vectors: NDArray[Any], seed: int) -> list[NDArray[Any]]:
    """Draw queries of 1 to 5 vectors near stored ones, exact in the type of these."""
    generator = np.random.default_rng(seed)
    queries = []
    for num_vectors in range(1, 6):
        chosen = vectors[generator.integers(len(vectors), size=num_vectors)]
        noise = generator.standard_normal(chosen.shape) * (3 if vectors.dtype == np.uint8 else 0.3)
        near = chosen + noise
        if vectors.dtype == np.uint8:
            near = np.clip(near, 0, 255)
        queries.append(near.astype(vectors.dtype))
    return queries
