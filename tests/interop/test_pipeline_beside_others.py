"""Upkeep while others commit, while the driver dies, and with two drivers of one job."""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pytest
from pyroaring import BitMap

from lance_core.errors import CommitConflictError, StoreUnavailableError
from lance_core.io.mapped_store import MappedStore
from lance_core.operations.compact_indices import IndexTreatment
from lance_core.operations.compact_plan import CompactionOptions
from lance_core.operations.compact_trim import reuse_growth
from lance_core.operations.new_index import NewIndex
from lance_core.table.commits_since import Lineage
from lance_core.table.transaction import Rewrite
from pipeline import lease
from pipeline.compact import compact
from pipeline.compact_plan import CompactionWish
from pipeline.job_states import JobState, job_reports
from pipeline.trim import trim_fri
from tests.pipeline_stages import LocalStages, local_context
from tests.pipeline_upkeep import Kept, made, rows
from tests.verified import verified

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from lance_core.proto import table_pb2
    from pipeline.stages import Worker

pytestmark = pytest.mark.interop

GRAPH = "IVF_HNSW_SQ"


class Disturbed(LocalStages):
    """Stages after each of which others do something, the first time."""

    def __init__(self, *disturbances: Callable[[], None]) -> None:
        super().__init__()
        self._left = list(disturbances)

    def run(
        self,
        name: str,
        items: Sequence[bytes],
        worker: Worker,
        *,
        weights: Sequence[int] | None = None,
    ) -> list[bytes]:
        results = super().run(name, items, worker, weights=weights)
        if self._left:
            self._left.pop(0)()
        return results


def wish(target_rows: int = 200, **more: Any) -> CompactionWish:
    return CompactionWish(CompactionOptions(target_rows, 0.0), **more)


def rewrites(kept: Kept) -> list[Rewrite]:
    """Return all compactions of a dataset's history."""
    lineage = Lineage(kept.dataset.snapshot.scheduler)
    lineage.refresh()
    found = [each.transaction.operation for each in lineage.commits_after(1)]
    return [each for each in found if isinstance(each, Rewrite)]


def check_moved_once(kept: Kept) -> None:
    """No fragment is compacted twice."""
    old = [f.id for each in rewrites(kept) for group in each.groups for f in group.old_fragments]
    assert max(Counter(old).values(), default=1) == 1


def test_others_commit_while_a_deferred_compaction_runs(tmp_path: Path) -> None:
    kept = made(tmp_path, 800)
    kept.index("IVF_PQ", "BTREE")
    built = []

    def others() -> None:
        kept.append(range(800, 900))
        kept.delete([805, 899])
        kept.index("BITMAP")  # over all fragments, before they are compacted
        kept.dataset.update_config({"a": "b"})
        built.append(kept.dataset.version)

    stages = Disturbed(others)
    version = compact(local_context(tmp_path, stages=stages), wish())
    assert stages.ran == [("compact", 4)]
    assert version == built[0] + 2
    assert len(kept.dataset.snapshot.fragments) == 5
    for kind in ("IVF_PQ", "BTREE"):
        assert kept.uncovered(kind) == [8]
    assert kept.uncovered("BITMAP") == []
    kept.check("IVF_PQ", "BTREE", "BITMAP")
    transaction: Any = lance.dataset(str(tmp_path)).read_transaction(version)
    assert transaction.transaction_properties["pipeline.kind"] == "compact"
    assert transaction.transaction_properties["pipeline.item_count"] == "4"


def test_an_index_that_was_built_before_a_compaction_is_committed_after_it(tmp_path: Path) -> None:
    kept = made(tmp_path)
    kept.index("IVF_PQ")
    before = kept.dataset
    segment = before.build_segment(NewIndex("of_btree", "key", "BTREE"))
    kept.delete(range(0, 600, 7))
    compact(local_context(tmp_path), wish())
    kept.dataset.commit_segments("of_btree", [segment])
    assert kept.uncovered("BTREE") == []
    kept.check("IVF_PQ", "BTREE")
    kept.append(range(700, 720))
    kept.dataset.optimize_indices()
    kept.check("IVF_PQ", "BTREE")
    trim_fri(local_context(tmp_path), max_versions=0)
    kept.check("IVF_PQ", "BTREE")
    assert verified(tmp_path) == []


