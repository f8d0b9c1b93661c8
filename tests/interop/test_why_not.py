"""Why a row is not in an answer, told of indices that pylance built, against brute force."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from lance_core.dataset import open_dataset
from lance_core.errors import InvalidRequestError, UnsupportedFeatureError
from lance_core.query.request import VectorQuery
from lance_core.query.session import Session
from tests.multivector_tables import draw_queries, write_lists
from tests.neighbour_checks import exact_distances

if TYPE_CHECKING:
    from pathlib import Path

    from lance_core.dataset import Dataset
    from lance_core.query.why_not import WhyNot

pytestmark = pytest.mark.interop

DIMENSION, NUM_ROWS, NUM_PARTITIONS = 16, 1_500, 8
SIZES: dict[str, dict[str, Any]] = {
    "IVF_FLAT": {},
    "IVF_PQ": {"num_sub_vectors": 4},
    "IVF_SQ": {},
    "IVF_RQ": {},
    "IVF_HNSW_FLAT": {},
    "IVF_HNSW_SQ": {},
}
VECTORS = np.random.default_rng(3).standard_normal((NUM_ROWS + 20, DIMENSION)).astype(np.float32)
QUERY = np.random.default_rng(4).standard_normal(DIMENSION).astype(np.float32)
DISTANCES = exact_distances(VECTORS, QUERY, "l2")
NULL, NAN, INFINITE, ZERO, DELETED = 1, 2, 3, 4, 5
ODD = [NULL, NAN, INFINITE, ZERO, DELETED]


def rows(first: int, last: int) -> pa.Table:
    vectors = VECTORS[first:last].copy()
    if first == 0:
        vectors[NAN, 0], vectors[INFINITE, 3], vectors[ZERO] = np.nan, np.inf, 0
    flat = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIMENSION)
    is_null = pa.array(np.arange(first, last) == NULL)
    column = pa.compute.if_else(is_null, pa.scalar(None, flat.type), flat)
    return pa.table({"id": np.arange(first, last), "half": np.arange(first, last) % 2, "v": column})


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str, bool], Any]:
    """Tables by index type, metric and stable row ids, made when they are first asked for."""
    made: dict[tuple[str, str, bool], Any] = {}
    folder = tmp_path_factory.mktemp("why")

    class Tables(dict[tuple[str, str, bool], Any]):
        def __missing__(self, key: tuple[str, str, bool]) -> Any:
            self[key] = found = make(folder / "-".join(map(str, key)), *key)
            return found

    return Tables(made)


def make(path: Path, kind: str, metric: str, stable: bool) -> Any:
    dataset = lance.write_dataset(
        rows(0, NUM_ROWS), path, max_rows_per_file=600, enable_stable_row_ids=stable
    )
    dataset.create_index("v", kind, metric=metric, num_partitions=NUM_PARTITIONS, **SIZES[kind])
    dataset.insert(rows(NUM_ROWS, NUM_ROWS + 20))
    dataset.delete(f"id = {DELETED}")
    opened = open_dataset(path, session=Session(few_rows=10))
    table = lance.dataset(str(path)).to_table(columns=["id"], with_row_id=True)
    ids = dict(zip(table["id"].to_pylist(), table["_rowid"].to_pylist(), strict=True))
    return opened, ids | {DELETED: DELETED}


def ask(tables: Any, which: int, kind: str = "IVF_PQ", metric: str = "l2", **options: Any) -> Any:
    dataset, row_ids = tables[kind, metric, False]
    return why(dataset, row_ids[which], **options)


def why(dataset: Dataset, row_id: int, **options: Any) -> WhyNot:
    given = {"vectors": QUERY[None], "k": 10, "with_row_id": True, **options}
    found = dataset.why_not(VectorQuery(**given), row_id)
    ids = dataset.run(VectorQuery(**given)).table["_rowid"].to_pylist()
    assert (found.reason == "present") == (row_id in ids)
    assert str(row_id) in found.text()
    return found


def facts(found: WhyNot) -> Any:
    return found.detail


def by_distance() -> list[int]:
    order = np.argsort(DISTANCES, kind="stable").tolist()
    return [each for each in order if each not in ODD]


@pytest.mark.parametrize("kind", SIZES)
def test_a_row_in_the_answer_is_present_with_its_rank(tables: Any, kind: str) -> None:
    nearest = by_distance()[0]
    found = ask(tables, nearest, kind, min_probes=NUM_PARTITIONS, refine_factor=20)
    assert (found.reason, found.detail["rank"]) == ("present", 1)
    assert found.detail["distance"] == pytest.approx(DISTANCES[nearest], rel=1e-5)


@pytest.mark.parametrize("kind", SIZES)
def test_a_row_that_nearer_ones_beat_is_told_its_rank(tables: Any, kind: str) -> None:
    third = by_distance()[200]
    found = ask(tables, third, kind, min_probes=NUM_PARTITIONS, refine_factor=1_000)
    # Zero is a vector like any other under l2, and nearer than most.
    place = int((np.delete(DISTANCES, ODD) < DISTANCES[third]).sum())
    place += bool((QUERY**2).sum() < DISTANCES[third])
    assert (found.reason, found.detail["rank"], found.detail["wanted"]) == ("beaten", place + 1, 10)
    assert found.detail["distance"] == pytest.approx(DISTANCES[third], rel=1e-5)
    assert found.detail["last_distance"] < found.detail["distance"]


@pytest.mark.parametrize("kind", SIZES)
def test_a_row_of_a_partition_that_was_not_probed_is_told_the_rank_of_it(
    tables: Any, kind: str
) -> None:
    dataset, row_ids = tables[kind, "l2", False]
    reasons = [ask(tables, each, kind, min_probes=2, max_probes=2) for each in range(10, 60)]
    unprobed = [each for each in reasons if each.reason == "partition_not_probed"]
    assert 10 < len(unprobed) < 50
    for each in unprobed:
        detail = facts(each)
        assert detail["probed"] == 2
        assert 2 < detail["partition_rank"] <= detail["partitions"]
        # One more than its rank is enough to reach it.
        rank = detail["partition_rank"]
        again = why(dataset, each.row_id, min_probes=rank, max_probes=rank)
        assert again.reason != "partition_not_probed"
    assert row_ids[10] in {each.row_id for each in reasons}


def test_a_row_that_quantised_distances_push_back_is_lost_in_refine(tables: Any) -> None:
    options = {"min_probes": NUM_PARTITIONS, "max_probes": NUM_PARTITIONS, "refine_factor": 2}
    dataset, row_ids = tables["IVF_PQ", "l2", False]
    reasons = [why(dataset, row_ids[each], k=3, **options) for each in by_distance()[:60]]
    lost = [each for each in reasons if each.reason == "lost_in_refine"]
    assert lost
    assert {each.reason for each in reasons} == {"present", "lost_in_refine", "beaten"}
    for each in lost:
        assert facts(each)["candidates"] == 6
        assert facts(each)["approximate_rank"] > 6


@pytest.mark.parametrize("stable", [False, True])
def test_deleted_and_unknown_rows_are_told_apart(tables: Any, stable: bool) -> None:
    dataset, row_ids = tables["IVF_FLAT", "l2", stable]
    assert why(dataset, row_ids[DELETED]).reason == "deleted"
    for unknown in (2**40, 2**64 - 1):
        assert why(dataset, unknown).reason == "unknown"
    assert why(dataset, row_ids[by_distance()[0]], min_probes=NUM_PARTITIONS).reason == "present"


@pytest.mark.parametrize("prefilter", [True, False])
def test_a_row_that_fails_the_filter_is_filtered(tables: Any, prefilter: bool) -> None:
    nearest = by_distance()[0]
    text = f"half != {nearest % 2}"
    found = ask(tables, nearest, filter=text, prefilter=prefilter, min_probes=NUM_PARTITIONS)
    assert (found.reason, found.detail["filter"]) == ("filtered", text)


def test_a_filter_may_look_at_the_distance(tables: Any) -> None:
    far = by_distance()[300]
    limit = float(DISTANCES[far]) * 0.9
    found = ask(tables, far, filter=f"_distance < {limit}", prefilter=False)
    assert found.reason == "filtered"


@pytest.mark.parametrize(("which", "cause"), [(NULL, "null"), (NAN, "NaN"), (INFINITE, "infinity")])
@pytest.mark.parametrize("options", [{}, {"use_index": False}], ids=["index", "exact"])
def test_a_row_without_a_distance_is_not_indexed(
    tables: Any, which: int, cause: str, options: dict[str, Any]
) -> None:
    found = ask(tables, which, "IVF_FLAT", **options)
    if which == INFINITE and options:  # it has a distance, the largest of all
        assert found.reason == "beaten"
        return
    assert found.reason == "not_indexed"
    assert cause in found.detail["cause"]


def test_a_zero_vector_has_no_place_under_cosine(tables: Any) -> None:
    found = ask(tables, ZERO, "IVF_FLAT", "cosine")
    assert (found.reason, "zero" in found.detail["cause"]) == ("not_indexed", True)


def test_rows_of_fragments_without_index_are_found_unless_the_search_is_to_be_fast(
    tables: Any,
) -> None:
    newest = NUM_ROWS + int(np.argmin(DISTANCES[NUM_ROWS:]))
    found = ask(tables, newest, fast_search=True)
    assert (found.reason, "covers" in found.detail["cause"]) == ("not_indexed", True)
    assert ask(tables, newest, k=300).reason == "present"
    assert ask(tables, NUM_ROWS + int(np.argmax(DISTANCES[NUM_ROWS:])), k=1).reason == "beaten"


@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_PQ"])
def test_a_row_outside_the_bounds_is_told_so(tables: Any, kind: str) -> None:
    nearest = by_distance()[0]
    found = ask(
        tables, nearest, kind, lower_bound=float(DISTANCES[nearest]) * 3, min_probes=NUM_PARTITIONS
    )
    assert found.reason == "outside_range"
    assert found.detail["distance"] == pytest.approx(DISTANCES[nearest], rel=1e-5)


@pytest.mark.parametrize("kind", SIZES)
@pytest.mark.parametrize("options", [{}, {"fast_search": True}], ids=["mixed", "unrefined"])
def test_no_reason_contradicts_its_own_numbers(
    tables: Any, kind: str, options: dict[str, Any]
) -> None:
    bounds = {"lower_bound": 9.0, "upper_bound": 14.0}
    dataset, row_ids = tables[kind, "l2", False]
    seen = set()
    for which in by_distance()[:240:3]:
        found = why(dataset, row_ids[which], k=40, min_probes=NUM_PARTITIONS, **bounds, **options)
        seen.add(found.reason)
        detail = facts(found)
        distance = np.float32(detail.get("distance", np.nan))
        if found.reason == "outside_range":
            assert not 9 <= distance < 14
        if found.reason == "beaten":
            assert detail["rank"] > detail["wanted"]
            assert distance >= np.float32(detail["last_distance"])
        if found.reason == "given_up":
            assert "RQ" in kind
            assert 9 <= distance < 14
    assert {"present", "outside_range"} <= seen


def test_a_row_that_is_given_up_early_is_told_so(tmp_path: Path) -> None:
    dataset = lance.write_dataset(rows(0, NUM_ROWS), tmp_path)
    dataset.create_index("v", "IVF_RQ", metric="l2", num_partitions=1)
    opened = open_dataset(tmp_path)
    options: dict[str, Any] = {"min_probes": 1, "max_probes": 1, "with_row_id": True}
    given_up: list[WhyNot] = []
    for seed in range(200):
        query = np.random.default_rng(seed).standard_normal((1, DIMENSION)).astype(np.float32)
        # Who asks for all rows gives up none.
        whole = VectorQuery(vectors=query, k=None, **options)
        few = VectorQuery(vectors=query, k=100, **options)
        nearest = opened.run(whole).table["_rowid"].to_pylist()[:100]
        missed = set(nearest) - set(opened.run(few).table["_rowid"].to_pylist())
        given_up += [opened.why_not(few, row_id) for row_id in missed]
    assert given_up
    for each in given_up:
        assert each.reason == "given_up"
        assert facts(each)["rank"] <= facts(each)["wanted"] == 100


def test_rows_that_a_fast_search_leaves_out_are_not_said_to_be_skipped(tables: Any) -> None:
    dataset, row_ids = tables["IVF_FLAT", "l2", False]
    options: dict[str, Any] = {"fast_search": True, "metric": "dot", "filter": "half = 0"}
    found = why(dataset, row_ids[10], **options)
    assert (found.reason, "fast search" in facts(found)["cause"]) == ("not_indexed", True)
    assert why(dataset, row_ids[11], **options).reason == "filtered"
    behind: dict[str, Any] = {"offset": 10_000, "filter": "half = 0"}
    assert why(dataset, row_ids[10], **behind).reason == "before_offset"
    assert why(dataset, row_ids[11], **behind).reason == "filtered"
    assert why(dataset, row_ids[NAN], offset=10_000).reason == "not_indexed"


def test_rows_before_the_offset_are_told_apart_from_those_behind(tables: Any) -> None:
    order = [each for each in by_distance() if DISTANCES[each] < (QUERY**2).sum()]
    options: dict[str, Any] = {"offset": 3, "k": 2, "use_index": False}
    reasons = [ask(tables, each, **options).reason for each in order[:7]]
    assert reasons == ["before_offset"] * 3 + ["present"] * 2 + ["beaten"] * 2
    assert ask(tables, order[0], offset=10_000).reason == "before_offset"


def test_the_row_whose_neighbours_are_asked_for_is_itself(tables: Any) -> None:
    dataset, row_ids = tables["IVF_FLAT", "l2", False]
    request = VectorQuery(vectors=None, row_ids=(row_ids[20],), k=5)
    assert dataset.why_not(request, row_ids[20]).reason == "itself"


def test_a_graph_that_is_walked_narrowly_may_not_reach_a_row(tables: Any) -> None:
    dataset, row_ids = tables["IVF_HNSW_FLAT", "l2", False]
    for each in by_distance()[:40]:
        found = why(dataset, row_ids[each], k=5, min_probes=3, max_probes=3, ef=5)
        assert found.reason in {"present", "beaten", "not_reached", "partition_not_probed"}


@pytest.mark.parametrize("row_id", [-1, 2**64])
def test_what_is_no_row_id_is_refused(tables: Any, row_id: int) -> None:
    dataset, _ = tables["IVF_FLAT", "l2", False]
    with pytest.raises(InvalidRequestError, match="no row id"):
        dataset.why_not(VectorQuery(vectors=QUERY[None], k=5), row_id)


def test_several_queries_at_once_are_refused(tables: Any) -> None:
    dataset, _ = tables["IVF_FLAT", "l2", False]
    with pytest.raises(InvalidRequestError, match="2 query vectors"):
        dataset.why_not(VectorQuery(vectors=np.stack([QUERY, QUERY]), k=5, batched=True), 1)


@pytest.mark.parametrize("kind", SIZES)
def test_every_row_has_one_reason_that_agrees_with_the_answer(tables: Any, kind: str) -> None:
    dataset, row_ids = tables[kind, "l2", False]
    for which in range(0, NUM_ROWS + 20, 97):
        why(dataset, row_ids[which], filter="half = 0 OR id > 700", k=50)


def test_rows_that_a_filter_leaves_are_ranked_one_by_one(tables: Any) -> None:
    dataset, row_ids = tables["IVF_PQ", "l2", False]
    usual = open_dataset(dataset.uri)  # scores so few rows exactly
    left = [each for each in by_distance() if each % 2 == 0 and each < 400]
    for place in (0, 9, 10, len(left) - 1):
        found = why(usual, row_ids[left[place]], filter="half = 0 AND id < 400", k=10)
        assert found.reason == (
            "present" if place < 9 else "beaten" if place > 10 else found.reason
        )
        assert abs(facts(found)["rank"] - place - 1) <= 1  # the zero vector may be among them
        assert facts(found)["distance"] == pytest.approx(DISTANCES[left[place]], rel=1e-5)


def test_rows_with_ids_of_their_own_have_their_partitions(tables: Any) -> None:
    dataset, row_ids = tables["IVF_PQ", "l2", True]
    options = {"min_probes": 1, "max_probes": 1}
    reasons = [why(dataset, row_ids[each], **options) for each in range(10, 40)]
    unprobed = [each for each in reasons if each.reason == "partition_not_probed"]
    assert unprobed
    for each in unprobed:
        rank = facts(each)["partition_rank"]
        again = why(dataset, each.row_id, min_probes=rank, max_probes=rank)
        assert again.reason in {"present", "beaten"}


def test_rows_that_a_deferred_compaction_moved_keep_their_partitions(tmp_path: Path) -> None:
    dataset = lance.write_dataset(rows(0, 800), tmp_path, max_rows_per_file=200)
    dataset.create_index("v", "IVF_PQ", metric="l2", num_partitions=4, num_sub_vectors=4)
    dataset.delete("id % 3 = 0")
    dataset.optimize.compact_files(target_rows_per_fragment=10_000, defer_index_remap=True)
    table = lance.dataset(str(tmp_path)).to_table(columns=["id"], with_row_id=True)
    opened = open_dataset(tmp_path)
    seen = {
        why(opened, row_id, min_probes=1, max_probes=1).reason
        for row_id in table["_rowid"].to_pylist()[5:100]
    }
    assert seen <= {"present", "beaten", "partition_not_probed"}
    assert "partition_not_probed" in seen


def test_rows_that_hold_lists_are_told_why_unless_an_index_lost_them(tmp_path: Path) -> None:
    vectors = write_lists(tmp_path / "t.lance", 300, seed=1)
    dataset = lance.dataset(str(tmp_path / "t.lance"))
    dataset.delete("id = 7")
    dataset.create_index("v", "IVF_FLAT", metric="cosine", num_partitions=4)
    opened = open_dataset(tmp_path / "t.lance", session=Session(few_rows=0))
    query = draw_queries(vectors, 2)[2]
    exact = VectorQuery(vectors=query, k=5, use_index=False, metric="cosine", batched=True)
    answer = opened.run(replace(exact, k=None, with_row_id=True)).table
    order = answer["_rowid"].to_pylist()
    for place in (0, 4, 5, len(order) - 1):
        found = opened.why_not(exact, order[place])
        assert found.reason == ("present" if place < 5 else "beaten")
        assert facts(found)["rank"] == place + 1
    assert opened.why_not(exact, 7).reason == "deleted"
    lists = lance.dataset(str(tmp_path / "t.lance")).to_table(with_row_id=True)
    empty = [
        row_id
        for row_id, held in zip(lists["_rowid"].to_pylist(), lists["v"].to_pylist(), strict=True)
        if not held
    ]
    causes = {facts(opened.why_not(exact, each))["cause"] for each in empty}
    assert causes == {"its vector is null", "it has no vectors"}
    with pytest.raises(UnsupportedFeatureError, match="search exactly"):
        opened.why_not(VectorQuery(vectors=query, k=5, batched=True), order[-1])
