"""Columns of float16 and float64 vectors, with every index, as pylance searches them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core import Session
from lance_core.errors import InvalidRequestError, UnsupportedFeatureError
from tests.neighbour_checks import assert_same_neighbours, scale_of

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

pytestmark = pytest.mark.interop

DIMENSION, NUM_ROWS, NUM_QUERIES = 32, 1_600, 6
KINDS: dict[str, dict[str, Any]] = {
    "IVF_FLAT": {},
    "IVF_PQ": {"num_sub_vectors": 8},
    "IVF_SQ": {},
    "IVF_RQ": {},
    "IVF_HNSW_FLAT": {},
    "IVF_HNSW_SQ": {},
    "IVF_HNSW_PQ": {"num_sub_vectors": 8},
}
_BFLOAT16 = {"ARROW:extension:name": "lance.bfloat16", "ARROW:extension:metadata": ""}
METRICS = ("l2", "cosine", "dot")


def table_of(vectors: NDArray[Any], first: int = 0) -> pa.Table:
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
    return pa.table({"id": np.arange(first, first + len(vectors)), "v": column})


def draw(num_rows: int, dtype: Any, seed: int) -> NDArray[Any]:
    centres = 3 * np.random.default_rng(1).standard_normal((20, DIMENSION))
    generator = np.random.default_rng(seed)
    chosen = centres[generator.integers(20, size=num_rows)]
    drawn: NDArray[Any] = (chosen + generator.standard_normal(chosen.shape)).astype(dtype)
    return drawn


def assert_same_answers(root: Path, dtype: Any, tolerance: float, **asked: Any) -> None:
    theirs = lance.dataset(root)
    ours = lance_core.open_dataset(root, session=Session(few_rows=0))
    metric = asked.get("metric", "l2")
    for query in draw(NUM_QUERIES, np.float32, seed=3):
        nearest = {"column": "v", "q": query.astype(dtype), "k": 10, **asked}
        expected = theirs.to_table(columns=["id", "_distance"], nearest=nearest)
        found = ours.search(query, 10, columns=["id"], **asked)
        scale = scale_of(expected["_distance"].to_numpy(), query, metric)
        assert_same_neighbours(found, expected, scale=scale, tolerance=tolerance)


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
@pytest.mark.parametrize("metric", METRICS)
def test_without_an_index_all_floats_are_searched_alike(
    tmp_path: Path, dtype: Any, metric: str
) -> None:
    lance.write_dataset(table_of(draw(NUM_ROWS, dtype, 2)), tmp_path / "t.lance")
    assert_same_answers(tmp_path / "t.lance", dtype, 1e-5, metric=metric)


def tolerance_of(kind: str, dtype: Any) -> float:
    """Return what may differ: pylance rounds residuals to float16 before it codes them."""
    if dtype == np.float16 and "PQ" in kind:
        return 2e-3
    return 1e-4 if "RQ" in kind else 1e-5


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("metric", METRICS)
def test_every_index_is_searched_as_by_pylance(
    tmp_path: Path, dtype: Any, kind: str, metric: str
) -> None:
    path = tmp_path / "t.lance"
    dataset = lance.write_dataset(table_of(draw(NUM_ROWS, dtype, 2)), path)
    dataset.create_index("v", kind, metric=metric, num_partitions=4, **KINDS[kind])
    tolerance = tolerance_of(kind, dtype)
    assert_same_answers(path, dtype, tolerance, metric=metric, nprobes=3)
    # Among candidates chosen by distances that differ a little, others may be.
    exact = 1e-5 if tolerance == 1e-5 or "HNSW" not in kind else tolerance
    assert_same_answers(path, dtype, exact, metric=metric, nprobes=3, refine_factor=5)
    lance.write_dataset(table_of(draw(100, dtype, 5), NUM_ROWS), path, mode="append")
    assert_same_answers(path, dtype, exact, metric=metric, nprobes=3, refine_factor=5)


@pytest.mark.parametrize("size", [65_520.0, 1e6])
def test_a_query_beyond_float16_is_refused(tmp_path: Path, size: float) -> None:
    lance.write_dataset(table_of(draw(4, np.float16, 2)), tmp_path / "t.lance")
    dataset = lance_core.open_dataset(tmp_path / "t.lance")
    query = np.zeros(DIMENSION)
    query[3] = size
    with pytest.raises(InvalidRequestError, match="vectors of float16: the query vector must hold"):
        dataset.search(query)
    query[3] = 65_504.0
    assert dataset.search(query)["id"].to_pylist() != []


@pytest.mark.parametrize("number", [1e39, -1e300, np.inf, np.nan])
def test_a_query_beyond_float32_is_refused(tmp_path: Path, number: float) -> None:
    lance.write_dataset(table_of(draw(4, np.float64, 2)), tmp_path / "t.lance")
    query = np.zeros(DIMENSION)
    query[3] = number
    with pytest.raises(InvalidRequestError, match="all must be finite"):
        lance_core.open_dataset(tmp_path / "t.lance").search(query)
    with pytest.raises(InvalidRequestError, match="all must be finite"):
        lance_core.open_dataset(tmp_path / "t.lance").search(query.tolist())


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_infinite_numbers_count_and_those_that_are_none_do_not(
    tmp_path: Path, metric: str, dtype: Any
) -> None:
    rows = [[1.0, 0], [np.nan, 0], [0, 0], [np.inf, 0], [-np.inf, 1], None, [2, 2], [3, np.inf]]
    column = pa.array(rows, pa.list_(pa.from_numpy_dtype(dtype), 2))
    table = pa.table({"id": range(len(rows)), "v": column})
    lance.write_dataset(table, tmp_path / "t.lance")
    for query in ([1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [-2.0, 0.5]):
        expected = lance.dataset(tmp_path / "t.lance").to_table(
            columns=["id", "_distance"],
            nearest={"column": "v", "q": np.array(query, dtype), "k": 10, "metric": metric},
        )
        found = lance_core.open_dataset(tmp_path / "t.lance").search(
            query, metric=metric, columns=["id"]
        )
        assert found["id"].to_pylist() == expected["id"].to_pylist()
        np.testing.assert_allclose(
            found["_distance"].to_numpy(), expected["_distance"].to_numpy(), atol=1e-6
        )


def test_numbers_beyond_float32_are_as_far_as_can_be(tmp_path: Path) -> None:
    vectors = np.array([[1.0, 2], [1e39, 0], [-1e300, 1]])
    lance.write_dataset(table_of(vectors), tmp_path / "t.lance")
    found = lance_core.open_dataset(tmp_path / "t.lance").search([1.0, 2.0])
    assert found["_distance"].to_pylist() == [0.0, np.inf, np.inf]


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dimension", [1, 2, 4_096])
@pytest.mark.parametrize("version", ["2.0", "2.2"])
def test_vectors_may_be_short_or_long(
    tmp_path: Path, metric: str, dimension: int, version: Any
) -> None:
    path = tmp_path / "t.lance"
    vectors = np.random.default_rng(7).standard_normal((400, dimension)).astype(np.float32)
    dataset = lance.write_dataset(table_of(vectors), path, data_storage_version=version)
    for nprobes in (None, 2):
        asked: dict[str, Any] = {} if nprobes is None else {"nprobes": nprobes}
        if asked:
            dataset.create_index("v", "IVF_FLAT", metric=metric, num_partitions=4)
        theirs, ours = lance.dataset(path), lance_core.open_dataset(path)
        for query in vectors[:3] + np.float32(0.25):
            nearest = {"column": "v", "q": query, "k": 5, "metric": metric, **asked}
            expected = theirs.to_table(columns=["id", "_distance"], nearest=nearest)
            found = ours.search(query, 5, columns=["id"], metric=metric, **asked)
            scale = scale_of(expected["_distance"].to_numpy(), query, metric)
            if metric == "dot":
                scale = max(scale, float(np.linalg.norm(query)) * dimension**0.5)
            assert_same_neighbours(found, expected, scale=scale)


def bfloat16_table(num_rows: int) -> pa.Table:
    values = np.ones(num_rows * 4, np.uint16)
    storage = pa.Array.from_buffers(pa.binary(2), len(values), [None, pa.py_buffer(values)])
    items = pa.field("item", pa.binary(2), metadata=_BFLOAT16)
    column = pa.FixedSizeListArray.from_arrays(storage, type=pa.list_(items, 4))
    return pa.table({"v": column})


def test_bfloat16_is_refused_by_name(tmp_path: Path) -> None:
    lance.write_dataset(bfloat16_table(3), tmp_path / "t.lance")
    with pytest.raises(UnsupportedFeatureError, match="vectors of bfloat16"):
        lance_core.open_dataset(tmp_path / "t.lance").search(np.ones(4))