@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_graph_is_not_committed_after_a_compaction_that_left_out_its_rows(
    tmp_path: Path, is_deleted: bool
) -> None:
    kept = made(tmp_path)
    kept.index("BTREE")  # so that the compaction is deferred
    kept.delete([3, 4])
    segment = graph_of(kept)
    if is_deleted:
        kept.delete([5])
    compact(local_context(tmp_path), wish())
    if is_deleted:
        with pytest.raises(CommitConflictError, match="holds in a graph"):
            kept.dataset.commit_segments(segment.name, [segment])
        kept.index(GRAPH)
    else:
        kept.dataset.commit_segments(segment.name, [segment])
    kept.check(GRAPH, "BTREE")


def test_only_the_bin_whose_rows_change_is_written_anew(tmp_path: Path) -> None:
    kept = made(tmp_path, 800)
    kept.index("IVF_PQ", "BTREE")
    stages = Disturbed(lambda: kept.delete([250, 251]), lambda: kept.delete([260]))
    compact(local_context(tmp_path, stages=stages), wish())
    assert stages.ran == [("compact", 4), ("compact", 1), ("compact", 1)]
    assert len(kept.dataset.snapshot.fragments) == 4
    check_moved_once(kept)
    kept.check("IVF_PQ", "BTREE")
    assert verified(tmp_path) == []


def test_a_bin_that_changes_again_and_again_is_left_and_the_others_are_done(tmp_path: Path) -> None:
    kept = made(tmp_path, 800)
    kept.index("BTREE")
    again = [lambda: kept.delete([int(kept.ids[250])])] * 3
    context = local_context(tmp_path, stages=Disturbed(*again), job_id="often")
    with pytest.raises(CommitConflictError):
        compact(context, wish())
    assert [each.physical_rows for each in kept.dataset.snapshot.fragments] == [100] * 2 + [200] * 3
    kept.check("BTREE")
    assert job_reports(context.state_uri)[0].state is JobState.FAILED
    stages = LocalStages()
    compact(local_context(tmp_path, stages=stages, job_id="often"), wish())
    assert stages.ran == [("compact", 1)]
    assert len(kept.dataset.snapshot.fragments) == 4
    kept.check("BTREE")


def graph_of(kept: Kept) -> table_pb2.IndexMetadata:
    """Build a graph of the rows that there are, without committing it."""
    column = GRAPH.lower()
    return kept.dataset.build_segment(
        NewIndex(f"of_{column}", column, GRAPH, {"num_partitions": 3})
    )


@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_graph_that_comes_meanwhile_is_not_left_behind(tmp_path: Path, is_deleted: bool) -> None:
    """One with rows that are deleted by now is not; one without such follows as others do."""
    kept = made(tmp_path, 800)
    kept.index("BTREE")
    graph = graph_of(kept) if is_deleted else None
    kept.delete([7, 8])
    segment = graph_of(kept) if graph is None else graph
    stages = Disturbed(lambda: (kept.dataset.commit_segments(segment.name, [segment]), None)[1])
    compact(local_context(tmp_path, stages=stages), wish(otherwise=IndexTreatment.DROP_COVERAGE))
    assert stages.ran == [("compact", 3), *[("compact", 1)] * is_deleted]
    assert len(kept.uncovered(GRAPH)) == 2 * is_deleted  # of the 298 rows that were in the bin
    kept.check(GRAPH, "BTREE", pylance=not is_deleted)
    lance.dataset(str(tmp_path)).to_table(
        nearest={"column": GRAPH.lower(), "q": np.zeros(16, np.float32), "k": 5}
    )


