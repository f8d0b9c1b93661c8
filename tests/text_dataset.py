"""A small dataset with texts and vectors: indices, rows that they do not cover, deleted rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from pathlib import Path

NUM_INDEXED, NUM_APPENDED, DIMENSION = 400, 25, 8
WORDS = ["otter", "heron", "lynx", "newt", "wren", "swims", "north", "south", "tonight", "river"]
_RNG = np.random.default_rng(11)
VECTORS = _RNG.standard_normal((NUM_INDEXED + NUM_APPENDED, DIMENSION)).astype(np.float32)


def _texts() -> list[str | None]:
    """Return texts of 1 to 40 words, some of them alike, and some null."""
    weights = 1 / np.arange(1, len(WORDS) + 1)
    chosen = [
        " ".join(_RNG.choice(WORDS, size=_RNG.integers(1, 40), p=weights / weights.sum()))
        for _ in VECTORS
    ]
    return [None if row % 37 == 5 else text for row, text in enumerate(chosen)]


TEXTS, TITLES = _texts(), _texts()


def rows(first: int, last: int) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(first, last), pa.int64()),
            "text": pa.array(TEXTS[first:last], pa.string()),
            "title": pa.array(TITLES[first:last], pa.string()),
            "plain": pa.array(TITLES[first:last], pa.string()),
            "price": pa.array([row * 0.25 for row in range(first, last)], pa.float64()),
            "vec": pa.FixedSizeListArray.from_arrays(
                pa.array(VECTORS[first:last].ravel()), DIMENSION
            ),
        }
    )


def write_text_dataset(path: Path) -> Any:
    """Write rows with indices on ``text`` (with positions), ``title`` and ``vec``, and more rows.

    ``plain`` holds the titles again, without an index. Every 50th indexed row is deleted.
    """
    dataset = lance.write_dataset(rows(0, NUM_INDEXED), str(path), max_rows_per_file=150)
    dataset.create_scalar_index("text", "INVERTED", with_position=True)
    dataset.create_scalar_index("title", "INVERTED")
    dataset.create_index("vec", "IVF_FLAT", metric="l2", num_partitions=4)
    lance.write_dataset(rows(NUM_INDEXED, len(VECTORS)), str(path), mode="append")
    dataset = lance.dataset(str(path))
    dataset.delete(f"id < {NUM_INDEXED} AND id % 50 = 49")
    return dataset
