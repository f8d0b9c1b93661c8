"""Writers that are killed: the dataset is always at a complete version, and what is left goes."""

from __future__ import annotations

import logging
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING

import lance
import numpy as np
import pytest

from lance_core.dataset import open_dataset, write_dataset
from tests.crashing import ACTIONS, Model, killed, rows_from, rows_of
from tests.soak import num_kills

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.interop, pytest.mark.slow]

LOG = logging.getLogger(__name__)
USUAL_S = dict.fromkeys(ACTIONS, 0.04) | {"cleanup": 0.01}
SEED = 20261128


def files_below(root: Path) -> set[str]:
    return {str(each.relative_to(root)) for each in root.rglob("*") if each.is_file()}


@pytest.mark.parametrize("stable_row_ids", [False, True])
def test_a_killed_writer_leaves_a_complete_version(tmp_path: Path, stable_row_ids: bool) -> None:
    root, log = tmp_path / "t.lance", tmp_path / "log"
    first = rows_from(0)
    write_dataset(root, first, stable_row_ids=stable_row_ids)
    model, rng, pending = Model(rows_of(first)), np.random.default_rng(SEED), Counter[str]()
    for number in range(1, num_kills() + 1):
        aim = ACTIONS[number % len(ACTIONS)]
        killed(root, log, number, aim, rng.uniform(0, USUAL_S[aim]))
        model.follow(log)
        pending[model.pending[0] if model.pending else "nothing"] += 1
        dataset = open_dataset(root)
        model.settle(rows_of(dataset.scan().read_all()))
        assert rows_of(lance.dataset(str(root)).to_table()) == model.rows
        assert list(dataset.verify()) == []
        if number % 4 == 0:
            check_leftovers_go(root)
            assert rows_of(lance.dataset(str(root)).to_table()) == model.rows
    LOG.info("killed during %s", dict(pending))


def check_leftovers_go(root: Path) -> None:
    """Clean up, and compare what is left with what the last version needs, as pylance sees it."""
    dataset = open_dataset(root)
    dataset.cleanup(older_than=timedelta(0), delete_unverified=True)
    fragments = lance.dataset(str(root)).get_fragments()
    data = {f"data/{file.path}" for fragment in fragments for file in fragment.data_files()}
    left = {each for each in files_below(root) if each.startswith("data/")}
    assert left == data
    others = {each for each in files_below(root) - left if not each.startswith("_indices/")}
    with_deletions = [each for each in fragments if each.metadata.deletion_file is not None]
    kinds = Counter(each.split("/")[0] for each in others)
    assert kinds["_deletions"] == len(with_deletions)
    assert kinds["_versions"] == 2  # the version and the hint
    assert kinds["_transactions"] == 1
    assert not any(".lance-serve-" in each or ".tmp" in each for each in others)
