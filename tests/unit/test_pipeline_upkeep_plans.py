"""Plans of upkeep without Spark or pylance: bins, messages, states of jobs."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from lance_core.dataset import Dataset, open_dataset, write_dataset
from lance_core.errors import CorruptFileError, InvalidRequestError
from lance_core.io.memory_store import MemoryStore
from lance_core.io.scheduler import RangeScheduler
from lance_core.operations.append import create_dataset
from lance_core.operations.cleanup import clean_up
from lance_core.operations.cleanup_plan import CleanupOptions
from lance_core.operations.compact_indices import IndexTreatment
from lance_core.operations.compact_plan import CompactionOptions
from lance_core.operations.new_index import NewIndex
from lance_core.proto import table_pb2
from lance_core.query.session import Session
from lance_core.table.commit import commit
from lance_core.table.transaction import Overwrite, Transaction
from pipeline import gc
from pipeline.cli.status import lines_of
from pipeline.compact import CompactJob, compact
from pipeline.compact_messages import bin_from_bytes, bin_to_bytes, result_from_bytes
from pipeline.compact_plan import CompactionWish, plan_bins
from pipeline.errors import JobRunningError
from pipeline.gc import Cleaned, clean_up_dataset
from pipeline.ingest_items import Written
from pipeline.ingest_target import Target
from pipeline.job_states import JobState, job_reports
from pipeline.journal import Journal
from pipeline.lease import Lease
from pipeline.result_files import keys_of_result
from pipeline.status import status_of
from pipeline.trim import trim_fri
from tests.pipeline_stages import LocalStages, local_context

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from lance_core.operations.cleanup import CleanupReport
    from pipeline.job import JobContext


def written(root: Path, sizes: Sequence[int], **options: Any) -> Dataset:
    """Write a dataset of fragments of so many rows."""
    start, dataset = 0, None
    for size in sizes:
        table = pa.table({"id": np.arange(start, start + size)})
        mode: Literal["create", "append"] = "create" if dataset is None else "append"
        dataset = write_dataset(root, table, mode=mode, **options)
        start += size
    assert dataset is not None
    return dataset


def wish(target: int = 100, **more: Any) -> CompactionWish:
    return CompactionWish(CompactionOptions(target, 0.1), **more)


def ids_of(root: Path) -> list[int]:
    found: list[int] = open_dataset(root).scan(["id"]).read_all()["id"].to_pylist()
    return found


def planned(sizes: Sequence[tuple[int, int]]) -> Dataset:
    """Return a version whose manifest names fragments of so many rows and deleted ones."""
    fragments = [
        table_pb2.DataFragment(
            physical_rows=rows,
            deletion_file=table_pb2.DeletionFile(
                file_type=table_pb2.DeletionFile.BITMAP, id=7, num_deleted_rows=deleted
            )
            if deleted > 0
            else None,
        )
        for rows, deleted in sizes
    ]
    first = create_dataset(RangeScheduler(MemoryStore()), pa.table({"id": [1]}))
    fields = tuple(first.manifest.message.fields)
    snapshot = commit(first.scheduler, Transaction(1, Overwrite(tuple(fragments), fields)))
    return Dataset(Session(1 << 20), snapshot)


@settings(max_examples=60)
@given(
    sizes=st.lists(
        st.integers(1, 150).flatmap(
            lambda rows: st.tuples(st.just(rows), st.integers(0, rows - 1))
        ),
        min_size=1,
        max_size=25,
    ),
    target=st.integers(1, 130),
    most=st.one_of(st.none(), st.integers(2, 12)),
)
def test_bins_are_runs_of_neighbours_with_all_that_is_worth_it(
    sizes: list[tuple[int, int]], target: int, most: int | None
) -> None:
    dataset = planned(sizes)
    order = [int(each.id) for each in dataset.snapshot.fragments]
    live = {each: rows - dead for each, (rows, dead) in zip(order, sizes, strict=True)}
    bins = [each.task.fragment_ids for each in plan_bins(dataset, wish(target))]
    taken = [fragment for one in bins for fragment in one]
    assert taken == sorted(set(taken))
    for one in bins:
        start = order.index(one[0])
        assert list(one) == order[start : start + len(one)]
        full = [sum(live[each] for each in one[: end + 1]) >= target for end in range(len(one))]
        if True in full:  # what came after it was too little for a fragment of its own
            rest = one[full.index(True) + 1 :]
            assert sum(live[each] for each in rest) < target
    by_rows = {each for each, (rows, _) in zip(order, sizes, strict=True) if rows < target}
    deleted = {each for each, (rows, dead) in zip(order, sizes, strict=True) if dead / rows > 0.1}
    assert deleted <= set(taken) <= by_rows | deleted
    small = [pair for pair in pairwise(order) if set(pair) <= by_rows | deleted]
    lonely = {each for pair in small for each in pair} - set(taken)
    assert all(len(lonely & set(pair)) < 2 for pair in small)
    fewer = plan_bins(dataset, wish(target, max_source_fragments=most))
    limited = [each.task.fragment_ids for each in fewer]
    if most is not None:
        assert sum(map(len, limited)) <= most
        assert (limited == []) == (bins == [])
        assert limited == bins[: len(limited)] or limited == [bins[0][:most]]


def test_only_fragments_that_may_be_read_are() -> None:
    dataset = planned([(10, 0)] * 8)
    order = [int(each.id) for each in dataset.snapshot.fragments]
    chosen = [order[0], order[1], order[3], order[4], order[5], order[7]]
    bins = plan_bins(dataset, wish().of(chosen))
    assert [each.task.fragment_ids for each in bins] == [tuple(order[:2]), tuple(order[3:6])]


def test_messages_come_back_as_they_were_and_others_are_refused(tmp_path: Path) -> None:
    dataset = written(tmp_path, [10, 10, 10])
    (one,) = plan_bins(dataset, wish())
    assert bin_from_bytes(bin_to_bytes(one), wish().options) == one
    job = CompactJob(local_context(tmp_path), wish())
    result = job.worker()(bin_to_bytes(one))
    treatment, found = result_from_bytes(result)
    assert treatment is IndexTreatment.DEFER
    assert [each.physical_rows for each in found.new_fragments] == [30]
    assert job.has_files(result)
    (tmp_path / "data" / found.new_fragments[0].files[0].path).write_bytes(b"cut")
    assert not job.has_files(result)
    for wrong in (b"", b"[]", b'{"fragments": 3}', b'{"treatment": "x"}', result[:-9]):
        with pytest.raises(CorruptFileError):
            bin_from_bytes(wrong, wish().options)
        with pytest.raises(CorruptFileError):
            result_from_bytes(wrong)


def test_wishes_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    written(tmp_path, [10, 10])
    with pytest.raises(InvalidRequestError, match="otherwise"):
        wish(otherwise=IndexTreatment.DEFER)
    with pytest.raises(InvalidRequestError, match="max_source_fragments"):
        wish(max_source_fragments=1)
    with pytest.raises(InvalidRequestError, match="commit_every"):
        compact(local_context(tmp_path), wish(), commit_every=-1)
    with pytest.raises(InvalidRequestError, match="max_versions"):
        trim_fri(local_context(tmp_path), max_versions=-1)
    with pytest.raises(InvalidRequestError, match="delete_concurrency"):
        clean_up_dataset(local_context(tmp_path), CleanupOptions(), delete_concurrency=0)


def test_rows_with_stable_ids_are_compacted_at_once(tmp_path: Path) -> None:
    dataset = written(tmp_path, [10, 10, 10], stable_row_ids=True)
    dataset.create_index("id", "BTREE")
    (one,) = plan_bins(open_dataset(tmp_path), wish())
    assert one.treatment is IndexTreatment.REMAP
    compact(local_context(tmp_path), wish())
    after = open_dataset(tmp_path)
    assert ids_of(tmp_path) == list(range(30))
    assert [each.name for each in after.list_indices()] == ["id_idx"]
    assert after.list_indices()[0].num_unindexed_rows == 0
    assert status_of(local_context(tmp_path)).reuse.num_versions == 0


def test_parts_are_committed_one_after_the_other_and_a_rerun_adds_nothing(tmp_path: Path) -> None:
    dataset = written(tmp_path, [50] * 8)
    dataset.create_index("id", "BTREE")
    before = open_dataset(tmp_path).version
    stages = LocalStages()
    context = local_context(tmp_path, job_id="parts", stages=stages)
    version = compact(context, wish(), commit_every=2)
    assert stages.ran == [("compact", 2), ("compact", 2)]
    assert version == before + 4  # a reservation and a rewrite each
    assert [each.physical_rows for each in open_dataset(tmp_path).snapshot.fragments] == [100] * 4
    assert ids_of(tmp_path) == list(range(400))
    assert status_of(context).reuse.num_versions == 2
    assert compact(context, wish(), commit_every=2) == version
    assert len(stages.ran) == 2
    with pytest.raises(InvalidRequestError, match="commit_every"):
        compact(context, wish(), commit_every=3)


def test_nothing_is_trimmed_before_it_is_due(tmp_path: Path) -> None:
    written(tmp_path, [50] * 4).create_index("id", "BTREE")
    compact(local_context(tmp_path), wish())
    version = open_dataset(tmp_path).version
    assert trim_fri(local_context(tmp_path)).version == version
    told = trim_fri(local_context(tmp_path), max_versions=1)
    assert (told.version, told.num_after) == (version, 1)
    assert trim_fri(local_context(tmp_path), remap=False, max_versions=0).num_after == 1
    assert trim_fri(local_context(tmp_path), max_versions=0).num_after == 0
    assert open_dataset(tmp_path).version == version + 2


def test_a_dry_run_changes_nothing(tmp_path: Path) -> None:
    root = tmp_path / "t"
    written(root, [50] * 4).create_index("id", "BTREE")
    context = local_context(root, dry_run=True)
    version = open_dataset(root).version
    assert compact(context, wish(), commit_every=1) == version
    compact(local_context(root), wish())
    version = open_dataset(root).version
    assert trim_fri(context, max_versions=0).version == version
    cleaned = clean_up_dataset(context, CleanupOptions(older_than=timedelta(0)))
    assert len(cleaned.report.versions) == version - 1
    assert len(open_dataset(root).versions()) == version == open_dataset(root).version


class TestCleanup:
    """Beside jobs in each state."""

    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        root = tmp_path / "t"
        written(root, [50] * 4).create_index("id", "BTREE")
        return root

    @staticmethod
    def begun(root: Path, job_id: str) -> tuple[Journal, set[str]]:
        """Begin a job, and let its workers work; return the files that they wrote."""
        context = local_context(root, job_id=job_id)
        dataset, job = context.open(), CompactJob(context, wish())
        before = files_of(root)
        items = job.plan(dataset)
        context.journal.begin(job.kind, job.params(), dataset.version, items)
        for number, item in enumerate(items):
            context.journal.record(number, job.worker()(item))
        return context.journal, files_of(root) - before

    @staticmethod
    def cleaned(root: Path, **options: Any) -> set[str]:
        """Clean up; return the files that went."""
        before = files_of(root)
        clean_up_dataset(local_context(root), CleanupOptions(**options))
        return before - files_of(root)

    def test_what_a_job_reads_and_has_written_stays_while_it_is_open(self, root: Path) -> None:
        _, new = self.begun(root, "one")
        read_version = open_dataset(root).version
        age(root, 8 * 86_400)
        for number in range(3):
            write_dataset(root, pa.table({"id": [1000 + number]}), mode="append")
        gone = self.cleaned(root, older_than=timedelta(0), delete_unverified=True)
        assert not gone & new
        assert min(each.version for each in open_dataset(root).versions()) == read_version
        assert job_reports(local_context(root).state_uri)[0].state is JobState.INTERRUPTED
        compact(local_context(root, job_id="one"), wish())
        assert sorted(ids_of(root)) == [*range(200), 1000, 1001, 1002]
        assert list(open_dataset(root).verify()) == []

    def test_what_an_ended_job_has_left_goes_after_an_hour(self, root: Path) -> None:
        journal, new = self.begun(root, "one")
        unknown = root / "data" / "unknown.lance"
        unknown.write_bytes(b"x")
        with Lease(journal):
            pass  # it fails
        age(root, 1800)
        assert self.cleaned(root) == set()
        age(root, 4000)
        assert self.cleaned(root) == new
        assert unknown.exists()
        # what is gone is written anew when the job is run again
        compact(local_context(root, job_id="one"), wish())
        assert ids_of(root) == list(range(200))

    def test_attempts_that_lost_go_and_what_was_committed_stays(self, root: Path) -> None:
        journal, new = self.begun(root, "one")
        plan = journal.plan()
        assert plan is not None
        job = CompactJob(local_context(root), wish())
        before = files_of(root)
        journal.record(0, job.worker()(plan.items[0]))
        both = new | (files_of(root) - before)
        compact(local_context(root, job_id="one"), wish())
        age(root, 4000)
        named = {
            f"data/{file.path}"
            for each in open_dataset(root).snapshot.fragments
            for file in each.data_files
        }
        assert self.cleaned(root) == both - named
        assert len(both & named) == 2
        assert ids_of(root) == list(range(200))

    def test_a_job_that_ended_cannot_go_on_while_its_files_are_removed(
        self, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        journal, _ = self.begun(root, "one")
        with Lease(journal):
            pass
        seen = []

        def tried(*given: Any, **more: Any) -> CleanupReport:
            with pytest.raises(JobRunningError):
                compact(local_context(root, job_id="one"), wish())
            seen.append(more["writers"])
            return clean_up(*given, **more)

        monkeypatch.setattr(gc, "clean_up", tried)
        self.cleaned(root)
        assert len(seen) == 1
        compact(local_context(root, job_id="one"), wish())
        assert ids_of(root) == list(range(200))


def test_files_are_known_by_the_results_of_all_jobs_that_write_some(tmp_path: Path) -> None:
    dataset = written(tmp_path, [50, 50])
    index = NewIndex("of_id", "id", "BTREE")
    segment = dataset.build_segment(index).SerializeToString()
    fragment = dataset.snapshot.manifest.message.fragments[0]
    of_rows = Written(
        Target(dataset.schema, dataset.snapshot.schema, "2.2"), (fragment,)
    ).to_bytes()
    for kind in ("build-index", "merge", "refresh-index", "optimize-index"):
        (key,) = keys_of_result(kind, segment)
        assert (tmp_path / key).is_dir()
        with pytest.raises(CorruptFileError):
            keys_of_result(kind, b"x")
    (key,) = keys_of_result("ingest", of_rows)
    assert (tmp_path / f"{key}.lance").is_file()
    assert keys_of_result("search", b"whatever") == frozenset()


def files_of(root: Path) -> set[str]:
    return {str(each.relative_to(root)) for each in root.rglob("*") if each.is_file()}


def age(root: Path, seconds: float) -> None:
    """Let all files be older than they are."""
    for each in root.rglob("*"):
        if each.is_file():
            at = time.time() - seconds
            os.utime(each, (at, at))


def test_jobs_are_told_by_what_their_journals_say(tmp_path: Path) -> None:
    written(tmp_path / "t", [50] * 4).create_index("id", "BTREE")
    context = local_context(tmp_path / "t", job_id="done")
    state_uri = context.state_uri
    compact(context, wish())
    done = open_dataset(tmp_path / "t").version
    journals = {name: Journal.of(state_uri, name) for name in ("running", "dead", "failed")}
    for journal in journals.values():
        journal.begin("compact", {}, 3, [b"a", b"b"])
    journals["failed"].record(1, b"x")
    with Lease(journals["failed"]):
        pass
    with Lease(journals["running"]):
        found = {each.job_id: each for each in job_reports(state_uri)}
        assert found["running"].state is JobState.RUNNING
        assert found["dead"].state is JobState.INTERRUPTED
        assert found["failed"].state is JobState.FAILED
        assert (found["failed"].num_items, found["failed"].num_done) == (2, 1)
        assert (found["done"].state, found["done"].version) == (JobState.DONE, done)
    later = {each.job_id: each.state for each in job_reports(state_uri, now=time.time() + 9e5)}
    assert later == {
        "done": JobState.DONE,
        **dict.fromkeys(("running", "dead", "failed"), JobState.GIVEN_UP),
    }


def test_journals_of_jobs_that_are_over_go_when_that_was_long_ago(tmp_path: Path) -> None:
    written(tmp_path / "t", [50] * 4)
    context = local_context(tmp_path / "t")
    kinds = {"b": "search", "b.model": "train", "m": "train", "m.2": "search", "f": "search"}
    for name, kind in kinds.items():
        journal = Journal.of(context.state_uri, name)
        journal.begin(kind, {}, 1, [b"a"])
        journal.record(0, b"x")
        if name != "f":
            journal.mark_committed(1)
    Journal.of(context.state_uri, "b.scatter").record(0, b"kept by a stage")
    folder = Path(context.state_uri)
    age(folder, 2 * 86_400)
    Journal.of(context.state_uri, "young").begin("compact", {}, 1, [])
    Journal.of(context.state_uri, "young").mark_committed(1)
    everything = {each.name for each in folder.iterdir()}

    def forget(context: JobContext, **how: float) -> Cleaned:
        keep = CleanupOptions(retain_versions=9)
        return clean_up_dataset(context, keep, forget_jobs_after=timedelta(**how))

    assert forget(context, days=3).forgotten_jobs == ()
    told = forget(replace(context, dry_run=True), days=1).forgotten_jobs
    assert set(told) == {"b", "b.model", "m.2"}
    assert {each.name for each in folder.iterdir()} == everything
    assert forget(context, days=1).forgotten_jobs == told
    assert {each.name for each in folder.iterdir()} == {"m", "f", "young"}
    age(folder, 8 * 86_400)
    assert set(forget(context, days=1).forgotten_jobs) == {"f", "young"}
    with pytest.raises(InvalidRequestError, match="age of 0 or more"):
        forget(context, days=-1)


def test_a_journal_that_cannot_be_read_is_told_and_stops_a_cleanup(tmp_path: Path) -> None:
    written(tmp_path / "t", [50] * 4)
    context = local_context(tmp_path / "t", job_id="odd")
    context.journal.put("plan.json", b'{"kind": 3}')
    (report,) = status_of(context).jobs
    assert (report.state, report.job_id) == (JobState.UNREADABLE, "odd")
    assert report.fault is not None
    assert "job odd" in "\n".join(lines_of(status_of(context)))
    with pytest.raises(InvalidRequestError, match="journal of job 'odd' cannot be read"):
        clean_up_dataset(context, CleanupOptions(older_than=timedelta(0)))
    assert len(open_dataset(tmp_path / "t").versions()) == 4


def test_the_status_says_what_there_is_to_do(tmp_path: Path) -> None:
    dataset = written(tmp_path / "t", [50] * 4)
    dataset.create_index("id", "BTREE")
    context = local_context(tmp_path / "t", job_id="first")
    compact(context, wish())
    write_dataset(tmp_path / "t", pa.table({"id": [1000, 1001]}), mode="append")
    found = status_of(context)
    (index,) = found.indices
    assert (index.num_unindexed_rows, index.num_segments, index.num_behind) == (2, 1, 1)
    assert found.reuse.num_versions == 1
    assert found.num_small_fragments == 2  # the new one is in no index: it stays alone
    assert any("compact_files()" in each for each in found.warnings)
    verbs = [each.split()[1] for each in found.advice]
    assert verbs == ["compact", "refresh-index"]
    text = "\n".join(lines_of(found))
    assert "202 rows in 3 fragments, 2 of them worth compacting" in text
    assert "job first (compact): done, 2 of 2 items" in text
    trim_fri(context_of(context, "second"), max_versions=0)
    assert status_of(context).warnings == ()


def context_of(context: JobContext, job_id: str) -> JobContext:
    return replace(context, job_id=job_id)