def test_indices_that_change_while_they_follow_are_followed_again(tmp_path: Path) -> None:
    kept = made(tmp_path, 400)
    kept.index("BTREE", "BITMAP", "IVF_PQ")
    compact(local_context(tmp_path), wish())

    def others() -> None:
        kept.append(range(400, 450))
        kept.dataset.optimize_indices(["of_btree"], num_segments_to_merge=0)
        kept.delete([3, 444])

    stages = Disturbed(others)
    report = trim_fri(local_context(tmp_path, stages=stages), max_versions=0)
    assert stages.ran == [("trim-fri", 3), ("trim-fri", 1)]
    assert report.num_after == 0
    kept.check("BTREE", "BITMAP", "IVF_PQ")
    assert verified(tmp_path) == []


def test_a_compaction_that_comes_while_indices_follow_stays_remembered(tmp_path: Path) -> None:
    kept = made(tmp_path, 400)
    kept.index("BTREE", "IVF_PQ")
    compact(local_context(tmp_path), wish())
    kept.delete(range(0, 400, 9))
    stages = Disturbed(lambda: (compact(local_context(tmp_path), wish(400)), None)[1])
    report = trim_fri(local_context(tmp_path, stages=stages), max_versions=0)
    assert (report.num_before, report.num_after) == (1, 1)
    kept.check("BTREE", "IVF_PQ")
    assert trim_fri(local_context(tmp_path), max_versions=0).num_after == 0
    kept.check("BTREE", "IVF_PQ")


class Killed(BaseException):
    """The driver is gone."""


def fail_once(monkeypatch: pytest.MonkeyPatch, number: int, when: str) -> list[str]:
    """Let the ``number``-th manifest be the last thing that a driver writes, or tries to.

    Returns a list that has the path once that has happened. ``lost``: it is written, the answer
    that it is does not arrive, and the driver goes on.
    """
    usual, calls, done = MappedStore.put_if_absent, [0], list[str]()

    def put(store: MappedStore, path: str, data: bytes) -> None:
        if path.startswith("_versions/") and not done:
            calls[0] += 1
            if calls[0] == number:
                done.append(path)
                if when == "before":
                    raise Killed
                usual(store, path, data)
                if when == "after":
                    raise Killed
                raise StoreUnavailableError("no answer")
        usual(store, path, data)

    monkeypatch.setattr(MappedStore, "put_if_absent", put)
    return done


def run_until_done(work: Callable[[], object]) -> int:
    """Run again and again what is killed; return how often."""
    for number in range(1, 5):
        try:
            work()
        except Killed:
            continue
        return number
    raise AssertionError("it is never done")


@pytest.mark.parametrize("when", ["before", "after", "lost"])
@pytest.mark.parametrize("number", range(1, 5))
def test_a_compaction_is_done_once_wherever_its_driver_dies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, when: str
) -> None:
    """Its commits: a reservation and a rewrite of bins under a graph, and of those deferred."""
    kept = made(tmp_path, 600, 50)
    kept.index(GRAPH, "BTREE")
    kept.delete([3, 60])
    done = fail_once(monkeypatch, number, when)

    def run() -> None:
        compact(local_context(tmp_path, job_id="one"), wish())

    assert run_until_done(run) == (1 if when == "lost" else 2)
    assert len(done) == 1
    check_moved_once(kept)
    assert sum(len(each.groups) for each in rewrites(kept)) == 2
    assert [each.physical_rows for each in kept.dataset.snapshot.fragments] == [200, 48, 200, 150]
    assert reuse_growth(kept.dataset.snapshot).num_versions == 1
    kept.check(GRAPH, "BTREE")
    version = kept.dataset.version
    run()
    assert kept.dataset.version == version
    assert verified(tmp_path) == []


@pytest.mark.parametrize("when", ["before", "after", "lost"])
@pytest.mark.parametrize("number", [1, 2])
def test_a_trim_is_done_once_wherever_its_driver_dies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, when: str
) -> None:
    kept = made(tmp_path, 400, 50)
    kept.index("IVF_PQ", "BTREE")
    kept.delete(range(5, 400, 11))
    compact(local_context(tmp_path), wish())
    version = kept.dataset.version
    done = fail_once(monkeypatch, number, when)
    run_until_done(lambda: trim_fri(local_context(tmp_path, job_id="one"), max_versions=0))
    assert len(done) == 1
    assert kept.dataset.version == version + 2
    assert reuse_growth(kept.dataset.snapshot).num_versions == 0
    kept.check("IVF_PQ", "BTREE")
    assert verified(tmp_path) == []


