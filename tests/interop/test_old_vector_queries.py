"""Vector queries over datasets of older Lance releases give the recorded answers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.query.session import Session
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
TABLES = ["plain", "evolve", "scalar"]
UNINDEXED = [(release, name) for release in ("0.20.0", "1.0.4", "10.0.0") for name in TABLES]
MOVED = [("1.0.4", "stable"), ("10.0.0", "stable"), ("10.0.0", "deferred")]
LEGACY = [("0.20.0", name) for name in PQ_AND_FLAT[:3]]


def recorded(root: Path) -> list[dict[str, Any]]:
    """Return the recorded searches."""
    searches: list[dict[str, Any]]
    searches = json.loads(root.with_suffix(".expect.json").read_text())["search"]
    return searches


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
        filter=search.get("filter"),
    )


def opened(root: Path) -> lance_core.Dataset:
    """Open a dataset whose indices are searched under filters too, however few rows pass."""
    return lance_core.open_dataset(str(root), session=Session(few_rows=0))


@pytest.mark.parametrize(("release", "name"), INDEXED + UNINDEXED + MOVED)
def test_recorded_searches_find_the_recorded_rows(
    old_dataset: Callable[[str, str], Path], release: str, name: str
) -> None:
    root = old_dataset(release, name)
    dataset = opened(root)
    searches = recorded(root)
    assert len(searches) >= 10
    for search in searches:
        expected = pa.table(
            {"id": search["ids"], "_distance": pa.array(search["dist"], pa.float32())}
        )
        query = np.array(search["q"], np.float32)
        is_exact = search.get("use_index") is False or not name.startswith("ivf")
        metric = "l2" if is_exact else name.rpartition("_")[2]
        scale = scale_of(expected["_distance"].to_numpy(), query, metric)
        found = answer(dataset, search)
        if name == "stable":
            # pylance lets rows that are gone take places there; the recorded ones come first.
            assert found.num_rows == search["k"]
            found = found.slice(0, expected.num_rows)
        assert_same_neighbours(found, expected, scale=scale)


@pytest.mark.parametrize(("release", "name"), LEGACY)
def test_a_legacy_index_is_left_out_and_its_rows_are_searched_exactly(
    old_dataset: Callable[[str, str], Path], release: str, name: str
) -> None:
    root = old_dataset(release, name)
    dataset = opened(root)
    stored = dataset.scan(["id", "vec"]).read_all()
    vectors = np.array(stored["vec"].to_pylist(), np.float32)
    for search in recorded(root):
        query = np.array(search["q"], np.float32)
        use_index = search.get("use_index") is not False
        metric = name.rpartition("_")[2] if use_index else "l2"
        distances = exact_distances(vectors, query, metric)
        if search.get("filter") is not None:
            assert search["filter"] == "id < 500"
            distances[stored["id"].to_numpy() >= 500] = np.inf
        nearest = np.argsort(distances, kind="stable")[: search["k"]]
        expected = pa.table(
            {
                "id": stored["id"].take(nearest),
                "_distance": pa.array(distances[nearest].astype(np.float32)),
            }
        )
        scale = scale_of(expected["_distance"].to_numpy(), query, metric)
        found = answer(dataset, search)
        assert_same_neighbours(found, expected, scale=scale)
