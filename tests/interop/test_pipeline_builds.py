"""Indices built by tasks answer as those built in process, whatever happens meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pytest

import lance_core
from lance_core.errors import InvalidRequestError, StoreUnavailableError
from lance_core.operations.new_index import NewIndex
from pipeline.build import BuildIndex, BuildRequest
from pipeline.errors import StageFailedError
from pipeline.index_items import model_at
from pipeline.job import run_job
from pipeline.sample import TrainOptions
from pipeline.train import train_model
from tests.pipeline_stages import LocalStages, local_context
from tests.pipeline_tables import (
    Interrupted,
    coverage_of,
    exact,
    nearest,
    rows_of,
    theirs,
    vectors_of,
    write,
)
from tests.verified import verified

if TYPE_CHECKING:
    from pathlib import Path

    from lance_core.dataset import Dataset

pytestmark = pytest.mark.interop

NUM_ROWS = 3200
QUERIES = vectors_of(range(5000, 5020))
PQ = NewIndex("v_idx", "v", "IVF_PQ", {"num_partitions": 4, "num_sub_vectors": 8})
FLAT = NewIndex("v_idx", "v", "IVF_FLAT", {"num_partitions": 4})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Sixteen fragments of 200 rows."""
    write(tmp_path / "t.lance", range(NUM_ROWS), 200)
    return tmp_path / "t.lance"


def build(
    path: Path,
    index: NewIndex,
    *,
    stages: LocalStages | None = None,
    job_id: Any = None,
    **how: Any,
) -> int:
    context = local_context(path, job_id=job_id, stages=stages)
    return run_job(context, BuildIndex(context, BuildRequest(index, **how)))


def opened(path: Path) -> Dataset:
    return lance_core.open_dataset(path)


def test_eight_segments_merged_to_two_answer_as_one_built_in_process(path: Path) -> None:
    trainer, stages = local_context(path), LocalStages()
    trained = train_model(trainer, PQ)
    write(path.with_name("alone.lance"), range(NUM_ROWS), 200)
    alone = opened(path.with_name("alone.lance"))
    model = model_at(trained.uri or "", None)
    alone.commit_segments("v_idx", [alone.build_segment(PQ, model=model)])
    version = build(path, PQ, stages=stages, model=trained.uri, num_segments=8, merge_to_rows=1600)
    assert version == 2
    assert stages.ran == [("build-index", 8), ("merge", 2)]
    assert coverage_of(path, "v_idx") == [[*range(8)], [*range(8, 16)]]
    for query in QUERIES:
        found = nearest(path, query)
        assert found == nearest(path.with_name("alone.lance"), query) == theirs(path, query)
    assert verified(path) == []


def test_recall_is_that_of_an_index_of_one_segment_that_pylance_built(tmp_path: Path) -> None:
    ids, queries = range(10_000), vectors_of(range(50_000, 50_100))
    for name in ("ours", "peer"):
        write(tmp_path / name, ids, 1250)
    how: dict[str, Any] = {
        "num_partitions": 4,
        "num_sub_vectors": 16,
    }  # codes so good that chance counts little
    build(tmp_path / "ours", NewIndex("v_idx", "v", "IVF_PQ", how), num_segments=8)
    lance.dataset(str(tmp_path / "peer")).create_index("v", "IVF_PQ", **how)
    best = [exact(np.arange(10_000), query) for query in queries]
    recalls = []
    for name in ("ours", "peer"):
        found = [theirs(tmp_path / name, query, nprobes=3) for query in queries]
        hits = [len({*f} & {*b}) for f, b in zip(found, best, strict=True)]
        recalls.append(sum(hits) / (10 * len(queries)))
    assert recalls[0] >= recalls[1] - 0.01
    assert recalls[0] > 0.9


@pytest.mark.parametrize(
    ("index_type", "given"),
    [
        ("IVF_FLAT", {"metric": "cosine"}),
        ("IVF_SQ", {}),
        ("IVF_RQ", {"num_bits": 5, "rotation_type": "matrix"}),
        ("IVF_HNSW_FLAT", {"num_partitions": 1}),
        ("IVF_HNSW_SQ", {"num_partitions": 1, "m": 8, "ef_construction": 60}),
        ("IVF_HNSW_PQ", {"num_partitions": 1, "num_sub_vectors": 16}),
    ],
)
def test_segments_of_vectors_share_a_model_and_can_be_merged(
    path: Path, index_type: str, given: dict[str, object]
) -> None:
    build(path, NewIndex("v_idx", "v", index_type, given), num_segments=3, merge_to_rows=NUM_ROWS)
    assert coverage_of(path, "v_idx") == [[*range(16)]]
    metric = str(given.get("metric", "l2"))
    found = [nearest(path, query, metric=metric) for query in QUERIES]
    again = [theirs(path, query, metric=metric) for query in QUERIES]
    shared = [len({*a} & {*b}) for a, b in zip(found, again, strict=True)]
    assert np.mean(shared) >= 9.5
    assert lance.dataset(str(path)).describe_indices()[0].num_rows_indexed == NUM_ROWS


