"""Threads that meet cold data together get the answers that one thread gets alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TYPE_CHECKING

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.index.vector.metric import Metric
from lance_core.kernels.exact import score_rows

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

DIMENSION = 64
NUM_ROWS = 30_000
NUM_THREADS = 8
ROUNDS = 12


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("concurrent") / "t.lance"
    generator = np.random.default_rng(6)
    vectors = generator.standard_normal((NUM_ROWS, DIMENSION)).astype(np.float32)
    table = pa.table(
        {
            "id": generator.permutation(NUM_ROWS),
            "text": [f"row {i * 7919 % 1000}" for i in range(NUM_ROWS)],
            "vec": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIMENSION),
        }
    )
    dataset = lance.write_dataset(
        table.slice(0, 28_000), str(folder), max_rows_per_file=7_000, max_rows_per_group=500
    )
    dataset.create_index("vec", "IVF_PQ", num_partitions=60, num_sub_vectors=16)
    dataset.insert(table.slice(28_000))
    dataset.delete("id % 11 = 4")
    return folder


def search(dataset: lance_core.Dataset, seed: int) -> pa.Table:
    query = np.random.default_rng(seed).standard_normal(DIMENSION).astype(np.float32)
    return dataset.search(query, 20, nprobes=20, refine_factor=3, columns=["id", "text"])


def test_threads_that_open_and_search_together_agree_with_one_thread(root: Path):
    alone = lance_core.open_dataset(str(root))
    expected = [search(alone, seed) for seed in range(NUM_THREADS)]
    with ThreadPoolExecutor(NUM_THREADS) as pool:
        for _ in range(ROUNDS):
            dataset = lance_core.open_dataset(str(root))
            start = Barrier(NUM_THREADS)

            def work(
                seed: int, dataset: lance_core.Dataset = dataset, start: Barrier = start
            ) -> pa.Table:
                start.wait()
                return search(dataset, seed)

            assert list(pool.map(work, range(NUM_THREADS))) == expected


def test_threads_under_a_small_budget_agree_with_one_thread(root: Path):
    alone = lance_core.open_dataset(str(root))
    expected = [search(alone, seed) for seed in range(40)]
    session = lance_core.Session(cache_bytes=400_000)
    cramped = lance_core.open_dataset(str(root), session=session)
    with ThreadPoolExecutor(NUM_THREADS) as pool:
        found = list(pool.map(lambda seed: search(cramped, seed), range(40)))
    assert found == expected
    assert session.cache_stats.evictions > 0
    assert session.cache_stats.used_bytes <= 400_000


def test_vectors_stay_mapped_while_their_addresses_are_in_use(root: Path):
    """Another thread may map a file anew between finding addresses and reading there."""
    dataset = lance_core.open_dataset(str(root))
    search(dataset, 0)
    (column,) = dataset._engine._preparer._columns.values()
    addresses = np.array([0, 5], np.uint64)
    located = column.vectors.pointers(addresses)
    assert located is not None
    pointers, owner = located
    del located
    query = np.ones(DIMENSION, np.float32)
    before = score_rows(pointers, query, Metric.L2.code)
    for path in (root / "data").iterdir():  # the same bytes under the same name: a new mapping
        copied = path.with_suffix(".copied")
        copied.write_bytes(path.read_bytes())
        copied.replace(path)
    again = column.vectors.pointers(addresses)
    assert again is not None
    assert (again[0] != pointers).all()
    np.testing.assert_array_equal(score_rows(pointers, query, Metric.L2.code), before)
    del owner  # kept the old mapping until here