def test_of_two_drivers_one_commits_and_the_other_takes_nothing_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first stops before its commit, is taken for dead, and goes on after the second."""
    kept = made(tmp_path, 400, 50)
    kept.index("IVF_PQ", "BTREE")
    kept.delete([3])
    stopped, goes_on = threading.Event(), threading.Event()
    usual, versions = MappedStore.put_if_absent, list[int]()
    first = threading.Thread(target=lambda: versions.append(run()))

    def put(store: MappedStore, path: str, data: bytes) -> None:
        if path.startswith("_versions/") and threading.current_thread() is first:
            stopped.set()
            assert goes_on.wait(60)
        usual(store, path, data)

    def run() -> int:
        return compact(local_context(tmp_path, job_id="one"), wish())

    monkeypatch.setattr(MappedStore, "put_if_absent", put)
    first.start()
    assert stopped.wait(60)
    monkeypatch.setattr(lease, "STALE_S", -1.0)
    versions.append(run())
    goes_on.set()
    first.join()
    assert len(versions) == 2
    assert len(set(versions)) == 1
    check_moved_once(kept)
    kept.check("IVF_PQ", "BTREE")
    assert verified(tmp_path) == []


class Race:
    """Everything that happens to a table at the same time, each ten times."""

    def __init__(self, kept: Kept, rng: np.random.Generator) -> None:
        self._kept = kept
        self._batches = [range(start, start + 30) for start in range(600, 900, 30)]
        self._dead = rng.permutation(600)[:80].reshape(10, 8)
        self.failures: list[BaseException] = []

    def run(self) -> None:
        works = (self.append, self.delete, self.optimize, self.compact, self.trim)
        threads = [threading.Thread(target=self._rounds, args=(work,)) for work in works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._kept.ids |= BitMap(range(600, 900))
        self._kept.ids -= BitMap(self._dead.ravel().tolist())

    def _rounds(self, work: Callable[[int], None]) -> None:
        try:
            for number in range(10):
                work(number)
        except BaseException as error:
            self.failures.append(error)

    def append(self, number: int) -> None:
        self._kept.dataset.append(rows(self._batches[number]))

    def delete(self, number: int) -> None:
        chosen = ", ".join(map(str, self._dead[number].tolist()))
        self._kept.dataset.delete(f"id IN ({chosen})")

    def optimize(self, number: int) -> None:
        if number % 3 == 0:
            self._kept.dataset.optimize_indices(["of_btree"])

    def compact(self, number: int) -> None:
        if number % 2 == 0:
            context = local_context(self._kept.root)
            unless_busy(lambda: compact(context, wish(60 + 40 * number)))

    def trim(self, number: int) -> None:
        if number % 3 == 2:
            unless_busy(lambda: trim_fri(local_context(self._kept.root), max_versions=0))


@pytest.mark.parametrize("seed", range(2))
def test_rows_and_answers_survive_a_race_of_everything(tmp_path: Path, seed: int) -> None:
    kept = made(tmp_path, 600, 50)
    kept.index("BTREE", "IVF_PQ", "BITMAP")
    race = Race(kept, np.random.default_rng(seed))
    race.run()
    assert race.failures == []
    check_moved_once(kept)
    kept.check("BTREE", "IVF_PQ", "BITMAP", pylance=False)
    kept.dataset.optimize_indices()
    trim_fri(local_context(tmp_path), max_versions=0)
    kept.check("BTREE", "IVF_PQ", "BITMAP")
    assert verified(tmp_path) == []


def unless_busy(work: Callable[[], object]) -> None:
    """Let a job give up that others were in the way of three times."""
    try:
        work()
    except CommitConflictError as error:
        if not error.is_retryable:
            raise
