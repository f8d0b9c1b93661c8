"""Rows that no index holds, though it covers their fragments, are found all the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.query.request import VectorQuery
from lance_core.query.residency import NotResidentError
from lance_core.query.session import Session

if TYPE_CHECKING:
    from pathlib import Path

    from lance_core.query.query_result import QueryResult

pytestmark = pytest.mark.interop

DIMENSION, NUM_ROWS = 8, 900
INFINITE, NULL, NOT_A_NUMBER, ZERO = 3, 400, 500, 600
"""Ids of the odd rows."""


@dataclass(frozen=True)
class Table:
    path: str
    query: np.ndarray

    def ask(self, few_rows: int = 20_000, **given: object) -> QueryResult:
        dataset = lance_core.open_dataset(self.path, session=Session(few_rows=few_rows))
        options = {"vectors": self.query, "columns": ("id",), "k": None, **given}
        return dataset.run(VectorQuery(**options))  # type: ignore[arg-type]


@pytest.fixture(
    scope="module",
    params=[(kind, stable) for kind in ("IVF_FLAT", "IVF_PQ") for stable in (False, True)],
    ids=str,
)
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Table:
    kind, stable = request.param
    generator = np.random.default_rng(4)
    vectors = generator.standard_normal((NUM_ROWS, DIMENSION)).astype(np.float32)
    vectors[INFINITE, 2] = np.inf
    vectors[NOT_A_NUMBER, 1] = np.nan
    vectors[ZERO] = 0
    lists = [None if i == NULL else row.tolist() for i, row in enumerate(vectors)]
    column = pa.array(lists, pa.list_(pa.float32(), DIMENSION))
    folder: Path = tmp_path_factory.mktemp("left-out") / "t.lance"
    dataset = lance.write_dataset(
        pa.table({"id": np.arange(NUM_ROWS), "vec": column}),
        str(folder),
        max_rows_per_file=350,
        enable_stable_row_ids=stable,
    )
    sizes: dict[str, Any] = {"num_sub_vectors": 4} if kind == "IVF_PQ" else {}
    dataset.create_index("vec", kind, metric="l2", num_partitions=6, **sizes)
    dataset.delete("id % 10 = 5")
    return Table(str(folder), generator.standard_normal((1, DIMENSION)).astype(np.float32))


def ids(result: QueryResult) -> list[int]:
    found: list[int] = result.table["id"].to_pylist()
    return found


def test_all_rows_with_a_distance_are_found_as_by_exact_search(table):
    result = table.ask()
    exact = table.ask(use_index=False, metric="l2")
    assert ids(result) == ids(exact)
    assert ids(result)[-1] == INFINITE
    assert NULL not in ids(result)
    assert result.table["_distance"][-1].as_py() == float("inf")
    assert result.stats.rows_left_out == 0
    np.testing.assert_allclose(
        result.table["_distance"].to_numpy()[:-1],
        exact.table["_distance"].to_numpy()[:-1],
        rtol=1e-5,
    )


def test_too_many_of_them_are_counted_and_not_scored(table):
    result = table.ask(few_rows=2)
    assert result.stats.rows_left_out == 3
    assert INFINITE not in ids(result)


def test_a_filter_counts_only_those_that_pass(table):
    result = table.ask(few_rows=0, k=600, filter=f"id != {NULL}", max_probes=6, min_probes=5)
    assert result.plan.listed is None
    assert result.stats.rows_left_out == 0  # enough others were found
    result = table.ask(few_rows=0, k=NUM_ROWS, filter=f"id < {NULL}", min_probes=6, max_probes=6)
    assert result.stats.rows_left_out == 0  # so many probes were asked for, and no more


def test_enough_rows_are_found_without_looking_for_others(table):
    result = table.ask(k=10)
    assert len(ids(result)) == 10
    assert result.stats.rows_refined == 0


def test_a_run_that_may_not_read_does_not_look_through_all_partitions(table):
    dataset = lance_core.open_dataset(table.path)
    request = VectorQuery(vectors=table.query, columns=("id",), k=None)
    with pytest.raises(NotResidentError):
        dataset.run(request, resident_only=True)


def test_a_range_of_distances_does_not_bring_in_rows_outside(table):
    bounds = {"lower_bound": 1.0, "upper_bound": 9.0}
    result = table.ask(**bounds, refine_factor=1)
    exact = table.ask(**bounds, use_index=False, metric="l2")
    missing = set(ids(exact)) - set(ids(result))
    assert set(ids(result)) <= set(ids(exact))
    assert len(missing) < 0.3 * len(ids(exact))  # near the edges of a range PQ errs
    assert INFINITE not in ids(result)


@pytest.mark.parametrize("metric", ["l2", "dot"])
def test_pylance_finds_infinite_vectors_exactly_only_and_we_do_where_rows_are_few(tmp_path, metric):
    vectors = np.random.default_rng(4).standard_normal((300, DIMENSION)).astype(np.float32)
    vectors[INFINITE, 2] = np.inf
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIMENSION)
    theirs = lance.write_dataset(pa.table({"id": np.arange(300), "vec": column}), str(tmp_path))
    theirs.create_index("vec", "IVF_FLAT", metric=metric, num_partitions=2)
    nearest = {"column": "vec", "q": np.ones(DIMENSION, np.float32), "k": 400, "metric": metric}
    columns, condition = ["id", "_distance"], "id < 10"
    exact, indexed = (
        theirs.to_table(
            columns, filter=condition, prefilter=True, nearest={**nearest, "use_index": is_used}
        )["id"].to_pylist()
        for is_used in (False, True)
    )
    assert [row for row in exact if row != INFINITE] == indexed
    assert exact[-1 if metric == "l2" else 0] == INFINITE
    ours = lance_core.open_dataset(tmp_path)
    found = ours.search(nearest["q"], k=400, columns=["id"], filter=condition)
    assert found["id"].to_pylist() == exact
