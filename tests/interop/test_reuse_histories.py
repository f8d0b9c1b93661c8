"""Random histories of pylance with deferred compactions: after each step the rows are right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

DIMENSION = 4
VECTORS = np.random.default_rng(3).standard_normal((5000, DIMENSION)).astype(np.float32)
KINDS: dict[str, dict[str, Any]] = {"IVF_FLAT": {}, "IVF_PQ": {"num_sub_vectors": 2}}


class History:
    """A dataset of pylance, and the ids of the rows that it should have."""

    def __init__(self, root: Path, kind: str, seed: int) -> None:
        self.root, self.kind = str(root), kind
        self.rng = np.random.default_rng(seed)
        self.ids: set[int] = set()
        self.next_id = 0
        self.session = lance_core.Session()  # shared, so that versions meet in one cache
        self.append(600)
        self.build()

    @property
    def dataset(self) -> lance.LanceDataset:
        return lance.dataset(self.root)

    def append(self, count: int = 60) -> None:
        ids = np.arange(self.next_id, self.next_id + count)
        values = pa.array(VECTORS[ids].ravel())
        vectors = pa.FixedSizeListArray.from_arrays(values, DIMENSION)
        table = pa.table({"id": ids, "vec": vectors})
        mode = "create" if self.next_id == 0 else "append"
        lance.write_dataset(table, self.root, mode=mode, max_rows_per_file=int(count / 3) + 1)
        self.next_id += count
        self.ids |= set(ids.tolist())

    def build(self) -> None:
        options = {"num_partitions": 2, "metric": "l2", **KINDS[self.kind]}
        self.dataset.create_index("vec", self.kind, replace=True, **options)

    def delete(self) -> None:
        modulus = int(self.rng.integers(2, 30))
        rest = int(self.rng.integers(modulus))
        if len(self.ids) > 100:
            self.dataset.delete(f"id % {modulus} = {rest}")
            self.ids -= {each for each in self.ids if each % modulus == rest}

    def compact(self) -> None:
        self.dataset.optimize.compact_files(
            target_rows_per_fragment=int(self.rng.integers(50, 900)),
            materialize_deletions_threshold=float(self.rng.choice([0.0, 0.2])),
            defer_index_remap=True,
        )

    def optimize(self) -> None:
        merged = int(self.rng.integers(0, 3))
        self.dataset.optimize.optimize_indices(num_indices_to_merge=merged)

    def touch(self) -> None:
        self.dataset.update_config({"a": "b"})

    def check(self) -> None:
        found = lance_core.open_dataset(self.root, session=self.session)
        query = self.rng.standard_normal(DIMENSION).astype(np.float32)
        answer = found.search(query, 10_000, columns=["id", "vec"], nprobes=2, refine_factor=10)
        assert sorted(answer["id"].to_pylist()) == sorted(self.ids)
        stored = np.array(answer["vec"].to_pylist(), np.float32)
        np.testing.assert_array_equal(stored, VECTORS[answer["id"].to_numpy()])
        expected = ((stored.astype(np.float64) - query) ** 2).sum(axis=1)
        np.testing.assert_allclose(answer["_distance"].to_numpy(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_every_live_row_is_found_once_after_every_step(
    kind: str, seed: int, tmp_path: Path
) -> None:
    history = History(tmp_path / "t", kind, seed)
    steps = [history.append, history.delete, history.compact, history.optimize, history.touch]
    for _ in range(25):
        history.rng.choice(np.array([*steps, history.delete, history.compact, history.compact]))()
        history.check()
