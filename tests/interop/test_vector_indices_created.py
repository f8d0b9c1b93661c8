"""Vector indices that we create: what is refused, replaced, built in pieces and built again."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import lance
import numpy as np
import pytest

import lance_core
from lance_core.errors import InvalidRequestError
from lance_core.index.vector.build import budget
from lance_core.index.vector.build.same_model import same_model
from lance_core.index.vector.build.stored_model import stored_model
from lance_core.operations.build_segment import build_segment
from lance_core.operations.commit_segments import commit_segments, segments_of
from lance_core.operations.merge_segments import merge_segments
from lance_core.operations.new_index import NewIndex
from lance_core.operations.train_model import train_model
from tests.committed import opened
from tests.multivector_tables import draw_queries, write_lists
from tests.neighbour_checks import assert_same_neighbours
from tests.vector_matrix import KINDS
from tests.vector_upkeep import (
    NUM_MORE,
    NUM_ROWS,
    check,
    compact,
    coverage,
    create,
    index_type,
    insert,
    live_ids,
    opened_segments,
    recall,
    stored_ids,
    table,
)

if TYPE_CHECKING:
    from pathlib import Path

    from lance_core.proto import table_pb2

pytestmark = pytest.mark.interop

METRICS = ("l2", "cosine", "dot")
SESSION = lance_core.Session()


def test_segments_built_apart_by_one_model_are_committed_as_one_index(tmp_path: Path) -> None:
    path = tmp_path / "t"
    insert(path, 0, NUM_ROWS)
    insert(path, 5000, NUM_MORE)
    index = NewIndex("v_idx", "v", "IVF_PQ", {"num_partitions": 4, "num_sub_vectors": 8})
    model = train_model(SESSION.files, opened(path), index)
    sent = pickle.loads(pickle.dumps(model))  # noqa: S301
    built = [build_segment(SESSION.files, opened(path), index, [n], model=sent) for n in range(3)]
    commit_segments(opened(path), "v_idx", pickle.loads(pickle.dumps(built)))  # noqa: S301
    assert coverage(path) == [[0], [1], [2]]
    assert stored_ids(path) == live_ids(path)
    check(path, "IVF_PQ", "l2")
    lance.dataset(str(path)).optimize.optimize_indices(num_indices_to_merge=3)
    assert coverage(path) == [[0, 1, 2]]
    check(path, "IVF_PQ", "l2")


@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_PQ 4 bit", "IVF_RQ 5 bit", "IVF_HNSW_SQ"])
def test_segments_of_one_model_are_merged_without_the_rows(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "LEAST_BYTES", 1)
    monkeypatch.setattr(budget, "LEAST_GRAPH_BYTES", 1)
    path = tmp_path / "t"
    insert(path, 0, NUM_ROWS)
    insert(path, 5000, NUM_MORE)
    given = {"num_partitions": 3, "metric": "cosine", **KINDS[kind]}
    index = NewIndex("v_idx", "v", index_type(kind), given)
    model = train_model(SESSION.files, opened(path), index)
    built = [build_segment(SESSION.files, opened(path), index, [n], model=model) for n in range(3)]
    commit_segments(opened(path), "v_idx", built[:2])
    lance.dataset(str(path)).delete("id % 5 = 2")
    segments = [*segments_of(opened(path), "v_idx"), built[2]]
    merged = merge_segments(SESSION.files, opened(path), segments, memory_bytes=200_000)
    commit_segments(opened(path), "v_idx", [merged])
    assert coverage(path) == [[0, 1, 2]]
    assert stored_ids(path) == live_ids(path)
    check(path, kind, "cosine")


def test_segments_of_several_models_are_not_merged_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "t"
    insert(path, 0, NUM_ROWS)
    index = NewIndex("v_idx", "v", "IVF_SQ", {"num_partitions": 3})
    built = [build_segment(SESSION.files, opened(path), index, [n]) for n in range(2)]
    with pytest.raises(InvalidRequestError, match="several models"):
        merge_segments(SESSION.files, opened(path), built)
    assert len({each.parent for each in path.glob("_indices/*/*")}) == 2


def test_models_of_other_indices_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t"
    insert(path, 0, 400)
    snapshot = opened(path)
    flat = train_model(SESSION.files, snapshot, NewIndex("i", "v", "IVF_FLAT"))
    for index, message in (
        (NewIndex("i", "v", "IVF_SQ"), "of IVF_FLAT l2 float 32, the index of IVF_SQ l2"),
        (NewIndex("i", "v", "IVF_FLAT", {"metric": "dot"}), "IVF_FLAT dot"),
        (NewIndex("i", "id", "BTREE"), "has no model"),
    ):
        with pytest.raises(InvalidRequestError, match=message):
            build_segment(SESSION.files, snapshot, index, model=flat)
    with pytest.raises(InvalidRequestError, match="needs no model"):
        train_model(SESSION.files, snapshot, NewIndex("i", "id", "BTREE"))
    with pytest.raises(InvalidRequestError, match=r"no fragments \[9\]"):
        train_model(SESSION.files, snapshot, NewIndex("i", "v", "IVF_FLAT"), [9])


def test_an_index_is_replaced_only_where_that_was_meant(tmp_path: Path) -> None:
    path = tmp_path / "t"
    insert(path, 0, 400)
    create(path, "IVF_FLAT", "l2")
    with pytest.raises(InvalidRequestError, match="already"):
        table(path).create_index("v", "IVF_SQ", replace=False)
    with pytest.raises(InvalidRequestError, match="another column"):
        table(path).create_index("id", "BTREE", "v_idx")
    create(path, "IVF_SQ", "cosine")
    assert [each.kind for each in opened_segments(path)] == ["IVF_SQ"]
    check(path, "IVF_SQ", "cosine")


def test_creating_an_index_while_rows_are_moved_builds_it_anew(tmp_path: Path) -> None:
    path = tmp_path / "t"
    insert(path, 0, NUM_ROWS)
    before = table(path)
    lance.dataset(str(path)).delete("id % 3 = 1")
    compact(path)
    seen: list[tuple[int, int]] = []
    before.create_index("v", "IVF_FLAT", num_partitions=4, progress=lambda *n: seen.append(n))
    assert {total for _, total in seen} == {1000}
    assert seen[-1] == (1000, 1000)
    assert len({each.parent for each in path.glob("_indices/*/*")}) == 1
    assert stored_ids(path) == live_ids(path)
    check(path, "IVF_FLAT", "l2")


def test_with_little_memory_the_same_rows_are_indexed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "LEAST_BYTES", 1)
    path = tmp_path / "t"
    insert(path, 0, NUM_ROWS)
    table(path).create_index("v", "IVF_FLAT", num_partitions=4, memory_bytes=100_000)
    assert stored_ids(path) == live_ids(path)
    check(path, "IVF_FLAT", "l2")


@pytest.mark.parametrize(("kind", "metric"), [("IVF_PQ", "cosine"), ("IVF_RQ 5 bit", "dot")])
def test_our_index_finds_as_many_of_the_nearest_as_that_of_pylance(
    tmp_path: Path, kind: str, metric: str
) -> None:
    found = []
    for writer in ("ours", "theirs"):
        path = tmp_path / writer
        insert(path, 0, NUM_ROWS)
        create(path, kind, metric, writer)
        found.append(recall(path, metric, 60))
    assert found[0] >= found[1] - 0.05


def test_segments_whose_distances_do_not_compare_are_no_index(tmp_path: Path) -> None:
    path = tmp_path / "t"
    insert(path, 0, NUM_ROWS)
    insert(path, 5000, NUM_MORE)

    def build(kind: str, metric: str, fragment: int) -> table_pb2.IndexMetadata:
        index = NewIndex("v_idx", "v", kind, {"metric": metric, "num_partitions": 2})
        return build_segment(SESSION.files, opened(path), index, [fragment])

    first = build("IVF_FLAT", "l2", 0)
    for other in (build("IVF_FLAT", "dot", 1), build("IVF_SQ", "l2", 1)):
        with pytest.raises(InvalidRequestError, match="by one type and metric"):
            commit_segments(opened(path), "v_idx", [first, other])
    commit_segments(opened(path), "v_idx", [first, build("IVF_FLAT", "l2", 1)])
    with pytest.raises(InvalidRequestError, match="of another kind"):
        commit_segments(opened(path), "v_idx", [build("IVF_HNSW_FLAT", "l2", 2)])
    others = [build("IVF_SQ", "dot", number) for number in range(2)]
    commit_segments(opened(path), "v_idx", others)  # in the place of all that there were
    check(path, "IVF_SQ", "dot")


@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_PQ", "IVF_RQ 5 bit", "IVF_HNSW_SQ"])
def test_lists_of_vectors_are_indexed_and_brought_up_to_date(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "t"
    vectors = write_lists(path, 700, seed=5)
    options = {"num_sub_vectors": 4} if kind == "IVF_PQ" else KINDS[kind]
    table(path).create_index("v", index_type(kind), num_partitions=3, **options)
    write_lists(path, 300, seed=6, first=700)
    table(path).delete("id % 7 = 1")
    table(path).optimize_indices()
    assert coverage(path) == [[0, 1, 2, 3]]
    rows = lance.dataset(str(path)).to_table(columns=["v"], with_row_id=True)
    lengths = rows["v"].combine_chunks().value_lengths().fill_null(0).to_numpy()
    assert stored_ids(path) == np.repeat(np.sort(rows["_rowid"].to_numpy()), lengths).tolist()
    for query in draw_queries(vectors, 3)[:3]:
        nearest = {"column": "v", "q": query, "k": 10, "nprobes": 3}
        expected = lance.dataset(str(path)).to_table(columns=["id", "_distance"], nearest=nearest)
        found = table(path).search(query, 10, columns=["id"], nprobes=3)
        assert_same_neighbours(found, expected, scale=1, tolerance=1e-3)


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_narrow_and_wide_floats_keep_their_codes(tmp_path: Path, dtype: type[np.generic]) -> None:
    path = tmp_path / "t"
    insert(path, 0, NUM_ROWS, dtype)
    create(path, "IVF_PQ", "l2")
    (before,) = opened_segments(path)
    insert(path, 5000, NUM_MORE, dtype)
    table(path).optimize_indices(num_segments_to_merge=0)
    table(path).optimize_indices(num_segments_to_merge=2)
    (after,) = opened_segments(path)
    assert same_model(stored_model(before), stored_model(after))
    assert stored_ids(path) == live_ids(path)


def test_a_damaged_segment_is_built_anew_as_the_manifest_tells(tmp_path: Path) -> None:
    path = tmp_path / "t"
    insert(path, 0, NUM_ROWS)
    create(path, "IVF_HNSW_SQ", "cosine", m=10)
    (file,) = path.glob("_indices/*/auxiliary.idx")
    file.write_bytes(file.read_bytes()[:-100])
    insert(path, 5000, NUM_MORE)
    table(path).optimize_indices()
    (segment,) = opened_segments(path)
    graph = stored_model(segment).graph
    assert graph is not None
    assert graph.max_connections == 10
    assert stored_ids(path) == live_ids(path)
    check(path, "IVF_HNSW_SQ", "cosine")
