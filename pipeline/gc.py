"""``cleanup``: old versions and files go, beside jobs that are open and those that have ended.

The journal tells what nobody else can: files that a job is about to commit stay, however old they
are, and so do the versions that it reads; what a job has left behind goes after an hour, not after
the week that files stay whose writer is unknown.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lance_core.dataset.places import branch_of, root_of
from lance_core.errors import InvalidRequestError
from lance_core.operations.cleanup import clean_up
from lance_core.operations.cleanup_plan import Writers
from pipeline.errors import JobRunningError
from pipeline.forget import forget, old_jobs
from pipeline.job_states import GIVEN_UP_S, JobState, job_reports
from pipeline.journal import Journal
from pipeline.lease import Lease
from pipeline.result_files import keys_of_result

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import timedelta

    from lance_core.operations.cleanup import CleanupReport
    from lance_core.operations.cleanup_plan import CleanupOptions
    from pipeline.job import JobContext
    from pipeline.job_states import JobReport

_NEEDS_VERSIONS = frozenset((JobState.RUNNING, JobState.INTERRUPTED, JobState.FAILED))


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What a cleanup has removed: files, and journals; and which jobs have kept files from it."""

    report: CleanupReport
    open_jobs: tuple[str, ...]
    forgotten_jobs: tuple[str, ...]


def clean_up_dataset(
    context: JobContext,
    options: CleanupOptions,
    *,
    delete_concurrency: int = 64,
    forget_jobs_after: timedelta | None = None,
) -> Cleaned:
    """Remove old versions, and files that nothing needs.

    Parameters
    ----------
    context
        Where; nothing is run on Spark.
    options
        Which versions. While jobs are open, ``delete_unverified`` does nothing: who runs them may
        be writing files that no journal knows yet.
    delete_concurrency
        Files that are deleted at the same time.
    forget_jobs_after
        Journals of jobs that were over so long ago go too, see `old_jobs`: such a job would be done
        anew if it were run again. None = all stay.

    Raises
    ------
    InvalidRequestError
        ``delete_concurrency`` is no such number, the journal of a job cannot be read, and as
        `clean_up`. Nothing was removed.
    CorruptFileError, UnsupportedFeatureError
        As `clean_up`, and where a result of a job cannot be read. Nothing was removed.

    Notes
    -----
    Spark page, section 10.7. A job that has failed can be run again at any time, and would commit
    files that it finds to be there: it is kept from that while they are removed.
    """
    if delete_concurrency < 1:
        raise InvalidRequestError(f"delete_concurrency is {delete_concurrency}; give 1 or more")
    snapshot = context.open().snapshot
    with ExitStack() as held:
        jobs = job_reports(context.state_uri, context.storage_options)
        _check_readable(context, jobs)
        forgotten = [] if forget_jobs_after is None else old_jobs(jobs, forget_jobs_after)
        known, are_open = _writers(context, jobs, held)
        report = clean_up(
            snapshot,
            root_of(snapshot).store,
            branch_of(snapshot),
            options,
            writers=known,
            num_threads=delete_concurrency,
            dry_run=context.dry_run,
        )
    if not context.dry_run:
        forget(context, jobs, forgotten)
    return Cleaned(report, are_open, tuple(each.job_id for each in forgotten))


def _check_readable(context: JobContext, jobs: Sequence[JobReport]) -> None:
    """Refuse to guess what a job needs whose journal nobody can read."""
    for job in jobs:
        if job.state is JobState.UNREADABLE:
            raise InvalidRequestError(
                f"the journal of job {job.job_id!r} cannot be read ({job.fault}), so that nobody"
                f" can tell what it needs; if it is over, remove its folder in {context.state_uri}"
            )


def _writers(
    context: JobContext, jobs: Sequence[JobReport], held: ExitStack
) -> tuple[Writers, tuple[str, ...]]:
    """Say what jobs need and have left; those that have failed are held from now on."""
    are_open = [each for each in jobs if each.state.is_open]
    have_ended = [each for each in jobs if not each.state.is_open]
    if not context.dry_run:
        busy = [each for each in have_ended if not _is_held(context, each, held)]
        are_open += busy
        have_ended = [each for each in have_ended if each not in busy]
    needing = [each for each in jobs if each.state in _NEEDS_VERSIONS or each in are_open]
    pending = _keys(context, are_open)
    since = time.time() - GIVEN_UP_S  # older files go whoever wrote them
    recent = [each for each in have_ended if each.last_active.timestamp() > since]
    known = Writers(
        oldest_version=min((each.read_version for each in needing), default=None),
        pending=pending,
        orphans=_keys(context, recent) - pending,
        are_at_work=len(are_open) > 0,
    )
    return known, tuple(sorted(each.job_id for each in are_open))


def _is_held(context: JobContext, job: JobReport, held: ExitStack) -> bool:
    """Keep a job that could go on from doing so; tell whether that is so."""
    if job.state is JobState.DONE:
        return True
    try:
        held.enter_context(Lease(_journal(context, job)))
    except JobRunningError:
        return False
    return True


def _keys(context: JobContext, jobs: Iterable[JobReport]) -> frozenset[str]:
    return frozenset(
        key
        for job in jobs
        for journal in _journal(context, job).rounds()
        for result in journal.all_records()
        for key in keys_of_result(job.kind, result)
    )


def _journal(context: JobContext, job: JobReport) -> Journal:
    return Journal.of(context.state_uri, job.job_id, context.storage_options)
