"""Every kind of vector index in every state of a table answers as pylance does.

CI runs tables in which every pair of choices occurs; ``MATRIX=all`` runs the whole product.
"""

from __future__ import annotations

import os
from itertools import product
from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pytest

import lance_core
from lance_core.query.session import Session
from tests.neighbour_checks import (
    assert_same_neighbours,
    exact_distances,
    scale_of,
    tied_at,
)
from tests.pairwise import pairwise
from tests.vector_matrix import (
    FIRST_ROWS,
    KINDS,
    METRICS,
    NUM_PARTITIONS,
    STATES,
    VERSIONS,
    TableCase,
    build_table,
)

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa
    from numpy.typing import NDArray

    from tests.vector_matrix import MatrixTable

pytestmark = pytest.mark.interop

COLUMNS = ["id", "_distance"]
ROWS_TIED = 100
"""More than ever have the same estimate."""
MASKS = (None, 1, 10, 100, 500, 990)  # in a thousand
CHOICES = {
    "kind": list(KINDS),
    "metric": METRICS,
    "segments": (1, 3),
    "state": STATES,
    "version": VERSIONS,
}


def cases() -> list[TableCase]:
    is_whole = os.environ.get("MATRIX") == "all"
    chosen = product(*CHOICES.values()) if is_whole else pairwise(CHOICES)
    return [TableCase(*one) for one in chosen]  # type: ignore[arg-type]  # in this order


@pytest.mark.parametrize("case", cases(), ids=lambda case: "-".join(map(str, _values(case))))
def test_filtered_searches_find_what_pylance_finds(tmp_path: Path, case: TableCase) -> None:
    table = build_table(tmp_path / "t.lance", case)
    # Without exact scoring of the few rows that pass, so that masks are searched through too.
    ours = lance_core.open_dataset(str(table.path), session=Session(few_rows=0))
    theirs = lance.dataset(str(table.path))
    generator = np.random.default_rng(5)
    for mask in MASKS:
        for query in table.draw(2):
            check(table, ours, theirs, query, mask, generator)


def check(
    table: MatrixTable,
    ours: lance_core.Dataset,
    theirs: lance.LanceDataset,
    query: NDArray[np.generic],
    mask: int | None,
    generator: np.random.Generator,
) -> None:
    k = int(generator.choice([1, 10, 40]))
    refine = [None, None, 1, 3][generator.integers(4)]
    options: dict[str, Any] = {
        "nprobes": int(generator.integers(1, NUM_PARTITIONS + 1)),
        "refine_factor": refine,
        "approx_mode": ["normal", "fast", "accurate"][generator.integers(3)],
    }
    if "HNSW" in table.case.kind:
        options["ef"] = k * (1 if refine is None else refine) + int(generator.integers(30))
    text = None if mask is None else f"u < {mask}"
    found = ours.search(query, k, columns=["id"], filter=text, **options)
    expected = by_pylance(theirs, {"column": "v", "q": query, "k": k, **options}, text)
    metric = table.case.own_metric
    if expected is None:
        check_alone(table, found, query, mask, k)
        return
    asked = query.astype(np.float32)
    tolerance = 1e-4 if "RQ" in table.case.kind else 1e-5
    scale = scale_of(expected["_distance"].to_numpy(), asked, metric)
    doubtful: list[int] = []
    if refine is not None or table.case.state == "appended":
        # Which of several rows at the same estimate are refined is not promised. Beside rows
        # without an index all are.
        wide = {**options, "refine_factor": None, "fast_search": True}
        num_refined = k * (refine or 1)
        num_estimates = min(num_refined + ROWS_TIED, options.get("ef", FIRST_ROWS))
        estimates = ours.search(query, num_estimates, columns=["id"], filter=text, **wide)
        doubtful = tied_at(estimates, num_refined, slack=tolerance * scale)
    assert_same_neighbours(found, expected, scale=scale, tolerance=tolerance, doubtful=doubtful)


def by_pylance(
    dataset: lance.LanceDataset, nearest: dict[str, Any], text: str | None
) -> pa.Table | None:
    """Return pylance's answer; None where it fails over a graph with rows that are gone."""
    try:
        return dataset.to_table(columns=COLUMNS, nearest=nearest, filter=text, prefilter=True)
    except ValueError as error:
        if "HNSW graph has" in str(error):
            return None
        raise


def check_alone(
    table: MatrixTable, found: pa.Table, query: NDArray[np.generic], mask: int | None, k: int
) -> None:
    """Check an answer that pylance cannot give: live rows that pass, in order, near the truth."""
    ids, distances = found["id"].to_numpy(), found["_distance"].to_numpy()
    live = lance.dataset(str(table.path)).to_table(
        columns=["id"], filter=None if mask is None else f"u < {mask}"
    )["id"]
    assert len(set(ids.tolist())) == len(ids) <= k
    assert set(ids.tolist()) <= set(live.to_pylist())
    assert (np.diff(distances) >= 0).all()
    if table.case.has_bytes or table.case.index_type != "IVF_HNSW_FLAT":
        return
    vectors = np.concatenate(table.vectors)[ids].astype(np.float32)
    true = exact_distances(vectors, query.astype(np.float32), table.case.own_metric)
    np.testing.assert_allclose(distances, true, rtol=1e-4, atol=1e-4 * max(1, *np.abs(true), 1))


def _values(case: TableCase) -> tuple[object, ...]:
    return case.kind, case.metric, case.num_segments, case.state, case.version
