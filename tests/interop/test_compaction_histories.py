"""Random histories with compactions of ours and of pylance: a dict says what every answer must be.

Both libraries index, delete, update, append, compact with every treatment, remap, trim and clean
up, in any order; after each step both find every row, by scan, by key, by number and by vector.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import UnsupportedFeatureError
from lance_core.table.index_metadata import REUSE_INDEX_NAME
from tests.verified import verified

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

pytestmark = pytest.mark.interop

DIMENSION = 4
NUM_STEPS = 14
FIRST_ROWS = 60
NOW = timedelta(0)


class History:
    """A dataset and what it must hold: a vector and a number by key."""

    def __init__(self, root: Path, seed: int, *, stable_row_ids: bool) -> None:
        self.root = root
        self.rng = np.random.default_rng(seed)
        self.stable_row_ids = stable_row_ids
        self.rows: dict[int, tuple[NDArray[np.float32], int]] = {}
        self.next_key = 0
        lance.write_dataset(
            self.new_rows(FIRST_ROWS),
            str(root),
            max_rows_per_file=15,
            enable_stable_row_ids=stable_row_ids,
        )
        self.build_vectors()
        self.build_keys()
        self.build_numbers()

    @property
    def theirs(self) -> lance.LanceDataset:
        return lance.dataset(str(self.root))

    @property
    def ours(self) -> lance_core.Dataset:
        return lance_core.open_dataset(self.root)

    def new_rows(self, num_rows: int) -> pa.Table:
        keys = range(self.next_key, self.next_key + num_rows)
        self.next_key += num_rows
        for key in keys:
            vector = self.rng.standard_normal(DIMENSION).astype(np.float32)
            self.rows[key] = (vector, int(self.rng.integers(5)))
        return self.table(keys)

    def table(self, keys: range) -> pa.Table:
        vectors = np.concatenate([self.rows[key][0] for key in keys])
        return pa.table(
            {
                "key": pa.array(keys, pa.int64()),
                "n": pa.array([self.rows[key][1] for key in keys], pa.int64()),
                "vec": pa.FixedSizeListArray.from_arrays(pa.array(vectors), DIMENSION),
            }
        )

    # steps

    def append(self) -> None:
        table = self.new_rows(int(self.rng.integers(1, 25)))
        lance.write_dataset(table, str(self.root), mode="append")

    def some_keys(self) -> list[int]:
        share = float(self.rng.choice([0.05, 0.3]))
        return [key for key in self.rows if self.rng.random() < share]

    def delete(self) -> None:
        if keys := self.some_keys():
            self.theirs.delete(f"key IN ({', '.join(map(str, keys))})")
            for key in keys:
                del self.rows[key]

    def update(self) -> None:
        if keys := self.some_keys():
            self.theirs.update({"n": "n + 10"}, where=f"key IN ({', '.join(map(str, keys))})")
            for key in keys:
                vector, number = self.rows[key]
                self.rows[key] = (vector, number + 10)

    def build_vectors(self) -> None:
        if self.rows:
            self.theirs.create_index("vec", "IVF_FLAT", num_partitions=1, replace=True)

    def build_keys(self) -> None:
        self.theirs.create_scalar_index("key", "BTREE", replace=True)

    def build_numbers(self) -> None:
        self.ours.create_index("n", "BITMAP")

    def index_new_rows(self) -> None:
        num_merged = int(self.rng.integers(2))
        if self.rng.random() < 0.5:
            self.ours.optimize_indices(num_segments_to_merge=num_merged)
        else:
            self.theirs.optimize.optimize_indices(num_indices_to_merge=num_merged)

    def compact(self) -> None:
        treatment: Any = str(self.rng.choice(["defer", "drop_coverage", "remap"]))
        try:
            self.ours.compact(
                indices=treatment,
                target_rows_per_fragment=int(self.rng.choice([20, 40, 1000])),
                deletions_threshold=float(self.rng.choice([0.0, 0.2])),
            )
        except UnsupportedFeatureError:
            assert treatment == "defer"
            assert self.stable_row_ids

    def pylance_compacts(self) -> None:
        # eagerly over a pending reuse index, pylance leaves old addresses in B-trees
        is_pending = any(each.name == REUSE_INDEX_NAME for each in self.ours.snapshot.indices)
        defers = not self.stable_row_ids and (is_pending or bool(self.rng.integers(2)))
        self.theirs.optimize.compact_files(
            target_rows_per_fragment=int(self.rng.choice([20, 40, 1000])),
            materialize_deletions_threshold=0.0,
            defer_index_remap=defers,
        )

    def remap(self) -> None:
        self.ours.remap_indices()

    def trim(self) -> None:
        self.ours.trim_reuse_index()

    def clean_up(self) -> None:
        if self.rng.random() < 0.5:
            self.ours.cleanup(older_than=NOW)
        else:
            self.theirs.cleanup_old_versions(NOW)

    def step(self) -> str:
        steps: list[tuple[Callable[[], None], int]] = [
            (self.append, 3),
            (self.delete, 3),
            (self.update, 1),
            (self.build_vectors, 1),
            (self.build_keys, 1),
            (self.build_numbers, 1),
            (self.index_new_rows, 2),
            (self.compact, 5),
            (self.pylance_compacts, 2),
            (self.remap, 1),
            (self.trim, 2),
            (self.clean_up, 1),
        ]
        weights = np.array([weight for _, weight in steps])
        chosen = steps[int(self.rng.choice(len(steps), p=weights / weights.sum()))][0]
        chosen()
        return chosen.__name__

    # checks

    def check(self) -> None:
        expected = {key: number for key, (_, number) in self.rows.items()}
        for table in (self.theirs.to_table(), self.ours.scan().read_all()):
            keys, numbers = table["key"].to_pylist(), table["n"].to_pylist()
            assert dict(zip(keys, numbers, strict=True)) == expected
            assert len(keys) == len(expected)
        for key in self.rng.integers(0, self.next_key, 6).tolist():
            found = self.theirs.to_table(columns=["key"], filter=f"key = {key}")["key"].to_pylist()
            assert found == ([key] if key in self.rows else []), key
        self.check_numbers()
        for key in [key for key in self.rows if self.rng.random() < 0.05][:3]:
            vector = self.rows[key][0]
            nearest = {"column": "vec", "q": vector, "k": 1}
            assert self.theirs.to_table(nearest=nearest)["key"].to_pylist() == [key]
            assert self.ours.search(vector, 1)["key"].to_pylist() == [key]
        found = self.ours.search(np.zeros(DIMENSION), 10_000, columns=["key"])["key"].to_pylist()
        assert sorted(found) == sorted(self.rows)

    def check_numbers(self) -> None:
        number = int(self.rng.integers(5))
        expected = sorted(key for key, (_, n) in self.rows.items() if n == number)
        test = f"n = {number}"
        found = [self.ours.scan(["key"], filter=test).read_all()]
        if not self.stable_row_ids:  # there pylance finds values of before an update in bitmaps
            found.append(self.theirs.to_table(columns=["key"], filter=test))
        for table in found:
            assert sorted(table["key"].to_pylist()) == expected


@pytest.mark.parametrize("stable_row_ids", [False, True], ids=["addresses", "stable row ids"])
@pytest.mark.parametrize("seed", range(4))
def test_every_row_is_found_after_every_step(
    tmp_path: Path, seed: int, stable_row_ids: bool
) -> None:
    history = History(tmp_path, seed, stable_row_ids=stable_row_ids)
    steps = []
    for _ in range(NUM_STEPS):
        steps.append(history.step())
        history.check()
    assert verified(tmp_path) == [], steps
