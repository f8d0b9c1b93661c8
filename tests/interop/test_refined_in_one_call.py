"""Candidates that the search itself scores exactly: the answer is that of scoring them after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.query.request import VectorQuery
from lance_core.query.session import Session
from lance_core.query.stored_vectors import StoredVectors

if TYPE_CHECKING:
    from pathlib import Path

    from lance_core.dataset import Dataset
    from lance_core.kernels.exact_rank import ExactRanking

pytestmark = pytest.mark.interop

DIMENSION, NUM_ROWS = 64, 3000


@pytest.fixture(scope="module", params=["l2", "cosine", "dot"])
def root(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("refined") / "t.lance"
    vectors = np.random.default_rng(3).standard_normal((NUM_ROWS, DIMENSION)).astype(np.float32)
    vectors[1::2] = vectors[::2]  # half of all rows tie with another
    table = pa.table(
        {
            "id": np.arange(NUM_ROWS),
            "vec": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIMENSION),
        }
    )
    dataset = lance.write_dataset(table, str(folder), max_rows_per_file=900)
    dataset.create_index("vec", "IVF_PQ", metric=request.param, num_partitions=8, num_sub_vectors=4)
    dataset.delete("id % 11 = 4")
    return folder


class _Counted:
    """Counts the rankings that were made and done; or lets none be made."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, allowed: bool) -> None:
        self.made: list[ExactRanking] = []
        usual = StoredVectors.ranking

        def ranking(*given: Any) -> ExactRanking | None:
            found = usual(*given) if allowed else None
            self.made += [] if found is None else [found]
            return found

        monkeypatch.setattr(StoredVectors, "ranking", ranking)

    @property
    def num_done(self) -> int:
        return sum(each.is_done for each in self.made)


QUERIES: list[dict[str, Any]] = [
    {"k": 10, "nprobes": 8, "refine_factor": 10},
    {"k": 3, "nprobes": 2, "refine_factor": 1, "offset": 2},
    {"k": 5, "refine_factor": 40},
    {"k": 100, "nprobes": 8, "refine_factor": 20},
    {"k": 5, "nprobes": 3, "refine_factor": 4, "filter": "id % 3 > 0"},
]


def answers(dataset: Dataset, given: dict[str, Any]) -> list[tuple[bytes, list[int], int, int]]:
    own = {name: value for name, value in given.items() if name != "nprobes"}
    if "nprobes" in given:
        own["min_probes"] = own["max_probes"] = given["nprobes"]
    generator, found = np.random.default_rng(4), []
    for _ in range(20):
        vectors = generator.standard_normal((1, DIMENSION)).astype(np.float32)
        result = dataset.run(VectorQuery(vectors=vectors, columns=("id",), **own))
        distances = result.table["_distance"].to_numpy().tobytes()
        ids = result.table["id"].to_pylist()
        found.append((distances, ids, result.stats.rows_refined, result.stats.bytes_read))
    return found


@pytest.mark.parametrize("given", QUERIES, ids=str)
def test_scoring_candidates_in_the_search_changes_no_bit_of_the_answer(
    root: Path, given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = lance_core.open_dataset(str(root), session=Session(few_rows=0))
    answers(dataset, {"k": NUM_ROWS, "nprobes": 8, "refine_factor": 1})  # maps all fragments
    with monkeypatch.context() as patched:
        counted = _Counted(patched, allowed=True)
        answers(dataset, given)
        in_one_call = answers(dataset, given)
        assert counted.num_done == len(counted.made) == 40
    with monkeypatch.context() as patched:
        _Counted(patched, allowed=False)
        assert answers(dataset, given) == in_one_call


def test_a_search_that_finds_too_few_candidates_scores_them_afterwards(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset, given = (
        lance_core.open_dataset(str(root), session=Session(few_rows=0)),
        {"k": 2000, "nprobes": 2, "refine_factor": 1},
    )
    answers(dataset, {"k": NUM_ROWS, "nprobes": 8, "refine_factor": 1})
    counted = _Counted(monkeypatch, allowed=True)
    found = answers(dataset, given)
    assert (len(counted.made), counted.num_done) == (20, 0)
    assert all(0 < len(ids) == refined < 2000 for _, ids, refined, _ in found)


def test_an_unmapped_fragment_and_a_measured_run_are_left_to_the_usual_way(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = lance_core.open_dataset(str(root), session=Session(few_rows=0))
    counted = _Counted(monkeypatch, allowed=True)
    given = {"k": 10, "nprobes": 8, "refine_factor": 10}
    first = answers(dataset, given)[0]
    answers(dataset, given)
    num_made = len(counted.made)
    assert 0 < num_made < 40
    assert answers(dataset, given)[0][:2] == first[:2]
    before = len(counted.made)
    dataset.analyze(VectorQuery(vectors=np.ones((1, DIMENSION), np.float32), refine_factor=2))
    assert len(counted.made) == before
