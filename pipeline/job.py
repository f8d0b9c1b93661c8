"""The frame of every job: lease, plan or resume, work, commit exactly once.

A job is done once, whatever dies: its transaction says which job it is (``pipeline.job_id``), and
before each commit, and after one that failed, the versions since the plan are searched for it. Two
drivers that pass this test at the same time are kept apart by the lease; jobs that make their
transaction themselves give it `transaction_uuid`, by which the commit itself tells that it was
done already.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar, runtime_checkable

from lance_core.dataset import Dataset, open_dataset
from lance_core.errors import (
    CommitConflictError,
    DatasetNotFoundError,
    InvalidRequestError,
    StoreError,
)
from lance_core.table.commits_since import Lineage
from pipeline.errors import StageFailedError
from pipeline.journal import Journal, check_same
from pipeline.lease import Lease
from pipeline.worker import beating

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pipeline.journal import JournalPlan
    from pipeline.progress import Progress
    from pipeline.stages import Stages, Worker

JOB_ID, KIND, ITEM_COUNT = "pipeline.job_id", "pipeline.kind", "pipeline.item_count"

_MAX_ROUNDS = 3
_NUMBER_BYTES = 8
_UUIDS = uuid.UUID("5a0e94e2-6d5c-4b5b-9a7d-3f0a4b7c1d20")

D_contra = TypeVar("D_contra", contravariant=True)
D = TypeVar("D")


@dataclass(frozen=True, slots=True)
class JobContext:
    """Where and how a job runs.

    Parameters
    ----------
    uri
        The dataset.
    storage_options
        Of its store, and of that of the journal.
    job_id
        Names the job: one that is run again under the same id is resumed.
    state_uri
        Folder of all journals.
    stages
        Runs the items.
    progress
        Hears what happens.
    dry_run
        Whether nothing is done but planning.
    """

    uri: str
    storage_options: Mapping[str, str] | None
    job_id: str
    state_uri: str
    stages: Stages
    progress: Progress
    dry_run: bool = False

    @property
    def journal(self) -> Journal:
        """What is kept of the job."""
        return Journal.of(self.state_uri, self.job_id, self.storage_options)

    def open(self, version: int | None = None) -> Dataset:
        """Open the dataset; None = the latest version."""
        return open_dataset(self.uri, version, storage_options=self.storage_options)


class Job(Protocol[D_contra]):
    """One kind of job, with its parameters; ``Job[Dataset]`` but for those that make datasets."""

    @property
    def kind(self) -> str:
        """Name of the kind, as the command has it."""

    def params(self) -> dict[str, object]:
        """Return what was asked for, as JSON: a job is only resumed with the same."""

    def plan(self, dataset: D_contra) -> list[bytes]:
        """Return the items, small messages; none where there is nothing to do.

        ``dataset`` is the version that everything is read at.
        """

    def worker(self) -> Worker:
        """Return what works on an item: a function at the top of a module, or a partial of one."""

    def commit(
        self, dataset: D_contra, results: Sequence[bytes], properties: Mapping[str, str]
    ) -> int:
        """Commit, and return the version.

        Parameters
        ----------
        dataset
            The version that was planned for.
        results
            In the order of the items; items that were skipped are left out.
        properties
            Of the transaction; only of the one that ends the job.

        Raises
        ------
        CommitConflictError
            One that is retryable has the work planned anew, at the newest version.
        """


@runtime_checkable
class Describes(Protocol):
    """A job whose items have names."""

    def describe(self, item: bytes) -> str:
        """Return what people call an item, such as its file."""


@runtime_checkable
class Weighs(Protocol):
    """A job that knows how large its items are."""

    def weigh(self, item: bytes) -> int:
        """Return about how many rows an item has."""


@runtime_checkable
class ChecksFiles(Protocol):
    """A job whose results name files that may be gone when it is resumed."""

    def has_files(self, result: bytes) -> bool:
        """Tell whether all files of a result are there, as large as they were."""


@runtime_checkable
class Replans(Protocol):
    """A job that keeps some of its work after a conflict; others do all of it anew."""

    def replan(
        self, dataset: Dataset, items: Sequence[bytes], results: Sequence[bytes]
    ) -> list[tuple[bytes, bytes | None]]:
        """Return the items for the newest version, each with its result if that still holds."""


@runtime_checkable
class Skips(Protocol):
    """A job that may leave out items that fail."""

    @property
    def skips_bad_items(self) -> bool:
        """Whether it does."""


def run_job(context: JobContext, job: Job[Dataset]) -> int:
    """Run a job on a dataset, or resume it; return the version that it committed.

    Where there is nothing to do it is the version that was looked at.

    Raises
    ------
    DatasetNotFoundError
        There is no dataset.
    JobRunningError
        Another driver is at work on it.
    InvalidRequestError
        The job was begun with other parameters.
    StageFailedError
        Items failed for good. What the others did is kept for the next run.
    CommitConflictError
        Others stood in the way, at three attempts if planning anew could help.
    """
    return _Run(context, job, context.open).to_the_end()


def run_making_job(context: JobContext, job: Job[Dataset | None]) -> int:
    """Run a job that makes its dataset if need be; otherwise as `run_job`."""

    def opened(version: int | None) -> Dataset | None:
        try:
            return None if version == 0 else context.open(version)
        except DatasetNotFoundError:
            return None

    return _Run(context, job, opened).to_the_end()


def find_commit(dataset: Dataset, job_id: str, after: int) -> int | None:
    """Return the version that a job committed, None if there is none.

    Parameters
    ----------
    dataset
        Of any version.
    job_id
        The job.
    after
        The version that it read: older ones are not looked at.

    Raises
    ------
    CommitConflictError
        A version since then was removed, so nobody can tell.
    """
    lineage = Lineage(dataset.snapshot.scheduler)
    lineage.refresh()
    for each in lineage.commits_after(after):
        if each.transaction.properties.get(JOB_ID) == job_id:
            return each.version
    return None


def transaction_uuid(properties: Mapping[str, str]) -> str:
    """Return the UUID of the transaction that ends a job.

    The same for all drivers of the job: the commit of the second finds that of the first.
    """
    return str(uuid.uuid5(_UUIDS, properties[JOB_ID]))


class _Run(Generic[D]):
    """One job, from its lease to its commit."""

    def __init__(self, context: JobContext, job: Job[D], opened: Callable[[int | None], D]) -> None:
        self._context = context
        self._job = job
        self._opened = opened
        self._journal = context.journal
        self._began_at = context.progress.clock()

    def to_the_end(self) -> int:
        version = self._journal.committed()
        if version is not None:
            self._check_params(self._journal.plan())
            self._check_there(version)
            return self._ended(version)
        if self._context.dry_run:
            return self._told_plan()
        with Lease(self._journal) as lease:
            return self._ended(self._done(lease))

    def _done(self, lease: Lease) -> int:
        journal = self._journal.last_round()
        first = journal.round_number  # one that others stood in the way of may be run again
        while True:
            plan = self._begun(journal)
            found = self._committed_before(plan) if plan.is_resumed else None
            if found is not None:
                return found
            if len(plan.items) == 0:
                return plan.read_version
            results = self._results(journal, plan)
            lease.check()
            try:
                return self._commit(plan, results)
            except CommitConflictError as error:
                if not error.is_retryable or journal.round_number - first + 1 == _MAX_ROUNDS:
                    raise
                self._context.progress.event("conflict", message=str(error))
                journal = self._planned_anew(journal, plan, results)

    def _begun(self, journal: Journal) -> JournalPlan:
        stored = journal.plan()
        if stored is not None:
            self._check_params(stored)
            self._context.progress.event("resume", job_id=journal.job_id)
            return stored
        dataset = self._opened(None)
        items = self._job.plan(dataset)
        return journal.begin(self._job.kind, self._job.params(), _version_of(dataset), items)

    def _check_params(self, plan: JournalPlan | None) -> None:
        if plan is not None:
            check_same(plan, self._job.kind, self._job.params(), self._context.job_id)

    def _check_there(self, version: int) -> None:
        """Make sure that a job which is done has left something."""
        if _version_of(self._opened(None)) < version:
            raise InvalidRequestError(
                f"job {self._context.job_id!r} was done as version {version}, which is gone from"
                f" {self._context.uri}: the dataset was deleted since; give another job id"
            )

    def _results(self, journal: Journal, plan: JournalPlan) -> dict[int, bytes]:
        """Return results by item, after running those that have none."""
        results = self._kept(journal)
        bad: dict[int, str] = {}
        while len(results) + len(bad) < len(plan.items):
            missing = [n for n in range(len(plan.items)) if n not in results and n not in bad]
            try:
                done = self._run_stage(journal, plan, missing)
                results |= dict(zip(missing, done, strict=True))
            except StageFailedError as error:
                bad |= {missing[place]: text for place, text in error.failures.items()}
                if not (isinstance(self._job, Skips) and self._job.skips_bad_items):
                    raise StageFailedError(error.stage, bad, self._names(plan, bad)) from error
                results = self._kept(journal)
        for name, text in zip(self._names(plan, bad).values(), bad.values(), strict=True):
            self._context.progress.event("skipped", item=name, message=text)
        return dict(sorted(results.items()))

    def _kept(self, journal: Journal) -> dict[int, bytes]:
        recorded = journal.recorded()
        if not isinstance(self._job, ChecksFiles):
            return recorded
        has_files = self._job.has_files
        return {item: result for item, result in recorded.items() if has_files(result)}

    def _run_stage(
        self, journal: Journal, plan: JournalPlan, missing: Sequence[int]
    ) -> list[bytes]:
        job = self._job
        items = [item.to_bytes(_NUMBER_BYTES, "big") + plan.items[item] for item in missing]
        weights = [job.weigh(plan.items[n]) for n in missing] if isinstance(job, Weighs) else None
        self._context.progress.listen(journal.beats)
        try:
            return self._context.stages.run(
                job.kind, items, partial(work_and_record, journal, job.worker()), weights=weights
            )
        finally:
            self._context.progress.listen(None)

    def _names(self, plan: JournalPlan, items: Mapping[int, str]) -> dict[int, str]:
        job = self._job
        if not isinstance(job, Describes):
            return {item: f"item {item}" for item in items}
        return {item: job.describe(plan.items[item]) for item in items}

    def _commit(self, plan: JournalPlan, results: Mapping[int, bytes]) -> int:
        properties = {
            JOB_ID: self._context.job_id,
            KIND: self._job.kind,
            ITEM_COUNT: str(len(plan.items)),
        }
        dataset = self._opened(plan.read_version)
        try:
            version = self._job.commit(dataset, list(results.values()), properties)
        except (StoreError, CommitConflictError, InvalidRequestError):
            found = self._committed_before(plan)  # the answer may have been lost on the way
            if found is None:
                raise
            version = found
        self._context.progress.event("commit", version=version)
        return version

    def _committed_before(self, plan: JournalPlan) -> int | None:
        newest = self._opened(None)
        if not isinstance(newest, Dataset):
            return None
        return find_commit(newest, self._context.job_id, plan.read_version)

    def _planned_anew(
        self, journal: Journal, plan: JournalPlan, results: Mapping[int, bytes]
    ) -> Journal:
        """Plan for the newest version, and return the journal of that plan."""
        following = journal.round(journal.round_number + 1)
        job, newest = self._job, self._opened(None)
        is_whole = len(results) == len(plan.items)
        if isinstance(job, Replans) and isinstance(newest, Dataset) and is_whole:
            pairs = job.replan(newest, plan.items, list(results.values()))
        else:
            pairs = [(item, None) for item in job.plan(newest)]
        # The plan first: results without it would be taken for those of whatever is planned then.
        following.begin(job.kind, job.params(), _version_of(newest), [item for item, _ in pairs])
        for item, (_, result) in enumerate(pairs):
            if result is not None:
                following.record(item, result)
        return following

    def _told_plan(self) -> int:
        job, dataset = self._job, self._opened(None)
        items = job.plan(dataset)
        names = [job.describe(item) for item in items] if isinstance(job, Describes) else None
        version = _version_of(dataset)
        self._context.progress.event(
            "plan", kind=job.kind, version=version, items=len(items), names=names, **job.params()
        )
        return version

    def _ended(self, version: int) -> int:
        if self._journal.committed() is None:
            self._journal.mark_committed(version)
        progress = self._context.progress
        seconds = round(progress.clock() - self._began_at, 3)
        progress.event("summary", kind=self._job.kind, version=version, seconds=seconds)
        return version


def work_and_record(journal: Journal, worker: Worker, numbered: bytes) -> bytes:
    """Work on an item, and record the result before it is returned; runs in a worker."""
    item = int.from_bytes(numbered[:_NUMBER_BYTES], "big")
    with beating(partial(journal.beat, item)):
        result = worker(numbered[_NUMBER_BYTES:])
    journal.record(item, result)
    return result


def _version_of(dataset: object) -> int:
    return dataset.version if isinstance(dataset, Dataset) else 0
