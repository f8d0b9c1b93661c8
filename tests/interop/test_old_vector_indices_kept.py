"""Vector indices of older releases are brought up to date, and searched alike by both then."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import lance
import numpy as np
import pytest
from pyroaring import BitMap

import lance_core
from lance_core.errors import InvalidRequestError
from lance_core.index.vector.build.stored_rows import stored_rows
from lance_core.index.vector.segment import VectorSegment
from tests.neighbour_checks import assert_same_neighbours, scale_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.interop

TAKEN_OVER = [
    ("0.20.0", "ivf_hnsw_sq_cosine"),
    ("1.0.4", "ivf_pq_cosine"),
    ("1.0.4", "ivf_flat_l2"),
    ("1.0.4", "ivf_hnsw_pq_l2"),
    ("10.0.0", "ivf_rq_cosine"),
    ("10.0.0", "ivf_hnsw_flat_dot"),
]
TRAINED_ANEW = [("1.0.4", "ivf_rq_l2"), ("1.0.4", "ivf_rq_cosine")]
NOT_KEPT = [("0.20.0", "ivf_pq_l2"), ("0.20.0", "ivf_hnsw_pq_l2")]


def copied(old_dataset: Callable[[str, str], Path], release: str, name: str, to: Path) -> Path:
    path = old_dataset(release, name)
    shutil.copytree(path, to / "t")
    return to / "t"


@pytest.mark.parametrize(("release", "name"), TAKEN_OVER + TRAINED_ANEW)
def test_rows_that_came_later_are_indexed_and_deleted_ones_left_out(
    old_dataset: Callable[[str, str], Path], tmp_path: Path, release: str, name: str
) -> None:
    path = copied(old_dataset, release, name, tmp_path)
    before = lance_core.open_dataset(path)
    ours = before.optimize_indices()
    assert ours.version == before.version + 1
    (entry,) = ours.snapshot.indices
    assert entry.fragment_bitmap == BitMap(ours.snapshot.fragments_by_id)
    segment = VectorSegment.open(ours.snapshot.index_place(entry), entry.uuid, entry.files)
    row_ids = np.concatenate([rows.row_ids for rows in stored_rows(segment)])
    theirs = lance.dataset(str(path))
    live = theirs.to_table(columns=[], with_row_id=True)["_rowid"].to_pylist()
    assert sorted(row_ids.tolist()) == sorted(live)
    expected = json.loads(old_dataset(release, name).with_suffix(".expect.json").read_text())
    for search in expected["search"][:4]:
        query = np.array(search["q"], np.float32)
        nearest = {"column": "vec", "q": query, "k": 10, "nprobes": 3}
        scanner = theirs.scanner(columns=["id", "_distance"], nearest=nearest)
        assert "ANNSubIndex" in scanner.explain_plan(verbose=True)
        found = ours.search(query, 10, column="vec", columns=["id"], nprobes=3)
        answer = scanner.to_table()
        scale = scale_of(answer["_distance"].to_numpy(), query, name.rpartition("_")[2])
        assert_same_neighbours(found, answer, scale=scale, tolerance=1e-4)


@pytest.mark.parametrize(("release", "name"), NOT_KEPT)
def test_what_tells_not_how_it_was_made_stays_as_it_is(
    old_dataset: Callable[[str, str], Path], tmp_path: Path, release: str, name: str
) -> None:
    path = copied(old_dataset, release, name, tmp_path)
    dataset = lance_core.open_dataset(path)
    assert dataset.optimize_indices().version == dataset.version
    with pytest.raises(InvalidRequestError, match="create it again"):
        dataset.optimize_indices(["vec_idx"])
    made = dataset.create_index("vec", "IVF_FLAT", "vec_idx")
    (entry,) = made.snapshot.indices
    assert entry.fragment_bitmap == BitMap(made.snapshot.fragments_by_id)
