"""Tables with a vector index and columns to filter by, in the states that tables come into."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa

from tests.neighbour_checks import exact_distances

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

DIMENSION, NUM_ROWS, NUM_APPENDED, NUM_PARTITIONS = 16, 4_000, 200, 80
FILTERS = {  # by the part of the rows that pass, in per mille
    1: "share < 1",
    10: "share < 10",
    100: "share < 100",
    500: "share < 500 OR share IS NULL AND id < 0",
    990: "NOT (share >= 990)",
}
STATES = ("fresh", "deleted", "appended", "two segments", "stable ids", "deferred", "compacted ids")


def draw(seed: int, count: int) -> NDArray[np.float32]:
    """Draw vectors around some centres."""
    generator = np.random.default_rng(seed)
    centres = np.random.default_rng(5).standard_normal((40, DIMENSION)) * 2
    chosen = centres[generator.integers(0, 40, count)]
    return (chosen + 0.7 * generator.standard_normal((count, DIMENSION))).astype(np.float32)


def rows(first: int, last: int) -> pa.Table:
    """Return rows whose ``share`` is uniform in ``[0, 1000)`` and null now and then."""
    generator = np.random.default_rng(first)
    share = generator.integers(0, 1000, last - first)
    is_null = generator.random(last - first) < 0.02
    vectors = draw(first + 1, last - first)
    return pa.table(
        {
            "id": np.arange(first, last),
            "share": pa.array(share, pa.int32(), mask=is_null),
            "vec": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIMENSION),
        }
    )


def write_table(folder: Path, state: str, kind: str, metric: str) -> lance.LanceDataset:
    """Write a table, index it, and bring it into a state."""
    stable = state in {"stable ids", "compacted ids"}
    dataset = lance.write_dataset(
        rows(0, NUM_ROWS), str(folder), max_rows_per_file=1_500, enable_stable_row_ids=stable
    )
    sizes: dict[str, Any] = {"sample_rate": 16}  # so that there are enough rows per partition
    if kind.endswith("PQ"):
        # Rows of one code tie, and which of them is refined is anybody's choice: so many codes.
        sizes["num_sub_vectors"] = 8
    dataset.create_index("vec", kind, metric=metric, num_partitions=NUM_PARTITIONS, **sizes)
    if state in {"appended", "two segments", "compacted ids"}:
        dataset.insert(rows(NUM_ROWS, NUM_ROWS + NUM_APPENDED))
    if state == "two segments":
        dataset.optimize.optimize_indices(num_indices_to_merge=0)
    if state != "fresh":
        dataset.delete("id % 7 = 3")
    if stable:
        dataset.update({"share": "5"}, where="id % 50 = 1")
    if state in {"deferred", "compacted ids"}:
        dataset.optimize.compact_files(
            target_rows_per_fragment=10_000, defer_index_remap=state == "deferred"
        )
    return lance.dataset(str(folder))


@dataclass(frozen=True)
class LiveRows:
    """All live rows with their vectors, to answer queries by brute force."""

    table: pa.Table
    vectors: NDArray[np.float32]

    @classmethod
    def of(cls, dataset: lance.LanceDataset) -> LiveRows:
        table = dataset.to_table(with_row_id=True)
        vectors = table["vec"].combine_chunks().flatten().to_numpy().reshape(-1, DIMENSION)
        return cls(table.drop_columns(["vec"]), vectors)

    def below(self, bound: int) -> NDArray[np.bool_]:
        """Say of each row whether it passes the filter of ``FILTERS`` with this bound."""
        shares = self.table["share"].to_pylist()
        return np.array([share is not None and share < bound for share in shares])

    def nearest(
        self, query: NDArray[np.float32], metric: str, k: int, passes: NDArray[np.bool_]
    ) -> pa.Table:
        """Return ids and distances of the nearest rows that pass."""
        distances = exact_distances(self.vectors, query, metric).astype(np.float32)
        places = np.flatnonzero(passes & ~np.isnan(distances))
        order = places[np.argsort(distances[places], kind="stable")][:k]
        return pa.table({"id": self.table["id"].to_numpy()[order], "_distance": distances[order]})