@pytest.mark.parametrize("index_type", ["BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER"])
def test_scalar_indices_are_built_and_merged(path: Path, index_type: str) -> None:
    build(path, NewIndex("p", "price", index_type), num_segments=4, merge_to_rows=1600)
    assert coverage_of(path, "p") == [[*range(8)], [*range(8, 16)]]
    for filtered in ("price = 11", "price > 90 and price < 93", "price is null"):
        expected = lance.dataset(str(path)).to_table(
            filter=filtered, columns=["id"], use_scalar_index=False
        )
        assert lance.dataset(str(path)).to_table(filter=filtered, columns=["id"]) == expected
        found = opened(path).scan(filter=filtered, columns=["id"]).read_all()
        assert found["id"].to_pylist() == expected["id"].to_pylist()


def test_texts_are_indexed_and_merged(path: Path) -> None:
    build(path, NewIndex("t", "text", "INVERTED"), num_segments=4, merge_to_rows=NUM_ROWS)
    assert coverage_of(path, "t") == [[*range(16)]]
    found = opened(path).search_text("quince n13", 5, columns=["id"])
    peer = lance.dataset(str(path)).to_table(
        full_text_query="quince n13", columns=["id", "_score"], limit=5
    )
    assert found["_score"].to_pylist() == peer["_score"].to_pylist()
    assert found["id"].to_pylist()[0] == peer["id"].to_pylist()[0] == 13


def test_an_index_of_words_in_parts_is_built(path: Path) -> None:
    build(path, NewIndex("t", "text", "NGRAM"), num_segments=2)
    found = opened(path).scan(filter="contains(text, 'n1234')", columns=["id"]).read_all()
    assert found["id"].to_pylist() == [1234]


def test_only_some_fragments_are_covered_and_the_others_are_searched_too(path: Path) -> None:
    build(path, FLAT, fragments=(3, 4, 9), num_segments=2)
    assert coverage_of(path, "v_idx") == [[3, 4, 9]]
    for query in QUERIES:
        assert nearest(path, query) == exact(np.arange(NUM_ROWS), query)


def test_what_is_covered_is_not_built_again(path: Path) -> None:
    build(path, NewIndex("p", "price", "BTREE"), fragments=tuple(range(10)))
    stages = LocalStages()
    assert build(path, NewIndex("p", "price", "BTREE"), stages=stages) == 3
    assert coverage_of(path, "p") == [[*range(10)], [*range(10, 16)]]
    assert build(path, NewIndex("p", "price", "BTREE"), stages=stages) == 3  # nothing to do
    assert stages.ran == [("build-index", 1)]


def test_an_index_is_replaced_by_one_of_another_kind(path: Path) -> None:
    build(path, NewIndex("p", "price", "BTREE"))
    build(path, NewIndex("p", "price", "BITMAP"), replace=True, num_segments=2, merge_to_rows=0)
    (index,) = lance.dataset(str(path)).describe_indices()
    assert index.index_type.upper() == "BITMAP"
    assert coverage_of(path, "p") == [[*range(8)], [*range(8, 16)]]
    with pytest.raises(InvalidRequestError, match="another column"):
        build(path, NewIndex("p", "id", "BTREE"), replace=True)


def test_models_of_segments_may_be_independent(path: Path) -> None:
    build(path, PQ, is_independent=True, num_segments=4, merge_to_rows=NUM_ROWS)
    assert len(coverage_of(path, "v_idx")) == 4
    models = {model_text(path, number) for number in range(4)}
    assert len(models) == 4
    for query in QUERIES:
        assert theirs(path, query) == nearest(path, query)


def test_a_model_that_segments_cannot_share_is_refused(path: Path) -> None:
    trained = train_model(local_context(path), FLAT)
    with pytest.raises(StageFailedError, match="the model is of IVF_FLAT"):
        build(path, PQ, model=trained.uri)
    with pytest.raises(InvalidRequestError, match="no model at"):
        build(path, PQ, model=str(path.parent / "nowhere" / "model.bin"))
    with pytest.raises(InvalidRequestError, match="not both"):
        BuildRequest(PQ, model=trained.uri, is_independent=True)
    build(path, FLAT, fragments=(0,))
    with pytest.raises(InvalidRequestError, match="refresh-index"):
        build(path, FLAT)


