"""Journals of jobs that are over go, so that a schedule does not gather them for ever."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from lance_core.errors import InvalidRequestError
from lance_core.table.dataset_stores import open_folder_beside
from pipeline.job_states import JobState
from pipeline.journal import Journal
from pipeline.train import KIND as TRAIN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.job import JobContext
    from pipeline.job_states import JobReport

_OVER = frozenset((JobState.DONE, JobState.GIVEN_UP))


def old_jobs(
    jobs: Sequence[JobReport], age: timedelta, *, now: datetime | None = None
) -> list[JobReport]:
    """Return the jobs that were over so long ago that they may be forgotten.

    Models that ``train`` made stay, since builds may name them; those that a build made for itself
    go with it.

    Parameters
    ----------
    jobs
        All jobs of a folder.
    age
        How long ago they last did anything.
    now
        None = now.

    Raises
    ------
    InvalidRequestError
        The age is negative.
    """
    if age < timedelta(0):
        raise InvalidRequestError("jobs to forget have an age of 0 or more")
    before = (datetime.now(UTC) if now is None else now) - age
    over = [each for each in jobs if each.state in _OVER and each.last_active < before]
    models = {f"{each.job_id}.model" for each in over if each.kind != TRAIN}
    return [each for each in over if each.kind != TRAIN or each.job_id in models]


def forget(context: JobContext, jobs: Sequence[JobReport], forgotten: Sequence[JobReport]) -> None:
    """Remove the journals of jobs, and what their stages kept beside them.

    Parameters
    ----------
    context
        Where journals are.
    jobs, forgotten
        All jobs of the folder, and those of them to remove.
    """
    store = open_folder_beside(context.state_uri, context.storage_options)
    names = store.list_folder("")[0]
    known = {each.job_id for each in jobs}
    for job in forgotten:
        for name in names:
            if name.startswith(f"{job.job_id}.") and name not in known:
                _remove(context, name)
        _remove(context, job.job_id)


def _remove(context: JobContext, job_id: str) -> None:
    Journal.of(context.state_uri, job_id, context.storage_options).remove()
