"""Ranges of distances: where an answer has exact distances, these are what the bounds cut.

pylance 14.0.2 holds estimates against the bounds first and so loses rows; brute force is the law
here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core import Session, VectorQuery
from tests.multivector_tables import draw_queries, write_lists
from tests.neighbour_checks import exact_distances, scale_of

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

pytestmark = pytest.mark.interop

DIMENSION, NUM_ROWS, NUM_APPENDED, NUM_PARTITIONS = 16, 1_100, 60, 4
KINDS: dict[str, dict[str, Any]] = {
    "IVF_FLAT": {},
    "IVF_PQ": {"num_sub_vectors": 4},
    "IVF_PQ 4 bit": {"num_sub_vectors": 4, "num_bits": 4},
    "IVF_SQ": {},
    "IVF_RQ": {},
    "IVF_RQ 5 bit": {"num_bits": 5},
    "IVF_HNSW_FLAT": {},
    "IVF_HNSW_SQ": {},
    "IVF_HNSW_PQ": {"num_sub_vectors": 4},
}
RANGES = {
    "upper": (0, 30),
    "lower": (30, None),
    "both": (25, 70),
    "narrow": (7, 12),
    "none": (9, 9),
}
"""Ranks of the first row inside and the first behind."""
NEVER = 1e30


def draw(count: int, seed: int) -> NDArray[np.float32]:
    generator = np.random.default_rng(seed)
    centres = np.random.default_rng(5).standard_normal((12, DIMENSION))
    noise = 0.5 * generator.standard_normal((count, DIMENSION))
    return (centres[generator.integers(12, size=count)] + noise).astype(np.float32)


def rows(vectors: NDArray[np.float32], first: int) -> pa.Table:
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIMENSION)
    return pa.table({"id": np.arange(first, first + len(vectors)), "v": column})


@dataclass(frozen=True)
class Table:
    dataset: lance_core.Dataset
    metric: str
    vectors: NDArray[np.float32]
    is_rabit: bool = False

    def bounds(self, query: NDArray[np.float32], which: str, last: int) -> dict[str, Any]:
        """Return bounds between the distances of rows, so that no rounding moves one over them."""
        ordered = np.sort(exact_distances(self.vectors[:last], query, self.metric))
        first, end = RANGES[which]
        found = {} if first == 0 else {"lower_bound": float(ordered[first - 1 : first + 1].mean())}
        if end is not None:
            found["upper_bound"] = float(ordered[end - 1 : end + 1].mean())
        return found

    def check(
        self, query: NDArray[np.float32], bounds: dict[str, Any], k: int, last: int, **given: Any
    ) -> None:
        """Check that an answer is that of brute force over the rows before ``last``."""
        found = self.dataset.search(query, k, columns=["id"], **bounds, **given)
        distances = exact_distances(self.vectors[:last], query, self.metric)
        order = np.argsort(distances)
        inside = distances[order] >= bounds.get("lower_bound", -NEVER)
        inside &= distances[order] < bounds.get("upper_bound", NEVER)
        expected = order[inside][:k]
        slack = 1e-5 * scale_of(distances.astype(np.float32), query, self.metric)
        np.testing.assert_allclose(
            found["_distance"].to_numpy(), distances[expected], rtol=0, atol=slack
        )
        assert set(found["id"].to_pylist()) == set(expected.tolist())


@pytest.fixture(scope="module", params=[(k, m) for k in KINDS for m in ("l2", "cosine", "dot")])
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Table:
    kind, metric = request.param
    vectors = draw(NUM_ROWS + NUM_APPENDED, 1)
    path = str(tmp_path_factory.mktemp("range") / "t.lance")
    dataset = lance.write_dataset(rows(vectors[:NUM_ROWS], 0), path, max_rows_per_file=700)
    dataset.create_index(
        "v", kind.split(" ")[0], metric=metric, num_partitions=NUM_PARTITIONS, **KINDS[kind]
    )
    dataset.insert(rows(vectors[NUM_ROWS:], NUM_ROWS))
    opened = lance_core.open_dataset(path, session=Session(few_rows=0))
    return Table(opened, metric, vectors, is_rabit="RQ" in kind)


@pytest.mark.parametrize("which", RANGES)
@pytest.mark.parametrize("options", [{}, {"fast_search": True}], ids=["mixed", "refined"])
def test_refined_answers_are_brute_force_cut_by_the_range(
    table: Table, which: str, options: dict[str, Any]
) -> None:
    last = NUM_ROWS if options else NUM_ROWS + NUM_APPENDED
    for query in draw(3, 2):
        bounds = table.bounds(query, which, last)
        for k, factor in ((20, 60), (100, 20)):
            table.check(
                query, bounds, k, last, nprobes=NUM_PARTITIONS, refine_factor=factor, **options
            )


@pytest.mark.parametrize("factor", [None, 1])
def test_rows_behind_a_lower_bound_are_found_though_all_candidates_lie_before_it(
    table: Table, factor: int | None
) -> None:
    last = NUM_ROWS + NUM_APPENDED
    for query in draw(3, 3):
        ordered = np.sort(exact_distances(table.vectors, query, table.metric))
        bounds = {"lower_bound": float(ordered[-11:-9].mean())}
        for probes in (NUM_PARTITIONS, None):
            table.check(query, bounds, 20, last, nprobes=probes, refine_factor=factor)


def test_batches_are_their_queries(table: Table) -> None:
    queries = draw(4, 4)
    bounds = table.bounds(queries[0], "both", NUM_ROWS)
    given: dict[str, Any] = {"k": 30, "columns": ("id",), "refine_factor": 2, **bounds}
    batch = table.dataset.run(VectorQuery(queries, batched=True, **given)).table
    for number, query in enumerate(queries):
        alone = table.dataset.run(VectorQuery(query[None], **given)).table
        own = batch.filter(pa.array(batch["query_index"].to_numpy() == number))
        assert own.drop_columns(["query_index"]).equals(alone)


def test_unrefined_answers_are_cut_as_they_are_reported(table: Table) -> None:
    for query in draw(3, 5):
        given: dict[str, Any] = {"columns": ["id"], "nprobes": NUM_PARTITIONS, "fast_search": True}
        whole = table.dataset.search(query, NUM_ROWS, **given)
        distances = whole["_distance"].to_numpy()
        lower, upper = float(distances[3]), float(distances[50])
        found = table.dataset.search(query, NUM_ROWS, lower_bound=lower, upper_bound=upper, **given)
        expected = whole.filter(pa.array((lower <= distances) & (distances < upper)))
        if table.is_rabit:  # gives rows up by bounds that hold with high probability only
            places = np.isin(expected["id"].to_numpy(), found["id"].to_numpy())
            assert places.mean() > 0.8
            expected = expected.filter(pa.array(places))
        assert found.equals(expected)


def test_partitions_are_probed_until_enough_rows_are_inside(tmp_path: Path) -> None:
    vectors = draw(3_000, 6)
    path = str(tmp_path / "t.lance")
    dataset = lance.write_dataset(rows(vectors, 0), path)
    dataset.create_index("v", "IVF_SQ", metric="cosine", num_partitions=80)
    many = Table(lance_core.open_dataset(path), "cosine", vectors)
    for query in draw(3, 7):
        bounds = many.bounds(query, "both", len(vectors))
        many.check(query, bounds, 60, len(vectors), refine_factor=1)  # 45 rows are inside
        stats = many.dataset.run(
            VectorQuery(query[None], k=60, refine_factor=1, columns=("id",), **bounds)
        ).stats
        assert (stats.exact, stats.partitions_probed) == (True, 80)
        near = VectorQuery(query[None], k=1, refine_factor=1, upper_bound=bounds["upper_bound"])
        assert many.dataset.run(near).stats.partitions_probed < 80


@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_PQ", "IVF_SQ", "IVF_RQ", "IVF_HNSW_SQ"])
def test_rows_that_hold_lists_are_cut_by_their_exact_distances(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "t.lance"
    vectors = write_lists(path, 600, seed=2)
    sizes: dict[str, Any] = {"num_sub_vectors": 8} if kind == "IVF_PQ" else {}
    lance.dataset(path).create_index("v", kind, metric="cosine", num_partitions=3, **sizes)
    dataset = lance_core.open_dataset(path, session=Session(few_rows=0))
    for query in draw_queries(vectors, 3):
        exact = dataset.search(query, None, columns=["id"], use_index=False, metric="cosine")
        distances = exact["_distance"].to_numpy()
        for first, end in ((0, 12), (40, 90), (300, None)):
            lower = None if first == 0 else float(distances[first - 1 : first + 1].mean())
            upper = None if end is None else float(distances[end - 1 : end + 1].mean())
            found = dataset.search(
                query,
                60,
                columns=["id"],
                nprobes=3,
                refine_factor=20,
                lower_bound=lower,
                upper_bound=upper,
            )
            expected = exact.slice(first, None if end is None else end - first).slice(0, 60)
            assert found["id"].to_pylist() == expected["id"].to_pylist()
