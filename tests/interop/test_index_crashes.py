"""Work on indices that is killed at every step: the dataset is complete, before or after."""

from __future__ import annotations

import shutil
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pytest

from lance_core.dataset import Dataset, open_dataset
from tests.index_crashing import DIMENSION, NUM_ROWS, WORKS, count_steps, kill_at
from tests.soak import num_kills
from tests.verified import verified

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.interop, pytest.mark.slow]

_STEPS_OF_COMMIT = 9
_MANY_KILLS = 20  # as in CI
QUERY = np.full(DIMENSION, 0.5, np.float32)


def state(dataset: Dataset) -> tuple[Any, ...]:
    """Return what work on indices may change, but for names of files and ids of fragments."""
    numbers = {int(each.id): number for number, each in enumerate(dataset.snapshot.fragments)}
    covered = sorted(
        (each.name, each.type_name, [numbers.get(one) for one in each.fragment_bitmap or ()])
        for each in dataset.snapshot.indices
    )
    return (covered, [each.physical_rows for each in dataset.snapshot.fragments])


def check_answers(root: Path) -> None:
    """Ask both readers for the same rows, found by the indices and by a scan."""
    theirs: Any = lance.dataset(str(root))
    ours = open_dataset(root)
    condition = f"id >= {NUM_ROWS - 5} AND id < {2 * NUM_ROWS + 5}"
    expected = theirs.scanner(["id"], filter=condition, use_scalar_index=False).to_table()
    assert sorted(ours.scan(["id"], filter=condition).read_all()["id"].to_pylist()) == sorted(
        expected["id"].to_pylist()
    )
    assert theirs.to_table(["id"], filter=condition).num_rows == expected.num_rows
    wanted = {"column": "vector", "q": QUERY, "k": 10, "nprobes": 2, "refine_factor": 20}
    found = ours.search(QUERY, 10, columns=["id"], nprobes=2, refine_factor=20)
    nearest = theirs.to_table(columns=["id", "_distance"], nearest=wanted)
    assert found["id"].to_pylist() == nearest["id"].to_pylist()


def check_leftovers_go(root: Path) -> None:
    dataset = open_dataset(root)
    dataset.cleanup(older_than=timedelta(0), delete_unverified=True)
    folders = {each.name for each in (root / "_indices").iterdir()}
    assert folders == {each.uuid for each in dataset.snapshot.indices if not each.is_system}
    assert not [each for each in root.rglob("*") if ".lance-serve-" in each.name]


def check_repeated(root: Path, work: str, *, is_due: bool) -> None:
    """Do work again unless it was done; what the dead process left goes with a cleanup."""
    if is_due:
        WORKS[work][1](open_dataset(root))
    check_leftovers_go(root)
    assert verified(root) == []


def steps_of(num_steps: int) -> list[int]:
    """Return before which steps processes die: those of the commit come last.

    Every other one of these, unless somebody waits for more.
    """
    commit = max(num_steps - _STEPS_OF_COMMIT, 0)
    every = max(commit // max(num_kills() // 8, 1), 1)
    stride = 2 if num_kills() < _MANY_KILLS else 1
    return [*range(0, commit, every), *range(commit, num_steps, stride)]


@pytest.mark.parametrize("work", WORKS)
def test_work_that_is_killed_leaves_a_complete_version(tmp_path: Path, work: str) -> None:
    begun = tmp_path / "begun"
    before = state(WORKS[work][0](begun))
    whole = tmp_path / "whole"
    shutil.copytree(begun, whole)
    num_steps = count_steps(whole, work)
    after = state(open_dataset(whole))
    assert after != before
    found = []
    for number, step in enumerate(steps_of(num_steps)):
        root = tmp_path / str(step)
        shutil.copytree(begun, root)
        kill_at(root, work, step)
        found.append(state(open_dataset(root)))
        assert found[-1] in (before, after)
        assert verified(root) == []
        check_answers(root)
        if number % 4 == 0:
            check_repeated(root, work, is_due=found[-1] == before)
            assert state(open_dataset(root)) == after
        shutil.rmtree(root)
    assert found[0] == before  # died before its commit,
    assert found[-1] == after  # and after it
