"""Deferred compactions by jobs: each kind of index answers right before, between and after."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from lance_core.operations.compact_indices import IndexTreatment
from lance_core.operations.compact_plan import CompactionOptions
from lance_core.operations.compact_trim import reuse_growth
from pipeline.compact import compact
from pipeline.compact_plan import CompactionWish
from pipeline.job import run_job
from pipeline.status import status_of
from pipeline.trim import FollowJob, trim_fri
from tests.pipeline_stages import LocalStages, local_context
from tests.pipeline_upkeep import WITHOUT_GRAPH, Kept, made
from tests.verified import verified

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

SCENARIOS = ("merge only", "with deletes", "whole fragment deleted", "two chained")
GRAPH = "IVF_HNSW_SQ"


def compacted(kept: Kept, target_rows: int = 300, **wished: Any) -> int:
    wish = CompactionWish(CompactionOptions(target_rows, 0.0), **wished)
    return compact(local_context(kept.root), wish)


def played(kept: Kept, scenario: str, **wished: Any) -> None:
    """Delete and compact as a scenario says."""
    if scenario == "with deletes":
        kept.delete(range(2, 600, 5))
    elif scenario == "whole fragment deleted":
        kept.delete([*range(200, 300), 5, 599])
    elif scenario == "two chained":
        kept.delete(range(1, 600, 9))
        compacted(kept, 200, **wished)
        kept.delete(range(3, 600, 11))
    compacted(kept, **wished)


def followed(kept: Kept) -> None:
    run_job(local_context(kept.root), FollowJob(str(kept.root), None))


def num_compactions(kept: Kept) -> int:
    return reuse_growth(kept.dataset.snapshot).num_versions


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_rows_are_found_whatever_has_been_followed(tmp_path: Path, scenario: str) -> None:
    kept = made(tmp_path)
    kept.index(*WITHOUT_GRAPH)
    played(kept, scenario)
    assert [kind for kind in WITHOUT_GRAPH if kept.uncovered(kind)] == []
    assert num_compactions(kept) == (2 if scenario == "two chained" else 1)
    kept.check(*WITHOUT_GRAPH)
    followed(kept)
    assert num_compactions(kept) > 0
    kept.check(*WITHOUT_GRAPH)
    report = trim_fri(local_context(tmp_path), remap=False, max_versions=0)
    assert (report.num_after, num_compactions(kept)) == (0, 0)
    assert [kind for kind in WITHOUT_GRAPH if kept.uncovered(kind)] == []
    kept.check(*WITHOUT_GRAPH)
    assert verified(tmp_path) == []


@pytest.mark.parametrize("otherwise", ["remap", "drop_coverage"])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_graphs_with_deleted_rows_are_not_deferred(
    tmp_path: Path, scenario: str, otherwise: str
) -> None:
    kept = made(tmp_path)
    kept.index(GRAPH, "BTREE")
    played(kept, scenario, otherwise=IndexTreatment(otherwise))
    is_deferred = scenario == "merge only"
    assert num_compactions(kept) == int(is_deferred)
    drops = otherwise == "drop_coverage" and not is_deferred
    assert (kept.uncovered(GRAPH) != []) == drops
    kept.check(GRAPH, "BTREE", pylance=not drops)
    followed(kept)
    kept.check(GRAPH, "BTREE", pylance=not drops)
    assert trim_fri(local_context(tmp_path), max_versions=0).num_after == 0
    kept.check(GRAPH, "BTREE", pylance=not drops)
    assert verified(tmp_path) == []


@pytest.mark.parametrize("by_pylance", [False, True])
@pytest.mark.parametrize("scenario", SCENARIOS[1:])
def test_rows_are_found_after_indices_are_optimized(
    tmp_path: Path, scenario: str, by_pylance: bool
) -> None:
    kept = made(tmp_path)
    kept.index(*WITHOUT_GRAPH)
    played(kept, scenario)
    kept.append(range(600, 680), by_pylance=by_pylance)
    kept.delete([601, 4])
    kept.dataset.optimize_indices()
    kept.check(*WITHOUT_GRAPH)
    assert trim_fri(local_context(tmp_path), max_versions=0).num_after == 0
    assert [kind for kind in WITHOUT_GRAPH if kept.uncovered(kind)] == []
    kept.check(*WITHOUT_GRAPH)
    assert verified(tmp_path) == []


def test_workers_write_each_segment_that_is_not_deferred(tmp_path: Path) -> None:
    kept = made(tmp_path)
    kept.index("IVF_PQ", "BTREE", GRAPH)
    kept.delete([1, 599])
    stages = LocalStages()
    wish = CompactionWish(CompactionOptions(200, 0.0))
    compact(local_context(tmp_path, stages=stages), wish)
    assert stages.ran == [("compact", 2), ("remap", 3)]
    kept.check("IVF_PQ", "BTREE", GRAPH)
    assert verified(tmp_path) == []


OVER_PENDING = (GRAPH, "IVF_PQ", "BTREE", "BITMAP", "INVERTED")


@pytest.mark.parametrize("otherwise", ["remap", "drop_coverage"])
def test_what_is_done_at_once_over_what_is_pending_loses_nothing(
    tmp_path: Path, otherwise: str
) -> None:
    """The reference loses rows of some kinds there, so it is asked only once all is followed."""
    kept = made(tmp_path)
    kept.index(*OVER_PENDING)
    kept.dataset.create_index("key", "ZONEMAP", name="zones")  # which can follow nothing
    compacted(kept)
    assert num_compactions(kept) == 1
    kept.delete(range(7, 330, 13))
    compacted(kept, 1000, otherwise=IndexTreatment(otherwise))
    kept.check(*OVER_PENDING, pylance=False)
    followed(kept)
    kept.check(*OVER_PENDING, pylance=False)
    trim_fri(local_context(tmp_path), max_versions=0)
    kept.check(*OVER_PENDING, pylance=False)
    for kind in OVER_PENDING:
        kept.index(kind)
    kept.dataset.drop_index("zones")
    assert trim_fri(local_context(tmp_path), max_versions=0).num_after == 0
    kept.check(*OVER_PENDING)
    assert verified(tmp_path) == []


def test_a_kind_that_cannot_follow_keeps_the_compaction_until_it_is_built_anew(
    tmp_path: Path,
) -> None:
    kept = made(tmp_path)
    kept.index("BTREE")
    kept.dataset.create_index("id", "ZONEMAP", name="zones")
    kept.delete(range(0, 600, 6))
    compacted(kept)
    assert trim_fri(local_context(tmp_path), max_versions=0).num_after == 1
    (warned,) = [each for each in status_of(local_context(tmp_path)).warnings if "zones" in each]
    assert "build it anew" in warned
    found = kept.dataset.scan(["id"], filter="id >= 100 AND id < 400").read_all()
    assert sorted(found["id"].to_pylist()) == [each for each in kept.ids if 100 <= each < 400]
    kept.dataset.create_index("id", "ZONEMAP", name="zones")
    assert trim_fri(local_context(tmp_path), max_versions=0).num_after == 0
    kept.check("BTREE")
