"""Laws that hold for every vector query, whatever its options, over tables in many states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import lance_core
from lance_core.query.request import VectorQuery
from lance_core.query.session import Session
from tests.filtered_tables import FILTERS, STATES, LiveRows, draw, write_table

if TYPE_CHECKING:
    from lance_core.query.query_result import QueryResult

pytestmark = pytest.mark.interop

METRICS = ("l2", "cosine", "dot")
VECTORS = draw(79, 12)

options = st.fixed_dictionaries(
    {"k": st.sampled_from([1, 3, 10, 40, 700, None])},
    optional={
        "per_mille": st.sampled_from(list(FILTERS)),
        "probes": st.tuples(st.integers(1, 90), st.integers(0, 10)),
        "refine_factor": st.integers(1, 4),
        "offset": st.integers(0, 15),
        "lower_bound": st.floats(-5, 10, width=32),
        "upper_bound": st.floats(0, 60, width=32),
        "fast_search": st.booleans(),
        "use_index": st.booleans(),
        "few_rows": st.sampled_from([0, 50, 2_000]),
    },
)


class Table:
    """A table that is opened with each limit of rows scored one by one."""

    def __init__(self, path: str, metric: str, live: LiveRows) -> None:
        self.metric = metric
        self.live = live
        self.opened = {
            few_rows: lance_core.open_dataset(path, session=Session(few_rows=few_rows))
            for few_rows in (0, 50, 2_000)
        }
        self.ids = live.table["id"].to_numpy()

    def run(self, vectors: np.ndarray, given: dict[str, Any], **more: Any) -> QueryResult:
        asked = {**given, **more}
        per_mille = asked.pop("per_mille", None)
        least, extra = asked.pop("probes", (None, 0))
        return self.opened[asked.pop("few_rows", 0)].run(
            VectorQuery(
                vectors=vectors,
                columns=("id",),
                metric=self.metric,
                filter=None if per_mille is None else FILTERS[per_mille],
                min_probes=least,
                max_probes=None if least is None else least + extra,
                **asked,
            )
        )

    def allowed(self, given: dict[str, Any]) -> Any:
        per_mille = given.get("per_mille")
        passes = np.ones(len(self.ids), np.bool_)
        if per_mille is not None:
            passes = self.live.below(per_mille)
        return self.ids[passes]


@pytest.fixture(scope="module", params=enumerate(STATES), ids=lambda param: param[1])
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Table:
    number, state = request.param
    metric = METRICS[number % 3]
    folder = tmp_path_factory.mktemp("laws") / "t.lance"
    kind = ("IVF_PQ", "IVF_FLAT")[number % 2]
    return Table(str(folder), metric, LiveRows.of(write_table(folder, state, kind, metric)))


def laws(examples: int) -> Any:
    return settings(max_examples=examples, suppress_health_check=list(HealthCheck), deadline=None)


@laws(60)
@given(asked=options, number=st.integers(0, len(VECTORS) - 1))
def test_answers_are_sorted_distinct_live_and_pass(table, asked, number):
    found = table.run(VECTORS[number : number + 1], asked).table
    ids, distances = found["id"].to_numpy(), found["_distance"].to_numpy()
    assert asked["k"] is None or len(ids) <= asked["k"]
    assert len(np.unique(ids)) == len(ids)
    assert (np.diff(distances) >= 0).all()
    assert np.isin(ids, table.allowed(asked)).all()
    assert (distances >= asked.get("lower_bound", -np.inf)).all()
    assert (distances < asked.get("upper_bound", np.inf)).all() or len(ids) == 0


@laws(40)
@given(asked=options, number=st.integers(0, len(VECTORS) - 1))
def test_exact_answers_are_those_of_brute_force(table, asked, number):
    asked = {key: asked[key] for key in asked.keys() & {"k", "per_mille", "offset", "few_rows"}}
    query = VECTORS[number]
    found = table.run(query[None], asked, use_index=False)
    assert found.stats.exact
    offset = asked.get("offset", 0)
    passes = np.isin(table.ids, table.allowed(asked))
    last = len(passes) if asked["k"] is None else asked["k"] + offset
    expected = table.live.nearest(query, table.metric, last, passes).slice(offset)
    assert found.table.num_rows == expected.num_rows
    np.testing.assert_allclose(
        found.table["_distance"].to_numpy(), expected["_distance"].to_numpy(), rtol=1e-4, atol=1e-4
    )


@laws(30)
@given(asked=options, first=st.integers(0, len(VECTORS) - 3))
def test_a_batch_equals_its_queries(table, asked, first):
    vectors = VECTORS[first : first + 3]
    batch = table.run(vectors, asked, batched=True)
    for number, vector in enumerate(vectors):
        alone = table.run(vector[None], asked)
        places = np.flatnonzero(batch.table["query_index"].to_numpy() == number)
        assert batch.table.take(places).drop_columns(["query_index"]).equals(alone.table)


@laws(25)
@given(
    k=st.sampled_from([1, 10, 40]),
    per_mille=st.sampled_from([None, 100, 500]),
    number=st.integers(0, len(VECTORS) - 1),
)
def test_more_probes_find_nothing_farther(table, k, per_mille, number):
    # Where distances are made exact afterwards, a row that seems near may push out one that is.
    asked: dict[str, Any] = {"k": k, "fast_search": True}
    if per_mille is not None:
        asked["per_mille"] = per_mille
    before = np.empty(0, np.float32)
    for probes in (1, 4, 12, 80):
        found = table.run(VECTORS[number : number + 1], asked, probes=(probes, 0))
        distances = found.table["_distance"].to_numpy()
        assert len(distances) >= len(before)
        assert (distances[: len(before)] <= before + 1e-5).all()
        before = distances