def test_an_index_of_too_few_vectors_waits_for_more(tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    write(path, range(100), 30)
    build(path, PQ, num_segments=3)
    assert coverage_of(path, "v_idx") == [[]]
    assert theirs(path, QUERIES[0]) == nearest(path, QUERIES[0])
    assert lance.dataset(str(path)).describe_indices()[0].name == "v_idx"


def test_a_dataset_without_rows_gets_an_index(tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    lance_core.write_dataset(path, rows_of(range(0)))
    assert build(path, NewIndex("p", "price", "BTREE")) == 2
    assert [each.name for each in lance.dataset(str(path)).describe_indices()] == ["p"]


def test_a_commit_says_which_job_it_is_of_and_what_is_covered(path: Path) -> None:
    version = build(path, PQ, job_id="nightly", num_segments=4)
    transaction = lance.dataset(str(path)).read_transaction(version)
    assert transaction is not None
    assert transaction.transaction_properties == {
        "pipeline.job_id": "nightly",
        "pipeline.kind": "build-index",
        "pipeline.item_count": "4",
    }
    assert opened(path).version == build(path, PQ, job_id="nightly", num_segments=4)


def test_a_job_goes_on_where_it_ended(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stages = Interrupted(merge=raising)
    how: dict[str, Any] = {"job_id": "j", "num_segments": 4, "merge_to_rows": 1600}
    with pytest.raises(ConnectionError):
        build(path, PQ, stages=stages, **how)
    again = LocalStages()
    assert build(path, PQ, stages=again, **how) == 2
    assert again.ran == []  # segments, and what they were merged into, were there
    assert coverage_of(path, "v_idx") == [[*range(8)], [*range(8, 16)]]


def test_segments_whose_files_are_gone_are_built_again(path: Path) -> None:
    with pytest.raises(ConnectionError):
        build(path, PQ, stages=Interrupted(build_index=raising), job_id="j", num_segments=4)
    folders = sorted(path.joinpath("_indices").iterdir())
    assert len(folders) == 4
    folders[1].joinpath("auxiliary.idx").unlink()
    again = LocalStages()
    build(path, PQ, stages=again, job_id="j", num_segments=4)
    assert again.ran[0] == ("build-index", 1)
    assert nearest(path, QUERIES[0]) == theirs(path, QUERIES[0])


def test_a_job_whose_commit_was_not_heard_of_is_not_done_twice(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = BuildIndex.commit

    def lost(self: BuildIndex, *given: Any) -> int:
        real(self, *given)
        raise StoreUnavailableError("no answer")

    monkeypatch.setattr(BuildIndex, "commit", lost)
    assert build(path, PQ, job_id="j") == 2
    monkeypatch.undo()
    assert build(path, PQ, job_id="j") == 2
    assert opened(path).version == 2


def test_a_second_driver_finds_the_commit_of_the_first(path: Path) -> None:
    context = local_context(path, job_id="j")
    job = BuildIndex(context, BuildRequest(FLAT, num_segments=2))
    assert run_job(context, job) == 2
    write(path, range(NUM_ROWS, NUM_ROWS + 10), 10)
    results = list(context.journal.recorded().values())
    properties = {"pipeline.job_id": "j"}
    assert job.commit(context.open(1), results, properties) == 2
    assert opened(path).version == 3


def test_vectors_are_neither_sent_to_tasks_nor_back(path: Path) -> None:
    class Weighed(LocalStages):
        def run(self, name: str, items: Any, *given: Any, **options: Any) -> list[bytes]:
            results = super().run(name, items, *given, **options)
            sizes.update((name, len(a), len(b)) for a, b in zip(items, results, strict=True))
            return results

    sizes: set[tuple[str, int, int]] = set()
    how = TrainOptions(mode="distributed")
    build(path, FLAT, stages=Weighed(), train=how, num_segments=2, merge_to_rows=NUM_ROWS)
    assert {name for name, _, _ in sizes} == {"sample", "build-index", "merge"}
    assert max(max(sent, returned) for _, sent, returned in sizes) < 2000  # of 100 KB of vectors


def raising() -> None:
    raise ConnectionError("the driver lost its cluster")


def model_text(path: Path, number: int) -> bytes:
    segment = sorted(path.joinpath("_indices").iterdir())[number]
    return segment.joinpath("index.idx").read_bytes()
