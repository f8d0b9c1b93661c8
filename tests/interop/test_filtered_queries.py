"""Filtered vector queries find what pylance finds, and what it should where it does not."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import lance_core
from lance_core.query.request import VectorQuery
from lance_core.query.session import Session
from tests.filtered_tables import FILTERS, STATES, LiveRows, draw, write_table
from tests.neighbour_checks import assert_same_neighbours, scale_of

if TYPE_CHECKING:
    import lance
    import pyarrow as pa
    from numpy.typing import NDArray

pytestmark = pytest.mark.interop

QUERIES = draw(77, 3)
TABLES = [
    (state, kind, metric)
    for number, state in enumerate(STATES)
    for kind, metric in (
        ("IVF_FLAT", ("l2", "cosine", "dot")[number % 3]),
        ("IVF_PQ", ("cosine", "dot", "l2")[number % 3]),
    )
]


@dataclass(frozen=True)
class Table:
    state: str
    metric: str
    theirs: lance.LanceDataset
    masked: lance_core.Dataset
    """Never scores few rows one by one."""
    usual: lance_core.Dataset
    live: LiveRows

    def query(self, given: lance_core.Dataset, q: NDArray[np.float32], **options: Any) -> Any:
        request = VectorQuery(vectors=q[None], columns=("id", "_distance"), **options)
        return given.run(request)

    def ask_pylance(
        self, q: NDArray[np.float32], k: int, condition: str | None, *, prefilter: bool, **more: Any
    ) -> pa.Table:
        return self.theirs.to_table(
            nearest={"column": "vec", "q": q, "k": k, **more},
            filter=condition,
            prefilter=prefilter,
            columns=["id", "_distance"],
        )

    def assert_same(self, ours: pa.Table, theirs: pa.Table, q: NDArray[np.float32]) -> None:
        scale = scale_of(theirs["_distance"].to_numpy(), q, self.metric)
        assert_same_neighbours(ours, theirs, scale=scale)


@pytest.fixture(scope="module", params=TABLES, ids=" ".join)
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Table:
    state, kind, metric = request.param
    folder = tmp_path_factory.mktemp("filtered") / "t.lance"
    theirs = write_table(folder, state, kind, metric)
    return Table(
        state,
        metric,
        theirs,
        lance_core.open_dataset(str(folder), session=Session(few_rows=0)),
        lance_core.open_dataset(str(folder)),
        LiveRows.of(theirs),
    )


@pytest.mark.parametrize("per_mille", FILTERS)
def test_masked_probing_finds_what_pylance_finds(table, per_mille):
    for query in QUERIES:
        for k, nprobes, refine in ((1, 5, None), (10, 9, None), (10, 30, 3), (100, 80, 2)):
            ours = table.query(
                table.masked,
                query,
                k=k,
                filter=FILTERS[per_mille],
                min_probes=nprobes,
                max_probes=nprobes,
                refine_factor=refine,
            ).table
            more = {} if refine is None else {"refine_factor": refine}
            theirs = table.ask_pylance(
                query, k, FILTERS[per_mille], prefilter=True, nprobes=nprobes, **more
            )
            table.assert_same(ours, theirs, query)


@pytest.mark.parametrize("bounds", [(None, None), (2, 12), (None, 30), (70, None)], ids=str)
@pytest.mark.parametrize("per_mille", FILTERS)
def test_automatic_probing_goes_on_until_enough_rows_pass(table, per_mille, bounds):
    if table.state == "two segments":
        pytest.skip("pylance itself gives several answers (vector index page, section 7.3)")
    passes = table.live.below(per_mille)
    least, most = bounds
    more = {"minimum_nprobes": least, "maximum_nprobes": most}
    more = {name: value for name, value in more.items() if value is not None}
    for query in QUERIES:
        for k in (1, 10, 300):
            result = table.query(
                table.masked,
                query,
                k=k,
                filter=FILTERS[per_mille],
                min_probes=least,
                max_probes=most,
            )
            theirs = table.ask_pylance(query, k, FILTERS[per_mille], prefilter=True, **more)
            if result.plan.listed is None:
                table.assert_same(result.table, theirs, query)
            else:
                assert result.stats.exact
                exact = table.live.nearest(query, table.metric, k, passes)
                table.assert_same(result.table, exact, query)


@pytest.mark.parametrize("per_mille", FILTERS)
def test_few_rows_are_scored_exactly(table, per_mille):
    passes = table.live.below(per_mille)
    for query in QUERIES:
        for k, nprobes in ((7, 1), (50, None), (100_000, None)):
            result = table.query(
                table.usual,
                query,
                k=k,
                filter=FILTERS[per_mille],
                min_probes=nprobes,
                max_probes=nprobes,
            )
            assert (result.stats.plan, result.stats.exact) == ("exact", True)
            exact = table.live.nearest(query, table.metric, k, passes)
            assert exact.num_rows == min(k, passes.sum())
            table.assert_same(result.table, exact, query)


@pytest.mark.parametrize("per_mille", FILTERS)
def test_exact_search_finds_what_passes(table, per_mille):
    passes = table.live.below(per_mille)
    for given in (table.masked, table.usual):
        result = table.query(
            given, QUERIES[0], k=20, filter=FILTERS[per_mille], use_index=False, metric=table.metric
        )
        table.assert_same(
            result.table, table.live.nearest(QUERIES[0], table.metric, 20, passes), QUERIES[0]
        )


@pytest.mark.parametrize("per_mille", FILTERS)
def test_a_postfilter_leaves_out_rows_of_the_answer(table, per_mille):
    for query in QUERIES:
        for k, refine in ((10, None), (100, None), (30, 2)):
            ours = table.query(
                table.usual,
                query,
                k=k,
                filter=FILTERS[per_mille],
                prefilter=False,
                min_probes=24,
                max_probes=24,
                refine_factor=refine,
            ).table
            more = {} if refine is None else {"refine_factor": refine}
            theirs = table.ask_pylance(
                query, k, FILTERS[per_mille], prefilter=False, nprobes=24, **more
            )
            table.assert_same(ours, theirs, query)


def test_a_postfilter_runs_before_rows_are_skipped(table):
    query, condition = QUERIES[0], "share < 500 AND _distance > 0"
    nearest = {"column": "vec", "q": query, "k": 24, "nprobes": 24}
    theirs = table.theirs.to_table(
        nearest=nearest,
        filter=condition,
        prefilter=False,
        offset=4,
        limit=20,
        columns=["id", "_distance"],
    )
    ours = table.query(
        table.usual,
        query,
        k=20,
        offset=4,
        filter=condition,
        prefilter=False,
        min_probes=24,
        max_probes=24,
    ).table
    table.assert_same(ours, theirs, query)


def test_a_batch_answers_as_its_queries_one_by_one(table):
    vectors = draw(78, 9)
    options: list[dict[str, Any]] = [
        {},
        {"filter": FILTERS[100]},
        {"filter": FILTERS[10], "k": 200},
        {"nprobes": 3, "refine_factor": 2},
        {"use_index": False},
        {"filter": FILTERS[500], "prefilter": False, "offset": 2},
    ]
    for given in (table.masked, table.usual):
        for each in options:
            batch = given.search(vectors, columns=["id"], **each)
            for number, vector in enumerate(vectors):
                alone = given.search(vector, columns=["id"], **each)
                of_batch = batch.filter(batch["query_index"].to_numpy() == number)
                assert of_batch.drop_columns(["query_index"]).equals(alone)


def test_explain_tells_how_a_filter_is_applied(table):
    request = VectorQuery(vectors=QUERIES[:1], filter=FILTERS[100])
    assert "ListedSearch" in table.usual.explain(request)
    assert "at most 20000 rows pass the filter" in table.usual.explain(request)
    assert f"Prefilter: filter={FILTERS[100]}, rows=" in table.masked.explain(request)
    assert "IndexSearch" in table.masked.explain(request)
    request = VectorQuery(vectors=QUERIES[:1], filter=FILTERS[100], prefilter=False)
    assert "Postfilter: filter=share < 100" in table.masked.explain(request)
    assert "rows=" in table.masked.analyze(request)


def test_filters_may_name_what_no_file_stores(table):
    rows = table.usual.scan(["id", "_rowid", "_rowaddr", "_rowoffset"]).read_all()
    for name in ("_rowid", "_rowaddr", "_rowoffset"):
        bound = int(np.median(rows[name].to_numpy()))
        allowed = rows["id"].to_numpy()[rows[name].to_numpy() < bound]
        for given in (table.masked, table.usual):
            found = table.query(
                given,
                QUERIES[0],
                k=50,
                filter=f"{name} < {bound}",
                min_probes=24,
                max_probes=24,
            ).table["id"]
            assert len(found) == 50
            assert np.isin(found.to_numpy(), allowed).all()
        after = table.query(
            table.usual, QUERIES[0], k=50, filter=f"{name} < {bound}", prefilter=False
        ).table["id"]
        assert 0 < len(after) < 50
        assert np.isin(after.to_numpy(), allowed).all()


def test_queries_that_come_at_once_share_one_evaluation(table):
    dataset = lance_core.open_dataset(table.usual.uri, session=Session(few_rows=0))
    requests = [
        VectorQuery(vectors=query[None], columns=("id",), filter="share < 333", k=5)
        for query in draw(80, 16)
    ]
    with ThreadPoolExecutor(8) as pool:
        found = [result.table for result in pool.map(dataset.run, requests)]
    expected = [table.masked.run(request).table for request in requests]
    assert all(ours.equals(theirs) for ours, theirs in zip(found, expected, strict=True))
