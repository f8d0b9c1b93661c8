"""After any history of a table, searching all partitions finds exactly the nearest live rows."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

import lance_core
from tests.neighbour_checks import assert_same_neighbours, exact_distances, scale_of

pytestmark = pytest.mark.interop

DIMENSION = 8
METRICS = st.sampled_from(["l2", "cosine", "dot"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 80)),
        st.tuples(st.just("append with nulls"), st.integers(1, 40)),
        st.tuples(st.just("delete"), st.integers(2, 9)),
        st.tuples(st.just("index"), st.integers(1, 6)),
        st.tuples(st.just("extend index"), st.just(0)),
        st.tuples(st.just("compact"), st.just(0)),
        st.tuples(st.just("replace"), st.integers(2, 9)),
        st.tuples(st.just("touch"), st.integers(2, 9)),
    ),
    max_size=6,
)


@dataclass
class History:
    """A table beside a plain dictionary of its live rows."""

    uri: str
    metric: str
    generator: np.random.Generator
    live: dict[int, np.ndarray | None] = field(default_factory=dict)
    next_id: int = 0
    stable_row_ids: bool = False

    def append(self, count: int, null_every: int = 0) -> None:
        vectors = self.generator.standard_normal((count, DIMENSION)).astype(np.float32)
        ids = np.arange(self.next_id, self.next_id + count)
        self.next_id += count
        is_null = (ids % null_every == 0) if null_every > 0 else np.zeros(count, bool)
        rows = self.table(ids, vectors, is_null)
        lance.write_dataset(
            rows,
            self.uri,
            mode="append" if self.next_id > count else "create",
            enable_stable_row_ids=self.stable_row_ids,
        )
        for row, vector, null in zip(ids.tolist(), vectors, is_null.tolist(), strict=True):
            self.live[row] = None if null else vector

    @staticmethod
    def table(ids: np.ndarray, vectors: np.ndarray, is_null: np.ndarray) -> pa.Table:
        lists = pa.FixedSizeListArray.from_arrays(
            pa.array(vectors.ravel()), DIMENSION, mask=pa.array(is_null)
        )
        return pa.table({"id": ids, "touched": np.zeros(len(ids), np.int64), "vec": lists})

    def step(self, kind: str, argument: int) -> None:
        dataset = lance.dataset(self.uri)
        if kind == "append":
            self.append(argument)
        elif kind == "append with nulls":
            self.append(argument, null_every=3)
        elif kind == "delete":
            dataset.delete(f"id % {argument} = 1")
            self.live = {row: v for row, v in self.live.items() if row % argument != 1}
        elif kind == "index":
            dataset.create_index(
                "vec", "IVF_FLAT", metric=self.metric, num_partitions=argument, replace=True
            )
        elif kind == "extend index":
            dataset.optimize.optimize_indices(num_indices_to_merge=0)
        elif kind == "replace":
            self.replace([row for row in self.live if row % argument == 1])
        elif kind == "touch":
            dataset.update({"touched": f"{argument}"}, where=f"id % {argument} = 1")
        else:
            dataset.optimize.compact_files()

    def replace(self, ids: list[int]) -> None:
        """Give rows other vectors."""
        vectors = self.generator.standard_normal((len(ids), DIMENSION)).astype(np.float32)
        rows = self.table(np.array(ids, np.int64), vectors, np.zeros(len(ids), bool))
        lance.dataset(self.uri).merge_insert("id").when_matched_update_all().execute(rows)
        self.live.update(zip(ids, vectors, strict=True))

    def nearest(self, query: np.ndarray, k: int, first_id: int = 0) -> pa.Table:
        rows = [
            (row, vector)
            for row, vector in self.live.items()
            if vector is not None and row >= first_id
        ]
        vectors = np.array([vector for _, vector in rows], np.float32).reshape(-1, DIMENSION)
        distances = exact_distances(vectors, query, self.metric)
        first = np.argsort(distances, kind="stable")[:k]
        ids = np.array([row for row, _ in rows], np.int64)[first]
        return pa.table({"id": ids, "_distance": pa.array(distances[first].astype(np.float32))})


@given(
    steps=STEPS,
    metric=METRICS,
    seed=st.integers(0, 2**32 - 1),
    k=st.sampled_from([1, 5, 300]),
    stable_row_ids=st.booleans(),
    few_rows=st.sampled_from([0, 20_000]),
)
def test_the_nearest_live_rows_are_found_after_any_history(
    steps: list[tuple[str, int]],
    metric: str,
    seed: int,
    k: int,
    stable_row_ids: bool,
    few_rows: int,
):
    with TemporaryDirectory() as folder:
        history = History(
            str(Path(folder) / "t.lance"),
            metric,
            np.random.default_rng(seed),
            stable_row_ids=stable_row_ids,
        )
        history.append(120)
        for kind, argument in steps:
            history.step(kind, argument)
        session = lance_core.Session(few_rows=few_rows)
        dataset = lance_core.open_dataset(history.uri, session=session)
        assert dataset.count_rows() == len(history.live)
        query = history.generator.standard_normal(DIMENSION).astype(np.float32)
        asked: dict[str, Any] = {"columns": ["id"], "metric": metric, "nprobes": 1000}
        for extra in ({}, {"refine_factor": 2}, {"use_index": False}):
            found = dataset.search(query, k, **asked, **extra)
            expected = history.nearest(query, k)
            scale = scale_of(expected["_distance"].to_numpy(), query, metric)
            assert_same_neighbours(found, expected, scale=scale)
            first_id = int(history.generator.integers(history.next_id + 1))
            found = dataset.search(query, k, filter=f"id >= {first_id}", **asked, **extra)
            expected = history.nearest(query, k, first_id)
            assert_same_neighbours(found, expected, scale=scale)


def test_a_table_made_anew_at_the_same_place_is_another_one(tmp_path: Path):
    uri = str(tmp_path / "t.lance")
    session = lance_core.Session()
    query = np.ones(DIMENSION, np.float32)
    for seed in (1, 2):
        history = History(uri, "l2", np.random.default_rng(seed))
        history.append(300)
        history.step("index", 3)
        dataset = lance_core.open_dataset(uri, session=session)
        found = dataset.search(query, 5, columns=["id"], nprobes=3)
        assert_same_neighbours(found, history.nearest(query, 5), scale=10)
        shutil.rmtree(uri)
