"""Which fragments are compacted together: our plans are pylance's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance.optimize import Compaction

from lance_core.errors import InvalidRequestError
from lance_core.operations.compact_plan import CompactionOptions, plan_compaction
from tests.opened_table import open_table

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop


def our_plan(root: Path, options: CompactionOptions) -> list[list[int]]:
    table = open_table(root)
    return [
        list(task.fragment_ids) for task in plan_compaction(table.files, table.snapshot, options)
    ]


def pylance_plan(root: Path, **options: Any) -> list[list[int]]:
    plan = Compaction.plan(lance.dataset(str(root)), cast("Any", options))
    return [[fragment.id for fragment in task.fragments] for task in plan.tasks]


def random_table(root: Path, rng: np.random.Generator) -> None:
    """Fragments of a few rows, some deleted, some covered by one or two indices."""
    num_rows, indexed_at = 0, rng.integers(0, 12, 2)
    num_fragments = int(rng.integers(1, 12))
    for number in range(num_fragments):
        size = int(rng.integers(1, 12))
        rows = pa.table({"id": range(num_rows, num_rows + size), "k": range(size)})
        dataset = lance.write_dataset(rows, str(root), mode="append" if number else "create")
        num_rows += size
        for column, place in zip(("id", "k"), indexed_at.tolist(), strict=True):
            if place == number:
                dataset.create_scalar_index(column, "BTREE")
        if rng.random() < 0.3:
            gone = rng.integers(0, num_rows, int(rng.integers(1, 6))).tolist()
            lance.dataset(str(root)).delete(f"id in ({', '.join(map(str, gone))})")


@pytest.mark.parametrize("seed", range(12))
def test_groups_are_those_of_pylance(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    random_table(tmp_path, rng)
    for target in (3, 6, 11, 20, 1000):
        for threshold in (0.0, 0.1, 0.5, None):
            assert our_plan(tmp_path, CompactionOptions(target, threshold)) == pylance_plan(
                tmp_path,
                target_rows_per_fragment=target,
                materialize_deletions=threshold is not None,
                materialize_deletions_threshold=0.1 if threshold is None else threshold,
            ), (target, threshold)


def test_a_deferred_compaction_leaves_coverage_that_plans_follow(tmp_path: Path) -> None:
    for number in range(4):
        rows = pa.table({"id": range(10 * number, 10 * number + 10)})
        lance.write_dataset(rows, str(tmp_path), mode="append" if number else "create")
    dataset = lance.dataset(str(tmp_path))
    dataset.create_scalar_index("id", "BTREE")
    dataset.optimize.compact_files(target_rows_per_fragment=20, defer_index_remap=True)
    for start in (40, 50):
        lance.write_dataset(
            pa.table({"id": range(start, start + 10)}), str(tmp_path), mode="append"
        )
    options = CompactionOptions(target_rows_per_fragment=100)
    expected = pylance_plan(tmp_path, target_rows_per_fragment=100)
    assert our_plan(tmp_path, options) == expected
    assert len(expected) == 2


def test_the_configuration_says_what_is_wanted() -> None:
    prefix = "lance.compaction."
    config = {
        f"{prefix}target_rows_per_fragment": "7",
        f"{prefix}materialize_deletions_threshold": "0.5",
        f"{prefix}max_bytes_per_file": "100",
        "other": "x",
    }
    assert CompactionOptions.of_config(config) == CompactionOptions(7, 0.5, 100)
    assert CompactionOptions.of_config({}) == CompactionOptions()
    kept = CompactionOptions.of_config({f"{prefix}materialize_deletions": "false"})
    assert kept.deletions_threshold is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("target_rows_per_fragment", "many"),
        ("target_rows_per_fragment", "0"),
        ("materialize_deletions", "yes"),
        ("materialize_deletions_threshold", "half"),
        ("max_bytes_per_file", "-1"),
    ],
)
def test_a_configuration_that_makes_no_sense_is_refused(name: str, value: str) -> None:
    with pytest.raises(InvalidRequestError, match=name):
        CompactionOptions.of_config({f"lance.compaction.{name}": value})


def test_options_that_make_no_sense_are_refused() -> None:
    for wrong in (
        {"target_rows_per_fragment": 0},
        {"target_rows_per_fragment": 2**32 + 1},
        {"deletions_threshold": -0.1},
        {"deletions_threshold": float("nan")},
        {"deletions_threshold": "half"},
        {"max_bytes_per_file": 0},
        {"max_bytes_per_file": "1 GB"},
        {"target_rows_per_fragment": 1e6},
    ):
        with pytest.raises(InvalidRequestError, match=next(iter(wrong))):
            CompactionOptions(**wrong)
