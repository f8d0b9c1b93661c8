"""Vector queries over datasets of older Lance releases give the recorded answers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import lance_core
from tests.neighbour_checks import assert_same_neighbours, exact_distances, scale_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.interop

PQ_AND_FLAT = ["ivf_pq_l2", "ivf_pq_cosine", "ivf_pq_dot", "ivf_flat_l2"]
GRAPHS = ["ivf_hnsw_flat_dot", "ivf_hnsw_pq_l2", "ivf_hnsw_sq_cosine", "ivf_hnsw_sq_l2"]
CODES = ["ivf_rq_cosine", "ivf_rq_l2", "ivf_sq_l2"]
NAMES = PQ_AND_FLAT + GRAPHS + CODES
INDEXED = [(release, name) for release in ("1.0.4", "10.0.0") for name in NAMES]
# Its graphs over PQ codes are recorded as exact searches, since pylance cannot use them.
INDEXED += [("0.20.0", name) for name in GRAPHS[1:]]
LEGACY = [("0.20.0", name) for name in PQ_AND_FLAT[:3]]


def recorded(root: Path) -> list[dict[str, Any]]:
    """Return the recorded searches without a filter."""
    searches: list[dict[str, Any]]
    searches = json.loads(root.with_suffix(".expect.json").read_text())["search"]
    return [search for search in searches if search.get("filter") is None]


def answer(dataset: lance_core.Dataset, search: dict[str, Any]) -> pa.Table:
    use_index = search.get("use_index") is not False
    return dataset.search(
        search["q"],
        search["k"],
        column="vec",
        columns=["id"],
        # Recorded without a metric, exact searches were l2 whatever the index.
        metric=None if use_index else "l2",
        nprobes=search.get("nprobes"),
        refine_factor=search.get("refine_factor"),
        use_index=use_index,
    )


@pytest.mark.parametrize(("release", "name"), INDEXED)
def test_recorded_searches_find_the_recorded_rows(
    old_dataset: Callable[[str, str], Path], release: str, name: str
) -> None:
    root = old_dataset(release, name)
    dataset = lance_core.open_dataset(str(root))
    searches = recorded(root)
    assert len(searches) >= 5
    for search in searches:
        expected = pa.table(
            {"id": search["ids"], "_distance": pa.array(search["dist"], pa.float32())}
        )
        query = np.array(search["q"], np.float32)
        metric = name.rpartition("_")[2] if search.get("use_index") is not False else "l2"
        scale = scale_of(expected["_distance"].to_numpy(), query, metric)
        assert_same_neighbours(answer(dataset, search), expected, scale=scale)


@pytest.mark.parametrize(("release", "name"), LEGACY)
def test_a_legacy_index_is_left_out_and_its_rows_are_searched_exactly(
    old_dataset: Callable[[str, str], Path], release: str, name: str
) -> None:
    root = old_dataset(release, name)
    dataset = lance_core.open_dataset(str(root))
    stored = dataset.scan(["id", "vec"]).read_all()
    vectors = np.array(stored["vec"].to_pylist(), np.float32)
    for search in recorded(root):
        query = np.array(search["q"], np.float32)
        use_index = search.get("use_index") is not False
        metric = name.rpartition("_")[2] if use_index else "l2"
        distances = exact_distances(vectors, query, metric)
        nearest = np.argsort(distances, kind="stable")[: search["k"]]
        expected = pa.table(
            {
                "id": stored["id"].take(nearest),
                "_distance": pa.array(distances[nearest].astype(np.float32)),
            }
        )
        scale = scale_of(distances.astype(np.float32), query, metric)
        found = answer(dataset, search)
        assert_same_neighbours(found, expected, scale=scale)
