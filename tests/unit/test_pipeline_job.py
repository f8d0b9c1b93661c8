"""The frame of jobs: rounds after conflicts, what is kept of the work, what is told."""

from __future__ import annotations

import io
import json
import shutil

import pyarrow as pa
import pytest

from lance_core.dataset import open_dataset, write_dataset
from lance_core.errors import (
    CommitConflictError,
    DatasetNotFoundError,
    InvalidRequestError,
    StoreUnavailableError,
    VersionNotFoundError,
)
from lance_core.table.commit import commit
from lance_core.table.naming import NamingScheme, manifest_path
from lance_core.table.transaction import MapUpdate, Transaction, UpdateConfig
from pipeline.errors import StageFailedError
from pipeline.job import find_commit, run_job
from pipeline.journal import Journal
from pipeline.progress import make_progress
from tests.pipeline_crashes import DriverDiedError
from tests.pipeline_stages import LocalStages, local_context
from tests.pipeline_workers import echo, poisoned


@pytest.fixture
def uri(tmp_path):
    place = str(tmp_path / "a.lance")
    write_dataset(place, pa.table({"id": [1]}))
    return place


class Job:
    """Sets an entry of the configuration to the results of its items."""

    kind = "toy"

    def __init__(self, items=(b"ab", b"cd"), conflicts=0, worker=echo):
        self.items, self.conflicts, self._worker = list(items), conflicts, worker
        self.seen = []

    def params(self):
        return {"items": len(self.items)}

    def plan(self, dataset):
        self.seen.append(dataset.version)
        return self.items

    def worker(self):
        return self._worker

    def commit(self, dataset, results, properties):
        if self.conflicts > 0:
            self.conflicts -= 1
            write_dataset(dataset.snapshot.scheduler.store.uri, pa.table({"id": [2]}), mode="append")  # fmt: skip  # noqa: E501
            raise CommitConflictError("others", version=dataset.version + 1, is_retryable=True)
        change = UpdateConfig(config=MapUpdate({"toy": b",".join(results).decode()}))
        transaction = Transaction(dataset.version, change, properties=dict(properties))
        return commit(dataset.snapshot.scheduler, transaction).version


class Keeping(Job):
    """Keeps the first of its results after a conflict, and has one item more."""

    def replan(self, dataset, items, results):
        self.seen.append(dataset.version)
        return [(items[0], results[0]), (items[1], None), (b"ef", None)]


def test_results_are_committed_in_the_order_of_items_with_the_name_of_the_job(uri):
    context = local_context(uri, job_id="one")
    assert run_job(context, Job()) == 2
    assert open_dataset(uri).config["toy"] == "ba,dc"
    assert find_commit(open_dataset(uri), "one", 1) == 2
    assert find_commit(open_dataset(uri), "two", 1) is None
    assert context.journal.committed() == 2


def test_where_there_is_nothing_to_do_there_is_no_version(uri):
    assert run_job(local_context(uri), Job(items=())) == 1
    assert open_dataset(uri).version == 1


def test_a_job_on_no_dataset_is_refused(tmp_path):
    with pytest.raises(DatasetNotFoundError):
        run_job(local_context(tmp_path / "none.lance"), Job())


def test_after_a_conflict_all_is_done_anew_at_the_newest_version(uri):
    job, stages = Job(conflicts=2), LocalStages()
    assert run_job(local_context(uri, stages=stages), job) == 4
    assert job.seen == [1, 2, 3]
    assert [count for _, count in stages.ran] == [2, 2, 2]
    with pytest.raises(CommitConflictError):
        run_job(local_context(uri), Job(conflicts=3))


def test_a_job_that_can_keeps_what_stands_of_its_work(uri):
    job, stages = Keeping(conflicts=1), LocalStages()
    assert run_job(local_context(uri, stages=stages), job) == 3
    assert stages.ran == [("toy", 2), ("toy", 2)]
    assert open_dataset(uri).config["toy"] == "ba,dc,fe"


@pytest.mark.parametrize("name", ["begin", "record"])
def test_a_driver_that_dies_while_it_plans_anew_leaves_nothing_that_is_taken_for_something_else(
    uri, monkeypatch, name
):
    call = getattr(Journal, name)

    def dies(self, *arguments):
        if self.round_number == 1:
            raise DriverDiedError
        return call(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Journal, name, dies)
        with pytest.raises(DriverDiedError):
            run_job(local_context(uri, job_id="one"), Keeping(conflicts=1))
    run_job(local_context(uri, job_id="one"), Keeping())
    planned = "ba,dc" if name == "begin" else "ba,dc,fe"
    assert open_dataset(uri).config["toy"] == planned


def test_a_commit_whose_answer_is_lost_is_found(uri):
    class Lost(Job):
        def commit(self, dataset, results, properties):
            super().commit(dataset, results, properties)
            raise StoreUnavailableError("no answer")

    assert run_job(local_context(uri), Lost()) == 2
    assert open_dataset(uri).version == 2


def test_failed_items_are_told_by_their_places_or_names_and_the_others_kept(uri):
    class Named(Job):
        def describe(self, item):
            return f"the item {item.decode()}"

    items = (b"good", b"bad", b"odd")
    with pytest.raises(StageFailedError, match="item 1: InvalidRequestError: bad is bad; item 2"):
        run_job(local_context(uri, job_id="one"), Job(items, worker=poisoned))
    stages = LocalStages()
    with pytest.raises(StageFailedError, match=r"the item bad: .*the item odd: "):
        run_job(local_context(uri, job_id="one", stages=stages), Named(items, worker=poisoned))
    assert stages.ran == [("toy", 2)]


def test_items_that_may_be_skipped_are_and_are_told(uri):
    class Skipping(Job):
        skips_bad_items = True

    stream = io.StringIO()
    context = local_context(uri, progress=make_progress("json", stream))
    assert run_job(context, Skipping((b"good", b"bad", b"fine"), worker=poisoned)) == 2
    assert open_dataset(uri).config["toy"] == "doog,enif"
    events = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [event["event"] for event in events] == ["skipped", "commit", "summary"]
    assert events[0]["item"] == "item 1"


def test_a_job_whose_version_is_gone_says_so(uri):
    context = local_context(uri, job_id="one")
    with pytest.raises(StageFailedError):
        run_job(context, Job((b"bad",), worker=poisoned))
    write_dataset(uri, pa.table({"id": [2]}), mode="append")
    dataset = write_dataset(uri, pa.table({"id": [3]}), mode="append")
    store = dataset.snapshot.scheduler.store
    for version in (1, 2):
        store.delete(manifest_path(version, NamingScheme.V2))
    with pytest.raises((CommitConflictError, VersionNotFoundError), match=r"removed|no version"):
        run_job(context, Job((b"bad",), worker=echo))


def test_a_job_that_is_done_says_so_where_its_dataset_is_gone(uri, tmp_path):
    context = local_context(uri, job_id="one")
    run_job(context, Job())
    assert run_job(context, Job()) == 2
    shutil.rmtree(uri)
    with pytest.raises(DatasetNotFoundError):
        run_job(context, Job())
    write_dataset(uri, pa.table({"id": [1]}))
    with pytest.raises(InvalidRequestError, match=r"'one' was done as version 2, which is gone"):
        run_job(context, Job())
