"""Rows that hold lists of vectors, searched as pylance searches them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core import Session, VectorQuery
from lance_core.errors import InvalidRequestError, TypeMismatchError, UnsupportedFeatureError
from lance_core.kernels.warm import warm_kernels
from tests.kernel_signatures import num_signatures
from tests.multivector_tables import DIMENSION, draw_queries, list_array, write_lists
from tests.neighbour_checks import assert_same_neighbours

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

pytestmark = pytest.mark.interop

NUM_ROWS, NUM_APPENDED = 1_200, 200
KINDS: dict[str, dict[str, Any]] = {
    "IVF_FLAT": {},
    "IVF_PQ": {"num_sub_vectors": 8},
    "IVF_SQ": {},
    "IVF_RQ": {},
    "IVF_HNSW_FLAT": {},
    "IVF_HNSW_SQ": {},
    "IVF_HNSW_PQ": {"num_sub_vectors": 8},
}


def assert_same_answers(
    root: Path, queries: list[NDArray[Any]], k: int, *, tolerance: float = 1e-5, **asked: Any
) -> None:
    theirs = lance.dataset(root)
    # No rows are so few that they are scored one by one, which pylance never does.
    ours = lance_core.open_dataset(root, session=Session(few_rows=0))
    predicate = asked.pop("filter", None)
    bounds = (asked.pop("lower_bound", None), asked.pop("upper_bound", None))
    for query in queries:
        expected = theirs.to_table(
            columns=["id", "_distance"],
            nearest={"column": "v", "q": query, "k": k, "distance_range": bounds, **asked},
            filter=predicate,
            prefilter=True,
        )
        found = ours.search(
            query,
            k,
            columns=["id"],
            filter=predicate,
            lower_bound=bounds[0],
            upper_bound=bounds[1],
            **asked,
        )
        distances = expected["_distance"].to_numpy()
        scale = max(float(len(query)), float(np.abs(distances).max(initial=0)))
        if asked.get("metric") == "dot":
            scale *= 40  # sums of large terms
        assert_same_neighbours(found, expected, scale=scale, tolerance=tolerance)


@pytest.fixture(params=["2.0", "2.1", "2.2"])
def flat_table(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[Path, list[NDArray[Any]]]:
    path = tmp_path / "t.lance"
    vectors = write_lists(path, NUM_ROWS, seed=2, version=request.param)
    lance.dataset(path).delete("id % 7 = 0")
    return path, draw_queries(vectors, 3)


@pytest.mark.parametrize("metric", [None, "l2", "cosine", "dot"])
def test_without_an_index_the_nearest_vectors_of_a_row_add_up(
    flat_table: tuple[Path, list[NDArray[Any]]], metric: str | None
) -> None:
    root, queries = flat_table
    asked: dict[str, Any] = {} if metric is None else {"metric": metric}
    for k in (1, 10, 2_000):
        assert_same_answers(root, queries, k, **asked)


def test_masks_and_bounds_hold_for_rows(flat_table: tuple[Path, list[NDArray[Any]]]) -> None:
    root, queries = flat_table
    assert_same_answers(root, queries, 20, filter="id < 400")
    assert_same_answers(root, queries, 2_000, lower_bound=20.0, upper_bound=60.0)


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.uint8])
def test_all_element_types_may_stand_in_lists(tmp_path: Path, dtype: type[np.generic]) -> None:
    path = tmp_path / "t.lance"
    queries = draw_queries(write_lists(path, 500, seed=4, dtype=dtype), 5)
    assert_same_answers(path, queries, 10, tolerance=2e-3 if dtype == np.float16 else 1e-5)


@pytest.fixture(scope="module", params=KINDS)
def indexed(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> tuple[Path, list[NDArray[Any]]]:
    """A table with an index, rows that it does not cover and deleted rows."""
    path: Path = tmp_path_factory.mktemp(request.param) / "t.lance"
    vectors = write_lists(path, NUM_ROWS, seed=2)
    lance.dataset(path).create_index(
        "v", request.param, metric="cosine", num_partitions=6, **KINDS[request.param]
    )
    lance.dataset(path).delete("id % 7 = 0")
    return path, draw_queries(vectors, 3)


@pytest.mark.parametrize("k", [1, 10, 100])
def test_an_index_is_searched_for_each_vector_of_a_query(
    indexed: tuple[Path, list[NDArray[Any]]], k: int
) -> None:
    root, queries = indexed
    for asked in ({}, {"nprobes": 2}, {"nprobes": 3, "refine_factor": 3}):
        assert_same_answers(root, queries, k, tolerance=1e-4, **asked)


def test_a_prefilter_holds_for_the_rows_of_vectors(
    indexed: tuple[Path, list[NDArray[Any]]],
) -> None:
    root, queries = indexed
    for predicate in ("id < 100", "id < 600"):
        assert_same_answers(root, queries, 10, tolerance=1e-4, nprobes=6, filter=predicate)


def test_refined_distances_are_inside_the_bounds(indexed: tuple[Path, list[NDArray[Any]]]) -> None:
    root, queries = indexed
    dataset = lance_core.open_dataset(root)
    for query in queries:
        found = dataset.search(query, 50, nprobes=6, lower_bound=0.5, upper_bound=1.0)
        assert all(0.5 <= each < 1.0 for each in found["_distance"].to_pylist())


@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_RQ", "IVF_HNSW_PQ"])
def test_rows_outside_the_index_and_several_segments_are_as_in_pylance(
    tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "t.lance"
    vectors = write_lists(path, NUM_ROWS, seed=2)
    lance.dataset(path).create_index("v", kind, metric="cosine", num_partitions=6, **KINDS[kind])
    write_lists(path, NUM_APPENDED, seed=8, first=NUM_ROWS)
    lance.dataset(path).delete("id % 5 = 0")
    queries = draw_queries(vectors, 6)
    for asked in ({}, {"nprobes": 2}, {"nprobes": 2, "refine_factor": 2}):
        assert_same_answers(path, queries, 10, **asked)
    lance.dataset(path).optimize.optimize_indices(num_indices_to_merge=0)
    assert_same_answers(path, queries, 10, tolerance=1e-4, nprobes=3)
    lance.dataset(path).optimize.compact_files()
    assert_same_answers(path, queries, 10, tolerance=1e-4, nprobes=3)


def test_searching_lists_and_bytes_compiles_nothing(tmp_path: Path) -> None:
    floats = draw_queries(write_lists(tmp_path / "f.lance", 300, seed=2), 3)
    codes = draw_queries(write_lists(tmp_path / "b.lance", 300, seed=2, dtype=np.uint8), 3)
    single = pa.FixedSizeListArray.from_arrays(pa.array(codes[4].ravel()), DIMENSION)
    lance.write_dataset(pa.table({"v": single}), tmp_path / "s.lance")
    lance.dataset(tmp_path / "f.lance").create_index(
        "v", "IVF_FLAT", metric="cosine", num_partitions=2
    )
    warm_kernels()
    before = num_signatures()
    for name, query in (("f", floats[2]), ("b", codes[2]), ("s", codes[2]), ("s", codes[2][0])):
        dataset = lance_core.open_dataset(tmp_path / f"{name}.lance")
        dataset.search(query)
        dataset.search(query, refine_factor=2)
        if name != "s":
            dataset.search(query, filter="id < 50")
    assert num_signatures() == before


@pytest.mark.parametrize("has_stable_ids", [False, True])
def test_rows_that_move_keep_their_vectors(tmp_path: Path, has_stable_ids: bool) -> None:
    path = tmp_path / "t.lance"
    vectors = write_lists(path, NUM_ROWS, seed=2, has_stable_ids=has_stable_ids)
    lance.dataset(path).create_index("v", "IVF_SQ", metric="cosine", num_partitions=6)
    lance.dataset(path).delete("id % 7 = 0")
    lance.dataset(path).optimize.compact_files(
        target_rows_per_fragment=10_000, defer_index_remap=not has_stable_ids
    )
    lance.dataset(path).delete("id % 11 = 0")
    queries = draw_queries(vectors, 6)
    # With a filter pylance masks what compaction has removed, too.
    for asked in ({"nprobes": 3}, {"nprobes": 3, "refine_factor": 2}):
        assert_same_answers(path, queries, 10, filter="id < 1100", **asked)
    assert list(lance_core.open_dataset(path).verify()) == []


@pytest.fixture
def odd(tmp_path: Path) -> lance_core.Dataset:
    rows = [
        [[1.0, 0.0], None],
        [None],
        [[np.nan, 1.0], [0.0, 1.0]],
        [[0.0, 0.0], [0.0, 1.0]],
        [[0.0, 0.0]],
        [],
        None,
        [[np.inf, 0.0], [0.0, 2.0]],
    ]
    column = pa.array(rows, pa.list_(pa.list_(pa.float32(), 2)))
    lance.write_dataset(pa.table({"id": range(len(rows)), "v": column}), tmp_path / "t.lance")
    return lance_core.open_dataset(tmp_path / "t.lance")


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("l2", {0: 2.0, 2: 2.0, 3: 1.0, 4: 2.0, 7: 6.0}),
        ("cosine", {0: 1.0, 2: 1.0, 3: 1.0, 7: 1.0}),
        ("dot", {0: 1.0, 2: 1.0, 3: 1.0, 4: 2.0, 7: -np.inf}),
    ],
)
def test_vectors_without_a_distance_are_passed_over(
    odd: lance_core.Dataset, metric: str, expected: dict[int, float]
) -> None:
    """pylance takes null vectors for zero ones and drops rows for NaNs of one sign."""
    found = odd.search([[1.0, 0.0], [0.0, 1.0]], metric=metric, columns=["id"])
    distances = dict(zip(found["id"].to_pylist(), found["_distance"].to_pylist(), strict=True))
    assert distances == expected


def test_one_vector_may_be_given_without_a_list(
    flat_table: tuple[Path, list[NDArray[Any]]],
) -> None:
    root, queries = flat_table
    dataset = lance_core.open_dataset(root)
    alone, listed = dataset.search(queries[0][0], 5), dataset.search(queries[0], 5)
    assert "query_index" not in listed.column_names
    assert alone.equals(listed)


def test_a_row_is_searched_by_with_all_its_vectors(
    flat_table: tuple[Path, list[NDArray[Any]]],
) -> None:
    root, _ = flat_table
    dataset = lance_core.open_dataset(root)
    stored = dataset.scan(["v"], with_row_id=True).read_all()
    lists = stored["v"].to_pylist()
    place = next(i for i, each in enumerate(lists) if each is not None and len(each) == 3)
    row_id = stored["_rowid"][place].as_py()
    found = dataset.run(VectorQuery(None, 5, row_ids=(row_id,), columns=("id",))).table
    by_hand = dataset.search(np.array(lists[place]), 6, columns=["id"])
    assert found["id"].to_pylist() == by_hand["id"].to_pylist()[1:]
    empty = next(i for i, each in enumerate(lists) if each == [])
    with pytest.raises(InvalidRequestError, match="it has no neighbours"):
        dataset.run(VectorQuery(None, 5, row_ids=(stored["_rowid"][empty].as_py(),)))


def test_a_plan_tells_how_rows_are_ranked(indexed: tuple[Path, list[NDArray[Any]]]) -> None:
    root, queries = indexed
    dataset = lance_core.open_dataset(root)
    request = VectorQuery(queries[2], 7, refine_factor=2, batched=True)
    lines = dataset.explain(request).splitlines()
    assert lines[3].strip() == "RankByHits: hits=70, k=14"
    assert "k=70" in lines[4]
    assert dataset.run(request).table.num_rows == 7
    assert "RankByHits: hits=70, k=14 [rows=14," in dataset.analyze(request)


def test_an_index_is_no_use_for_another_metric(indexed: tuple[Path, list[NDArray[Any]]]) -> None:
    root, queries = indexed
    assert_same_answers(root, queries, 10, metric="l2")
    assert_same_answers(root, queries, 10, metric="cosine", use_index=False)


def test_the_vectors_of_a_query_must_fit_those_of_the_rows(
    flat_table: tuple[Path, list[NDArray[Any]]],
) -> None:
    dataset = lance_core.open_dataset(flat_table[0])
    with pytest.raises(TypeMismatchError, match=f"give {DIMENSION} numbers"):
        dataset.search(np.ones((2, 5)), column="v")
    with pytest.raises(InvalidRequestError, match="shape"):
        dataset.search(np.ones((2, 3, DIMENSION)), column="v")


def test_lists_of_other_integers_are_refused_by_name(tmp_path: Path) -> None:
    column = list_array(np.ones((4, 2), np.int8), np.array([1, 3]), np.zeros(2, np.bool_))
    lance.write_dataset(pa.table({"v": column}), tmp_path / "t.lance")
    with pytest.raises(UnsupportedFeatureError, match="vectors of int8"):
        lance_core.open_dataset(tmp_path / "t.lance").search([1.0, 1.0])
