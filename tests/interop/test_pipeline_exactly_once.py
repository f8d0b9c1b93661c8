"""Each event of the table of faults, with ingest: every row once, one new version."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lance_core.dataset import open_dataset
from lance_core.errors import CommitConflictError, InvalidRequestError
from pipeline import job as frame
from pipeline.errors import JobRunningError, StageFailedError
from pipeline.ingest import ingest_files
from pipeline.ingest_sources import Sources
from pipeline.ingest_target import Mode, Place
from pipeline.journal import Journal, open_jobs
from pipeline.lease import STALE_S, Lease
from tests.pipeline_crashes import MOMENTS, DriverDiedError, dying
from tests.pipeline_stages import LocalStages, local_context
from tests.pipeline_workers import faulty

ROWS, FILES = 30, 3


@pytest.fixture
def place(tmp_path):
    folder = tmp_path / "rows"
    folder.mkdir()
    for number in range(FILES):
        ids = range(number * ROWS, (number + 1) * ROWS)
        pq.write_table(pa.table({"id": ids}), folder / f"{number}.parquet")
    return tmp_path


@pytest.fixture
def with_rows(place):
    """Return the place with a dataset of two rows in it."""
    lance.write_dataset(pa.table({"id": [-2, -1]}), str(place / "a.lance"))
    return place


def ingest(place, *, job_id="job", stages=None, task_rows=ROWS, **options):
    context = local_context(place / "a.lance", job_id=job_id, stages=stages)
    sources = Sources((str(place / "rows"),))
    target = Place(context.uri, **options)
    return ingest_files(context, sources, target, task_rows=task_rows)


def ids(place, version=None):
    return lance.dataset(str(place / "a.lance"), version=version).to_table()["id"].to_pylist()


ALL = list(range(ROWS * FILES))


class Faulty(LocalStages):
    """Items of all stages have a fault the first time they are run."""

    def __init__(self, folder, fault):
        super().__init__()
        self._wrap = partial(faulty, folder=str(folder), fault=fault)

    def run(self, name, items, worker, *, weights=None):
        return super().run(name, items, self._wrap(worker), weights=weights)


class DiesAfter(LocalStages):
    """The driver dies when so many items are done."""

    def __init__(self, count):
        super().__init__()
        self._count = count

    def run(self, name, items, worker, *, weights=None):
        super().run(name, items[: self._count], worker)
        raise DriverDiedError


@pytest.mark.parametrize("fault", ["raise", "twice"])
def test_attempts_that_fail_and_results_that_are_lost_leave_files_but_no_rows(place, fault):
    marks = place / "marks"
    marks.mkdir()
    assert ingest(place, stages=Faulty(marks, fault)) == 1
    assert ids(place) == ALL
    files = len(list((place / "a.lance" / "data").iterdir()))
    assert files == (FILES if fault == "raise" else 2 * FILES)


def test_a_job_whose_driver_died_goes_on_with_the_items_that_are_missing(place):
    with pytest.raises(DriverDiedError):
        ingest(place, stages=DiesAfter(2))
    assert not (place / "a.lance" / "_versions").exists()
    assert [each.job_id for each in open_jobs(str(place / ".a.lance.pipeline"))] == ["job"]
    stages = LocalStages()
    assert ingest(place, stages=stages) == 1
    assert stages.ran == [("ingest", 1)]
    assert ids(place) == ALL
    assert open_jobs(str(place / ".a.lance.pipeline")) == []


def test_an_item_whose_files_are_gone_or_cut_is_done_again(place):
    with pytest.raises(DriverDiedError):
        ingest(place, stages=DiesAfter(3))
    first, second, _ = sorted((place / "a.lance" / "data").iterdir())
    first.unlink()
    second.write_bytes(second.read_bytes()[:-1])
    stages = LocalStages()
    ingest(place, stages=stages)
    assert stages.ran == [("ingest", 2)]
    assert ids(place) == ALL


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("mode", [Mode.APPEND, Mode.OVERWRITE])
def test_a_driver_that_dies_during_the_commit_has_committed_or_not_and_the_next_one_finds_out(
    with_rows, moment, mode
):
    with dying(moment):
        if moment == "the answer is lost":  # which the commit itself finds out
            assert ingest(with_rows, mode=mode) == 2
        else:
            with pytest.raises(DriverDiedError):
                ingest(with_rows, mode=mode)
    assert ingest(with_rows, mode=mode) == 2
    assert ids(with_rows) == (ALL if mode is Mode.OVERWRITE else [-2, -1, *ALL])
    assert lance.dataset(str(with_rows / "a.lance")).version == 2


@pytest.mark.parametrize("moment", MOMENTS[:2])
def test_so_it_is_where_the_dataset_is_made(place, moment):
    with dying(moment), pytest.raises(DriverDiedError):
        ingest(place, mode=Mode.CREATE)
    assert ingest(place, mode=Mode.CREATE) == 1
    assert ids(place) == ALL


def test_a_commit_is_found_also_behind_those_of_others(with_rows):
    with dying("after the manifest"), pytest.raises(DriverDiedError):
        ingest(with_rows)
    open_dataset(with_rows / "a.lance").delete("id = 0")
    lance.write_dataset(pa.table({"id": [-3]}), str(with_rows / "a.lance"), mode="append")
    stages = LocalStages()
    assert ingest(with_rows, stages=stages) == 2
    assert stages.ran == []
    assert sorted(ids(with_rows)) == [-3, -2, -1, *ALL[1:]]


def test_a_job_that_is_done_is_not_done_again(place):
    assert ingest(place) == 1
    stages = LocalStages()
    assert ingest(place, stages=stages) == 1
    assert stages.ran == []
    assert ids(place) == ALL
    assert ingest(place, job_id="another") == 2
    assert ids(place) == ALL * 2


def test_a_plan_of_other_parameters_is_refused_finished_or_not(place):
    with pytest.raises(DriverDiedError):
        ingest(place, stages=DiesAfter(1))
    with pytest.raises(InvalidRequestError, match="begun with other task_rows"):
        ingest(place, task_rows=1)
    ingest(place)
    with pytest.raises(InvalidRequestError, match="begun with other mode"):
        ingest(place, mode=Mode.OVERWRITE)


def test_a_second_driver_is_refused_until_the_first_is_dead(place):
    journal = Journal.of(str(place / ".a.lance.pipeline"), "job")
    with Lease(journal):
        with pytest.raises(JobRunningError):
            ingest(place)
        state = json.loads(journal.get("lease-1.json") or b"")
        old = state | {"renewed_at": state["renewed_at"] - STALE_S - 1}
        journal.put("lease-1.json", json.dumps(old).encode())
        assert ingest(place) == 1
    assert ids(place) == ALL


def test_a_driver_that_was_taken_for_dead_does_not_commit(place):
    class Overtaken(LocalStages):
        def run(self, name, items, worker, *, weights=None):
            results = super().run(name, items, worker, weights=weights)
            Journal.of(str(place / ".a.lance.pipeline"), "job").put("lease-9.json", b'{"owner": "", "machine": null, "pid": 1, "renewed_at": 9e9, "is_released": false}')  # fmt: skip  # noqa: E501
            return results

    with pytest.raises(JobRunningError):
        ingest(place, stages=Overtaken())
    assert not (place / "a.lance" / "_versions").exists()


def test_two_drivers_that_commit_at_once_commit_once(with_rows, monkeypatch):
    """The transaction is the same, so the second finds that of the first while it commits."""

    class Second(LocalStages):
        def run(self, name, items, worker, *, weights=None):
            results = super().run(name, items, worker, weights=weights)
            monkeypatch.setattr(frame, "find_commit", lambda *_: None)
            monkeypatch.setattr(Lease, "__enter__", lambda self: self)
            monkeypatch.setattr(Lease, "__exit__", lambda *_: None)
            monkeypatch.setattr(Lease, "check", lambda _: None)
            assert ingest(with_rows) == 2
            return results

    assert ingest(with_rows, stages=Second()) == 2
    assert ids(with_rows) == [-2, -1, *ALL]


class Meanwhile(LocalStages):
    """Others commit while a stage runs, the first time only."""

    def __init__(self, commit):
        super().__init__()
        self._commit = commit

    def run(self, name, items, worker, *, weights=None):
        results = super().run(name, items, worker, weights=weights)
        if len(self.ran) == 1:
            self._commit()
        return results


def test_rows_are_put_on_top_of_what_others_append_and_delete_meanwhile(with_rows):
    uri = str(with_rows / "a.lance")

    def others():
        lance.write_dataset(pa.table({"id": [-3]}), uri, mode="append")
        lance.dataset(uri).delete("id = -1")

    assert ingest(with_rows, stages=Meanwhile(others)) == 4
    assert ids(with_rows) == [-2, -3, *ALL]


def test_an_overwrite_meanwhile_ends_an_append_for_good_and_nothing_is_deleted(with_rows):
    uri = str(with_rows / "a.lance")

    def others():
        lance.write_dataset(pa.table({"id": [-3]}), uri, mode="overwrite")

    with pytest.raises(CommitConflictError, match="give it up"):
        ingest(with_rows, stages=Meanwhile(others))
    assert ids(with_rows) == [-3]
    assert len(list(Path(uri, "data").iterdir())) == 2 + FILES


def test_after_an_overwrite_meanwhile_another_overwrite_is_planned_anew(with_rows):
    uri = str(with_rows / "a.lance")

    def others():
        lance.write_dataset(pa.table({"x": ["a"], "y": [1]}), uri, mode="overwrite")

    stages = Meanwhile(others)
    assert ingest(with_rows, stages=stages, mode=Mode.OVERWRITE) == 3
    assert [count for _, count in stages.ran] == [FILES, FILES]
    assert ids(with_rows) == ALL


def test_a_dataset_that_others_make_meanwhile_is_appended_to_or_refused(place):
    uri = str(place / "a.lance")

    def others():
        lance.write_dataset(pa.table({"id": [-3]}), uri)

    assert ingest(place, stages=Meanwhile(others)) == 2
    assert ids(place) == [-3, *ALL]


def test_creating_what_others_make_meanwhile_is_refused(place):
    uri = str(place / "a.lance")

    def others():
        lance.write_dataset(pa.table({"id": [-3]}), uri)

    with pytest.raises(InvalidRequestError, match="there is a dataset"):
        ingest(place, stages=Meanwhile(others), mode=Mode.CREATE)
    assert ids(place) == [-3]


def test_work_of_a_later_round_is_resumed_too(with_rows):
    uri = str(with_rows / "a.lance")

    class DiesInRoundTwo(Meanwhile):
        def run(self, name, items, worker, *, weights=None):
            results = super().run(name, items, worker, weights=weights)
            if len(self.ran) == 2:
                raise DriverDiedError
            return results

    def others():
        lance.write_dataset(pa.table({"x": ["a"]}), uri, mode="overwrite")

    with pytest.raises(DriverDiedError):
        ingest(with_rows, stages=DiesInRoundTwo(others), mode=Mode.OVERWRITE)
    stages = LocalStages()
    assert ingest(with_rows, stages=stages, mode=Mode.OVERWRITE) == 3
    assert stages.ran == []
    assert ids(with_rows) == ALL


def test_conflicts_again_and_again_end_the_job(with_rows):
    uri = str(with_rows / "a.lance")

    class Always(LocalStages):
        def run(self, name, items, worker, *, weights=None):
            results = super().run(name, items, worker, weights=weights)
            lance.write_dataset(pa.table({"x": ["a"]}), uri, mode="overwrite")
            return results

    stages = Always()
    with pytest.raises(CommitConflictError):
        ingest(with_rows, stages=stages, mode=Mode.OVERWRITE)
    assert len(stages.ran) == 3


def test_what_good_items_did_is_kept_when_a_bad_one_ends_the_job(place):
    file = place / "rows" / "1.parquet"
    data = file.read_bytes()
    file.write_bytes(data[:4] + bytes(len(data) - 12) + data[-8:])
    with pytest.raises((StageFailedError, InvalidRequestError)):
        ingest(place)
    file.write_bytes(data)
    assert ingest(place) == 1
    assert ids(place) == ALL


def test_a_file_that_changes_before_the_job_goes_on_is_refused(place):
    with pytest.raises(DriverDiedError):
        ingest(place, stages=DiesAfter(1))
    pq.write_table(pa.table({"id": range(1000)}), place / "rows" / "2.parquet")
    with pytest.raises(StageFailedError, match=r"2\.parquet has changed since the job was planned"):
        ingest(place)
    assert not (place / "a.lance" / "_versions").exists()
