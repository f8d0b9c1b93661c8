"""Hybrid queries over files of pylance, against both queries run by themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance.query import DocumentGranularity

from lance_core import open_dataset, write_dataset
from lance_core.errors import (
    CancelledByClientError,
    DeadlineExceededError,
    InvalidRequestError,
    UnknownColumnError,
)
from lance_core.index.text.queries import MatchQuery
from lance_core.operations import given_rows
from lance_core.query import row_filter
from lance_core.query.deadline import Deadline
from lance_core.query.fusion import RRF, WeightedFusion
from lance_core.query.hybrid_request import HybridQuery
from lance_core.query.indexed_filter import ask_version
from lance_core.query.passing_rows import PassingRows
from lance_core.query.request import VectorQuery
from lance_core.query.residency import NotResidentError
from lance_core.query.text_request import TextQuery
from tests.text_dataset import VECTORS, write_text_dataset

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

QUERY = VECTORS[123] + np.float32(0.01)
WORDS = MatchQuery("river newt", "text")
TOLD = ["_distance", "_score", "_relevance_score"]


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> Any:
    uri = tmp_path_factory.mktemp("hybrid") / "t.lance"
    write_text_dataset(uri)
    return uri


@pytest.fixture(scope="module")
def dataset(uri: Path) -> Any:
    return open_dataset(uri)


def request(**options: Any) -> HybridQuery:
    vector = VectorQuery(np.atleast_2d(QUERY), use_index=False)
    return HybridQuery(vector, TextQuery(WORDS), **options)


def branches(dataset: Any, k: int | None, **options: Any) -> list[dict[int, tuple[int, float]]]:
    """Return of each query its rows, with their places from 1 and their distances or scores."""
    near = dataset.search(QUERY, k, columns=["id"], use_index=False, **options)
    fitting = dataset.search_text(WORDS, k, columns=["id"], **options)
    return [
        {
            row: (place, value)
            for place, (row, value) in enumerate(
                zip(found["id"].to_pylist(), found[name].to_pylist(), strict=True), 1
            )
        }
        for found, name in [(near, "_distance"), (fitting, "_score")]
    ]


def hybrid(dataset: Any, k: int | None, **options: Any) -> Any:
    return dataset.search_hybrid(QUERY, WORDS, k, columns=["id"], use_index=False, **options)


def check(found: pa.Table, parts: Any, relevance: Any) -> None:
    """Check rows, what is told of them, and their order; ids are in the order of addresses."""
    near, fitting = parts
    every = {row: np.float32(relevance(row)) for row in near.keys() | fitting.keys()}
    order = sorted(every, key=lambda row: (-every[row], row))
    assert found["id"].to_pylist() == order[: found.num_rows]
    for row in found.to_pylist():
        assert row["_relevance_score"] == every[row["id"]]
        assert row["_distance"] == near.get(row["id"], (0, None))[1]
        assert row["_score"] == fitting.get(row["id"], (0, None))[1]


@pytest.mark.parametrize("constant", [60, 1])
def test_reciprocal_ranks_are_added_up(dataset: Any, constant: int) -> None:
    near, fitting = branches(dataset, 25)
    found = hybrid(dataset, 25, fusion=RRF(constant))
    assert found.num_rows == 25

    def relevance(row: int) -> float:
        return sum(1 / (constant + part[row][0]) for part in (near, fitting) if row in part)

    check(found, (near, fitting), relevance)
    assert found.schema.names == ["id", *TOLD]
    assert all(found.schema.field(name).type == pa.float32() for name in TOLD)


def test_weights_count_distances_and_scores(dataset: Any) -> None:
    near, fitting = branches(dataset, None)
    distances = [value for _, value in near.values()]
    scores = [value for _, value in fitting.values()]

    def relevance(row: int) -> float:
        by_vector = (max(distances) - near[row][1]) / (max(distances) - min(distances))
        by_text = 0.0
        if row in fitting:
            by_text = (fitting[row][1] - min(scores)) / (max(scores) - min(scores))
        return 0.7 * by_vector + 0.3 * by_text

    check(
        hybrid(dataset, None, fusion=WeightedFusion(0.7, 0.3)),
        (near, fitting),
        relevance,
    )


def test_an_offset_skips_rows_of_the_one_answer(dataset: Any) -> None:
    whole, part = hybrid(dataset, 12), hybrid(dataset, 7, offset=5)
    assert part["id"].to_pylist() == whole["id"].to_pylist()[5:]
    assert hybrid(dataset, 5, offset=5000).num_rows == 0


def test_a_filter_counts_for_both(dataset: Any) -> None:
    options = {"filter": "id >= $low", "params": {"low": 300}}
    near, fitting = branches(dataset, 10, **options)
    found = hybrid(dataset, 10, **options)
    assert set(found["id"].to_pylist()) <= near.keys() | fitting.keys()
    assert min(found["id"].to_pylist()) >= 300
    after = hybrid(dataset, 10, **options, prefilter=False)
    assert 0 < after.num_rows < 10


def test_rows_are_judged_once_for_both(uri: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    judged: list[int] = []
    masks = PassingRows.masks

    def ask(*args: Any) -> Any:
        asked.append(args)
        return ask_version(*args)

    def judge(rows: PassingRows, fragment_ids: Any, deadline: Any) -> Any:
        judged.extend(fragment_ids)
        return masks(rows, fragment_ids, deadline)

    monkeypatch.setattr(row_filter, "ask_version", ask)
    monkeypatch.setattr(PassingRows, "masks", judge)
    cold = open_dataset(uri)
    assert hybrid(cold, 10, filter="id >= 300").num_rows == 10
    assert len(asked) == 1
    assert sorted(judged) == sorted(cold.snapshot.fragments_by_id)


def test_columns_may_be_computed_of_what_is_told(dataset: Any) -> None:
    columns = {"both": "_distance IS NOT NULL AND _score IS NOT NULL", "name": "title"}
    found = dataset.search_hybrid(
        QUERY, WORDS, 20, columns=columns, use_index=False, with_row_id=True
    )
    assert found.schema.names == ["both", "name", *TOLD, "_rowid"]
    told = [None not in (row["_distance"], row["_score"]) for row in found.to_pylist()]
    assert found["both"].to_pylist() == told
    assert len(set(told)) == 2
    named = dataset.search_hybrid(QUERY, WORDS, 3, columns=["_score", "id"])
    assert named.schema.names == ["_score", "id", "_distance", "_relevance_score"]


def test_a_row_may_stand_for_the_vector(dataset: Any) -> None:
    row_id = dataset.scan(["id"], filter="id = 123", with_row_id=True).read_all()["_rowid"][0]
    found = dataset.search_hybrid(None, WORDS, 10, row_id=row_id.as_py(), columns=["id"])
    near = dataset.search(row_ids=row_id.as_py(), k=10, columns=["id"])
    assert set(near["id"].to_pylist()) & set(found["id"].to_pylist())


def test_nothing_of_one_query_leaves_the_other(dataset: Any) -> None:
    platypus = MatchQuery("platypus", "text")
    found = dataset.search_hybrid(QUERY, platypus, 4, columns=["id"], use_index=False)
    assert found["id"].to_pylist() == [*branches(dataset, 4)[0]]
    assert found["_score"].null_count == 4
    none = dataset.search_hybrid(QUERY, WORDS, 4, filter="id < 0")
    assert none.num_rows == 0
    assert none.schema.names == [*dataset.schema.names, *TOLD]


def test_stable_row_ids_and_moved_rows_give_the_same_answer(uri: Path, tmp_path: Path) -> None:
    table = lance.dataset(str(uri)).to_table()
    path = str(tmp_path / "stable.lance")
    moved = lance.write_dataset(table, path, max_rows_per_file=90, enable_stable_row_ids=True)
    moved.create_scalar_index("text", "INVERTED")
    moved.delete("id % 9 = 4")
    moved.optimize.compact_files(target_rows_per_fragment=200)
    ours = open_dataset(path)
    near, fitting = branches(ours, 20)
    found = hybrid(ours, 20, with_row_id=True)
    check(found, (near, fitting), lambda row: sum(
        1 / (60 + part[row][0]) for part in (near, fitting) if row in part
    ))  # fmt: skip
    ids = lance.dataset(path).to_table(columns=["id"], with_row_id=True).to_pylist()
    known = {row["id"]: row["_rowid"] for row in ids}
    assert [known[each] for each in found["id"].to_pylist()] == found["_rowid"].to_pylist()


def test_the_plan_shows_both_queries(dataset: Any) -> None:
    plan = dataset.explain_plan(request(fusion=WeightedFusion(2, 1))).to_dict()["plan"]
    assert (plan["node"], plan["settings"]["columns"][-3:]) == ("Take", TOLD)
    (fuse,) = plan["inputs"]
    assert fuse["node"] == "Fuse"
    assert fuse["settings"] == {
        "fusion": "weighted", "fusion_vector": 2, "fusion_text": 1, "offset": 0, "k": 10
    }  # fmt: skip
    lines = dataset.explain(request()).splitlines()
    assert "Fuse: fusion=rrf, fusion_k=60, offset=0, k=10" in lines[1]
    assert "MergeByDistance" in lines[3]
    assert "text_idx" in "\n".join(lines)


def test_what_was_done_is_measured_in_both_queries(dataset: Any) -> None:
    report = dataset.analyze_plan(request()).to_dict()
    (fuse,) = report["plan"]["inputs"]
    both = fuse["inputs"]
    assert fuse["measured"]["rows"] == 10
    assert [each["measured"]["rows"] for each in both] == [10, 10]
    assert report["stats"]["plan"] == "hybrid"
    near = dataset.run(request().nearest).stats
    fitting = dataset.run(request().matching).stats
    total = near.rows_scanned_flat + fitting.rows_scanned_flat
    assert report["stats"]["rows_scanned_flat"] == total > 0


def test_an_answer_in_memory_is_found_without_waiting(uri: Path) -> None:
    fresh = open_dataset(uri)
    vector = VectorQuery(np.atleast_2d(QUERY), fast_search=True)
    indexed = HybridQuery(vector, TextQuery(WORDS, fast_search=True))
    with pytest.raises(NotResidentError):
        fresh.run(indexed, resident_only=True)
    whole = fresh.run(indexed).table
    assert fresh.run(indexed, resident_only=True).table == whole


def test_a_deadline_and_a_caller_who_leaves_end_the_work(dataset: Any) -> None:
    with pytest.raises(DeadlineExceededError):
        dataset.run(request(), Deadline.after(-1))
    with pytest.raises(CancelledByClientError):
        dataset.run(request(), Deadline(None, lambda: True))


def test_why_the_answer_ends_is_told(dataset: Any) -> None:
    assert dataset.run(request(k=3)).stats.stop_reason == "complete"
    assert dataset.run(request(k=None)).stats.stop_reason == "no_more_rows"
    vector = VectorQuery(np.atleast_2d(QUERY), min_probes=1, max_probes=1, fast_search=True)
    few = HybridQuery(vector, TextQuery(MatchQuery("platypus", "text")), k=400)
    assert dataset.run(few).stats.stop_reason == "probe_limit"


@pytest.mark.parametrize(
    ("error", "said", "ask"),
    [
        (UnknownColumnError, "nope", lambda d: d.search_hybrid(QUERY, WORDS, columns=["nope"])),
        (
            InvalidRequestError,
            "2 query vectors are given; a hybrid query has one",
            lambda d: d.search_hybrid(VECTORS[:2], WORDS),
        ),
        (InvalidRequestError, "give either", lambda d: d.search_hybrid(None, WORDS)),
        (InvalidRequestError, "give either", lambda d: d.search_hybrid(QUERY, WORDS, row_id=1)),
        (InvalidRequestError, "k is 0", lambda d: d.search_hybrid(QUERY, WORDS, 0)),
        (
            InvalidRequestError,
            "offset is -1",
            lambda d: d.search_hybrid(QUERY, WORDS, offset=-1),
        ),
    ],
    ids=["column", "vectors", "nothing", "both", "k", "offset"],
)
def test_what_does_not_fit_is_refused(dataset: Any, error: Any, said: str, ask: Any) -> None:
    with pytest.raises(error, match=said):
        ask(dataset)


@pytest.mark.parametrize("name", [*TOLD, "_rowaddr"])
def test_a_column_of_a_name_that_the_answer_needs_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(given_rows, "RESERVED_NAMES", frozenset())  # as older writers had none
    table = pa.table(
        {
            name: pa.array([1.0, 2.0], pa.float32()),
            "text": ["river", "newt"],
            "vec": pa.FixedSizeListArray.from_arrays(pa.array(VECTORS[:2].ravel()), 8),
        }
    )
    ours = write_dataset(tmp_path / "t.lance", table)
    with pytest.raises(InvalidRequestError, match=f'a column "{name}" of its own'):
        ours.search_hybrid(QUERY, WORDS)


def test_several_vectors_are_one_query_where_rows_hold_lists(tmp_path: Path) -> None:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(VECTORS[:60].ravel()), 8)
    lists = pa.ListArray.from_arrays(pa.array(range(0, 63, 3), pa.int32()), vectors)
    texts = [f"row {'river' if row % 2 else 'newt'}" for row in range(20)]
    table = pa.table({"id": range(20), "text": texts, "vec": lists})
    lance.write_dataset(table, str(tmp_path / "t.lance"))
    ours = open_dataset(tmp_path / "t.lance")
    found = ours.search_hybrid(VECTORS[6:8], MatchQuery("river", "text"), 20, metric="cosine")
    near = ours.search(VECTORS[6:8], 20, metric="cosine", columns=["id"])
    expected = dict(zip(near["id"].to_pylist(), near["_distance"].to_pylist(), strict=True))
    assert (
        dict(zip(found["id"].to_pylist(), found["_distance"].to_pylist(), strict=True)) == expected
    )
    assert found["_score"].null_count == 10


def test_a_row_of_which_several_elements_are_found_counts_once(tmp_path: Path) -> None:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(VECTORS[:30].ravel()), 8)
    tags = [["river newt", "river", "heron"][: 1 + row % 3] for row in range(30)]
    path = str(tmp_path / "t.lance")
    theirs = lance.write_dataset(pa.table({"id": range(30), "tags": tags, "vec": vectors}), path)
    theirs.create_scalar_index(
        "tags", "INVERTED", document_granularity=DocumentGranularity.LIST_ELEMENT
    )
    ours = open_dataset(path)
    query = MatchQuery("river", "tags")
    alone = ours.search_text(query, None, columns=["id"])
    assert len(set(alone["id"].to_pylist())) < alone.num_rows
    found = ours.search_hybrid(VECTORS[0], query, None, columns=["id"], fusion=WeightedFusion(0, 1))
    assert sorted(found["id"].to_pylist()) == list(range(30))
    best = alone.group_by("id").aggregate([("_score", "max")]).to_pydict()
    expected = dict(zip(best["id"], best["_score_max"], strict=True))
    assert {row["id"]: row["_score"] for row in found.to_pylist()} == expected
