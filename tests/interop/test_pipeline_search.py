"""Batches of queries, answered over tables of pylance without Spark: by the same functions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import lance_core
import pipeline.search_plan
import pipeline.worker
from lance_core.errors import InvalidRequestError, StoreUnavailableError
from lance_core.query.session import Session
from pipeline.cli.main import app
from pipeline.errors import StageFailedError
from pipeline.journal import Journal
from pipeline.query_files import query_files
from pipeline.search import BatchAnswer, QuerySource, batch_search
from pipeline.search_output import LanceOutput, ParquetOutput
from pipeline.search_queries import load_block, store_queries
from pipeline.search_work import BatchSearch
from tests.multivector_tables import draw_queries, write_lists
from tests.pipeline_stages import LocalStages, local_context
from tests.vector_matrix import TableCase, build_table
from tests.verified import verified

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from numpy.typing import NDArray

    from pipeline.search_plan import PlanName
    from pipeline.stages import Worker

pytestmark = pytest.mark.interop


@pytest.fixture(autouse=True)
def searched_by_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """Search through filters though few rows pass, and in many pieces, as large tables are."""
    session = Session(few_rows=0)
    monkeypatch.setattr(pipeline.search_plan, "_WORTH", 500)
    monkeypatch.setattr(pipeline.worker, "_session", lambda: session)


def source(vectors: NDArray[np.generic]) -> QuerySource:
    lists = pa.array(vectors.astype(np.float32).tolist(), pa.list_(pa.float32()))
    return QuerySource("some queries", lambda: [pa.record_batch({"q": lists})])


def expected(
    dataset: lance_core.Dataset, vectors: Iterable[NDArray[np.generic]], search: BatchSearch
) -> pa.Table:
    """Return what single searches find, one after the other."""
    tables = []
    for number, vector in enumerate(vectors):
        found = dataset.search(
            vector.astype(np.float32),
            search.k,
            columns=list(search.columns),
            nprobes=search.nprobes,
            refine_factor=search.refine_factor,
            filter=search.filter,
            metric=search.metric,
        )
        count = found.num_rows
        tables.append(
            pa.table(
                {
                    "query_id": pa.array([number] * count, pa.int64()),
                    "rank": pa.array(range(count), pa.int32()),
                    **dict(zip(found.column_names, found.columns, strict=True)),
                }
            )
        )
    return pa.concat_tables(tables)


def answers(folder: Path) -> pa.Table:
    tables = [pq.read_table(each) for each in sorted(folder.glob("*.parquet"))]
    return pa.concat_tables(tables)


PLANS: tuple[PlanName, ...] = ("A", "B")
CASES = [
    TableCase("IVF_PQ", "l2", 3, "appended", "2.2"),
    TableCase("IVF_FLAT", "cosine", 1, "deferred", "2.1"),
    TableCase("IVF_RQ 5 bit", "l2", 3, "deleted", "2.2"),
    TableCase("IVF_HNSW_SQ", "dot", 1, "appended", "2.0"),
    TableCase("IVF_FLAT bytes", "hamming", 1, "appended", "2.2"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.kind} {case.state}")
def test_both_plans_answer_as_single_searches(tmp_path: Path, case: TableCase) -> None:
    table = build_table(tmp_path / "t.lance", case)
    vectors = table.draw(25)
    dataset = lance_core.open_dataset(str(table.path), session=Session(few_rows=0))
    for number, (text, nprobes, refine) in enumerate(
        [(None, 2, 1), ("u < 300", 20, None), ("u < 20", None, 3)]
    ):
        search = BatchSearch(
            k=7, nprobes=nprobes, refine_factor=refine, filter=text, columns=("_rowid", "id")
        )
        wanted = expected(dataset, vectors, search)
        for plan in PLANS:
            out = tmp_path / f"out-{plan}-{number}"
            stages = LocalStages()
            done = batch_search(
                local_context(table.path, stages=stages),
                search,
                source(vectors),
                ParquetOutput(str(out)),
                plan=plan,
                query_block=10,
            )
            assert (done.version, done.plan, done.num_queries) == (dataset.version, plan, 25)
            found = answers(out)
            assert found.column_names == ["query_id", "rank", "_rowid", "id", "_distance"]
            assert found.cast(wanted.schema).equals(wanted), (text, nprobes, refine, plan)
            assert (out / "_SUCCESS").exists()
            if plan == "B" and "RQ" not in case.kind:
                assert dict(stages.ran)["scan"] > case.num_segments + 1


def test_without_an_index_rows_are_scanned_piece_by_piece(tmp_path: Path) -> None:
    vectors = np.random.default_rng(3).standard_normal((900, 8)).astype(np.float32)
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 8)
    path = tmp_path / "t.lance"
    lance.write_dataset(pa.table({"id": range(900), "v": column}), str(path), max_rows_per_file=300)
    lance.dataset(str(path)).delete("id % 3 = 0")
    dataset = lance_core.open_dataset(str(path))
    search = BatchSearch(k=5)
    out = tmp_path / "out"
    context = local_context(path)
    batch_search(context, search, source(vectors[:9]), ParquetOutput(str(out)), plan="B")
    assert [name for name, _ in context.stages.ran] == ["probe", "scan", "join"]  # type: ignore[attr-defined]
    wanted = expected(dataset, vectors[:9], search)
    assert answers(out).cast(wanted.schema).equals(wanted)


class FailingStages(LocalStages):
    """Lets a stage fail for good at its last item, until told otherwise."""

    def __init__(self, stage: str) -> None:
        super().__init__()
        self.stage: str | None = stage

    def run(self, name: str, items: Any, worker: Worker, *, weights: Any = None) -> list[bytes]:
        if name != self.stage:
            return super().run(name, items, worker, weights=weights)
        super().run(name, items[:-1], worker)
        raise StageFailedError(name, {len(items) - 1: "the machine burnt down"})


@pytest.mark.parametrize("stage", ["filter", "probe", "scan", "join"])
def test_a_batch_that_failed_goes_on_where_it_ended(tmp_path: Path, stage: str) -> None:
    table = build_table(tmp_path / "t.lance", TableCase("IVF_PQ", "l2", 3, "appended", "2.2"))
    vectors = table.draw(12)
    search = BatchSearch(k=7, filter="u < 500", columns=("id",))
    out = tmp_path / "out"
    stages = FailingStages(stage)

    def run() -> None:
        context = local_context(table.path, job_id="nightly", stages=stages)
        batch_search(
            context, search, source(vectors), ParquetOutput(str(out)), plan="B", query_block=5
        )

    with pytest.raises(StageFailedError, match="burnt down"):
        run()
    assert not (out / "_SUCCESS").exists()
    table.write(40)  # the version that was begun with is searched
    stages.stage = None
    stages.ran.clear()
    run()
    newest = lance_core.open_dataset(str(table.path)).version
    begun = lance_core.open_dataset(str(table.path), newest - 1, session=Session(few_rows=0))
    wanted = expected(begun, vectors, search)
    assert answers(out).cast(wanted.schema).equals(wanted)
    assert dict(stages.ran)[stage] == 1
    stages.ran.clear()
    run()  # done is done
    assert stages.ran == []


def test_answers_are_never_mixed(tmp_path: Path) -> None:
    table = build_table(tmp_path / "t.lance", TableCase("IVF_FLAT", "l2", 1, "appended", "2.2"))
    out = ParquetOutput(str(tmp_path / "out"))
    queries = source(table.draw(2))
    context = local_context(table.path, job_id="one")
    batch_search(context, BatchSearch(k=3), queries, out)
    with pytest.raises(InvalidRequestError, match="not empty"):
        batch_search(local_context(table.path), BatchSearch(k=3), queries, out)
    with pytest.raises(InvalidRequestError, match="begun with other k"):
        batch_search(context, BatchSearch(k=4), queries, out)


@pytest.mark.parametrize("kind", [ParquetOutput, LanceOutput])
def test_a_place_that_is_taken_is_told_before_any_work(tmp_path: Path, kind: Any) -> None:
    table = build_table(tmp_path / "t.lance", TableCase("IVF_FLAT", "l2", 1, "appended", "2.2"))
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder" / "below").mkdir(parents=True)
    (tmp_path / "folder" / "below" / "x").write_text("x")
    for name, message in (("file", "is a file"), ("folder/", "it has below/x")):
        stages = LocalStages()
        context = local_context(table.path, stages=stages)
        with pytest.raises(InvalidRequestError, match=message):
            batch_search(context, BatchSearch(), source(table.draw(2)), kind(str(tmp_path / name)))
        assert stages.ran == []


def test_no_rows_wanted_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="k is 0"):
        BatchSearch(k=0)


def test_what_does_not_fit_the_dataset_is_refused_before_any_work(tmp_path: Path) -> None:
    table = build_table(tmp_path / "t.lance", TableCase("IVF_FLAT", "l2", 1, "appended", "2.2"))
    out = ParquetOutput(str(tmp_path / "out"))
    for search in (
        BatchSearch(filter="nothing < 3"),
        BatchSearch(columns=("nothing",)),
        BatchSearch(column="id"),
        BatchSearch(metric="hamming"),
    ):
        context = local_context(table.path)
        with pytest.raises(InvalidRequestError):
            batch_search(context, search, source(table.draw(2)), out)
        assert context.stages.ran == []  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_HNSW_SQ"])
def test_queries_that_are_lists_of_vectors_answer_as_single_searches(
    tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "t.lance"
    vectors = write_lists(path, 400, seed=1)
    lance.dataset(path).create_index("v", kind, metric="cosine", num_partitions=4)
    write_lists(path, 60, seed=2, first=400)
    dataset = lance_core.open_dataset(str(path), session=Session(few_rows=0))
    search = BatchSearch(k=6, nprobes=3, filter="id % 3 != 0", columns=("id",))
    lists = [each for seed in range(5) for each in draw_queries(vectors, seed)]
    column = pa.array([each.tolist() for each in lists], pa.list_(pa.list_(pa.float32())))
    several = QuerySource("lists", lambda: [pa.record_batch({"q": column})])
    single = np.stack([each[0] for each in lists])
    for queries, asked in ((several, lists), (source(single), [row[None] for row in single])):
        out = tmp_path / queries.name
        done = batch_search(
            local_context(path), search, queries, ParquetOutput(str(out)), query_block=10
        )
        assert (done.plan, done.num_queries) == ("A", len(lists))
        wanted = expected(dataset, asked, search)
        assert answers(out).cast(wanted.schema).equals(wanted)


def test_lists_of_vectors_are_refused_where_rows_hold_one(tmp_path: Path) -> None:
    table = build_table(tmp_path / "t.lance", TableCase("IVF_FLAT", "l2", 1, "appended", "2.2"))
    lists = pa.array([[each.tolist()] for each in table.draw(2)], pa.list_(pa.list_(pa.float32())))
    queries = QuerySource("lists", lambda: [pa.record_batch({"q": lists})])
    context = local_context(table.path)
    with pytest.raises(InvalidRequestError, match='rows of column "v" hold one'):
        batch_search(context, BatchSearch(), queries, ParquetOutput(str(tmp_path / "out")))
    assert context.stages.ran == []  # type: ignore[attr-defined]


def test_answers_become_a_dataset_that_is_made_once(tmp_path: Path) -> None:
    table = build_table(tmp_path / "t.lance", TableCase("IVF_PQ", "l2", 3, "appended", "2.2"))
    vectors = table.draw(12)
    search = BatchSearch(k=7, columns=("_rowid", "id"))
    out = LanceOutput(str(tmp_path / "answers.lance"))

    def run() -> None:
        context = local_context(table.path, job_id="nightly")
        batch_search(context, search, source(vectors), out, plan="B", query_block=5)

    def die(self: Journal, version: int) -> None:
        raise StoreUnavailableError("the driver died before it could say that it is done")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Journal, "mark_committed", die)
        with pytest.raises(StoreUnavailableError):
            run()
    wanted = expected(lance_core.open_dataset(str(table.path)), vectors, search)
    for _ in range(2):
        run()
        dataset = lance.dataset(out.uri)
        assert dataset.version == 1
        transaction: Any = dataset.read_transaction(1)
        told = transaction.transaction_properties
        assert (told["pipeline.job_id"], told["pipeline.kind"]) == ("nightly", "search")
        found = dataset.to_table()
        assert found.column_names == ["query_id", "rank", "rowid", "id", "distance"]
        for name, stored in zip(found.column_names, wanted.column_names, strict=True):
            assert found[name].combine_chunks().equals(wanted[stored].combine_chunks()), name
    state = tmp_path / ".t.lance.pipeline" / "nightly"
    assert not [each for each in state.rglob("*") if each.suffix in (".arrow", ".npz")]
    assert verified(tmp_path / "answers.lance") == []
    with pytest.raises(InvalidRequestError, match="already"):
        batch_search(local_context(table.path), search, source(vectors), out)


@pytest.mark.parametrize("form", ["lance", "parquet", "folder", "jsonl", "arrow"])
def test_queries_are_read_of_datasets_and_files(tmp_path: Path, form: str) -> None:
    vectors = np.random.default_rng(4).standard_normal((11, 8)).astype(np.float32)
    rows = pa.table(
        {"v": vectors.astype(np.float64).tolist(), "name": [f"q{n}" for n in range(11)]}
    )
    place = tmp_path / f"queries.{form}"
    if form == "lance":
        lance.write_dataset(rows, str(place))
    elif form == "parquet":
        pq.write_table(rows, place, row_group_size=4)
    elif form == "folder":  # as Spark writes one
        place.mkdir()
        pq.write_table(rows.slice(0, 6), place / "part-0.parquet")
        pq.write_table(rows.slice(6), place / "part-1.parquet")
        (place / "_SUCCESS").touch()
    elif form == "jsonl":
        place.write_text("\n".join(json.dumps(each) for each in rows.to_pylist()))
    else:
        with pa.ipc.new_file(place, rows.schema) as writer:
            writer.write_table(rows)
    given = query_files(str(place), column="v", id_column="name")
    journal = Journal.of(str(tmp_path / "state"), "a")
    kept = store_queries(journal, given.batches(), 100, column="v", id_column="name")
    block = load_block(journal, 0)
    assert kept.num_queries == 11
    assert np.array_equal(block.vectors, vectors)
    assert block.ids.to_pylist() == rows["name"].to_pylist()


def test_a_dry_run_tells_the_plan_and_does_nothing(tmp_path: Path) -> None:
    table = build_table(tmp_path / "t.lance", TableCase("IVF_FLAT", "l2", 1, "appended", "2.2"))
    before = sorted(tmp_path.rglob("*"))
    context = local_context(table.path, dry_run=True)
    search, out = BatchSearch(filter="u < 3"), ParquetOutput(str(tmp_path / "out"))
    told = batch_search(context, search, source(table.draw(5)), out, plan="B")
    assert told == BatchAnswer(3, "B", 5)
    assert sorted(tmp_path.rglob("*")) == before


def test_rows_that_keep_their_ids_are_found_by_them(tmp_path: Path) -> None:
    vectors = np.random.default_rng(5).standard_normal((1200, 8)).astype(np.float32)
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 8)
    rows, path = pa.table({"id": range(1200), "v": column}), tmp_path / "t.lance"
    dataset = lance.write_dataset(
        rows.slice(0, 1000), str(path), max_rows_per_file=250, enable_stable_row_ids=True
    )
    dataset.create_index("v", "IVF_FLAT", num_partitions=4)
    lance.write_dataset(rows.slice(1000), str(path), mode="append")
    dataset = lance.dataset(str(path))
    dataset.delete("id % 5 = 0")
    dataset.update({"id": "id + 10000"}, where="id < 300")  # moves rows, which keep their ids
    ours = lance_core.open_dataset(str(path), session=Session(few_rows=0))
    search = BatchSearch(k=9, filter="id % 2 = 1", columns=("_rowid", "id"))
    wanted = expected(ours, vectors[:15], search)
    for plan in PLANS:
        out = tmp_path / plan
        batch_search(
            local_context(path), search, source(vectors[:15]), ParquetOutput(str(out)), plan=plan
        )
        assert answers(out).cast(wanted.schema).equals(wanted)


def test_the_command_tells_its_plan_and_what_is_wrong(tmp_path: Path) -> None:
    table = build_table(tmp_path / "t.lance", TableCase("IVF_FLAT", "l2", 1, "appended", "2.2"))
    queries = tmp_path / "queries.parquet"
    pq.write_table(pa.table({"q": table.draw(3).tolist(), "w": [[0.5]] * 3}), queries)
    given = ["search", str(queries), str(tmp_path / "out"), "--uri", str(table.path), "--dry-run"]
    shown = ["--progress", "json", "--plan", "B", "--query-column", "q"]
    result = CliRunner().invoke(app, [*given, *shown])
    assert result.exit_code == 0, result.output
    (told,) = [json.loads(each) for each in result.stderr.splitlines() if '"plan"' in each]
    assert (told["event"], told["plan"], told["num_queries"]) == ("plan", "B", 3)
    for wrong in (["--filter", "nothing = 3"], ["--query-column", "x"], ["--nprobes", "-1"], []):
        result = CliRunner().invoke(app, [*given, *wrong])
        assert result.exit_code == 2, result.output
    assert not (tmp_path / "out").exists()
