"""What has become of the jobs of a dataset, as far as their journals tell."""

from __future__ import annotations

import enum
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from lance_core.errors import CorruptFileError
from lance_core.io.waiting import for_each
from lance_core.table.dataset_stores import open_folder_beside
from pipeline.journal import Journal
from pipeline.lease import lease_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lance_core.io.store import ObjectStore
    from pipeline.lease import LeaseState

    Options = Mapping[str, str] | None

GIVEN_UP_S = 7 * 86_400.0
"""Nobody goes on with a job that has done nothing for so long: as long as files of writers stay
that nobody knows."""

_PLAN, _LEASE = "plan.json", "lease-"


class JobState(enum.StrEnum):
    """How far a job is."""

    RUNNING = "running"
    """A driver is at work."""

    INTERRUPTED = "interrupted"
    """Its driver died; run again, it goes on."""

    FAILED = "failed"
    """Its driver ended without a commit; run again, it goes on."""

    GIVEN_UP = "given up"
    """As one of these, for a week."""

    DONE = "done"
    """It is committed, or had nothing to do."""

    UNREADABLE = "unreadable"
    """Its journal contradicts itself, so that nobody can tell."""

    @property
    def is_open(self) -> bool:
        """Whether workers may still be writing, or a driver may commit what they wrote."""
        return self in {JobState.RUNNING, JobState.INTERRUPTED}


@dataclass(frozen=True, slots=True)
class JobReport:
    """One job.

    Parameters
    ----------
    job_id, kind
        Its names.
    state
        How far it is.
    read_version
        Version that it reads.
    num_items, num_done
        Items of its last plan, and those of them that have a result.
    version
        Version that it ended with, None before that.
    last_active
        When it last kept anything.
    fault
        Why its journal is unreadable; the numbers are 0 then.
    """

    job_id: str
    kind: str
    state: JobState
    read_version: int
    num_items: int
    num_done: int
    version: int | None
    last_active: datetime
    fault: str | None = None

    def to_dict(self) -> dict[str, object]:
        """Return the report as plain values."""
        return {
            "job_id": self.job_id,
            "kind": self.kind,
            "state": self.state.value,
            "read_version": self.read_version,
            "num_items": self.num_items,
            "num_done": self.num_done,
            "version": self.version,
            "last_active": self.last_active.isoformat(),
            "fault": self.fault,
        }


def job_reports(
    state_uri: str, storage_options: Options = None, *, now: float | None = None
) -> list[JobReport]:
    """Return the jobs in a folder of journals, the last one active first.

    Parameters
    ----------
    state_uri, storage_options
        The folder, and its store.
    now
        Seconds since 1970; None = now.
    """
    store = open_folder_beside(state_uri, storage_options)
    at = time.time() if now is None else now
    work = partial(_report, store, state_uri, storage_options, at)
    found = [each for each in for_each(store, work, store.list_folder("")[0]) if each is not None]
    return sorted(found, key=lambda each: each.last_active, reverse=True)


def _report(
    store: ObjectStore, state_uri: str, storage_options: Options, now: float, job_id: str
) -> JobReport | None:
    """Describe a job; a folder without a plan is none, or belongs to another job."""
    objects = list(store.list_tree(job_id))
    if not any(each.path == f"{job_id}/{_PLAN}" for each in objects):
        return None
    kept = [each for each in objects if _LEASE not in each.path]
    active = max(each.last_modified for each in kept)
    journal = Journal.of(state_uri, job_id, storage_options)
    try:
        return _read(journal, active, now)
    except CorruptFileError as error:
        return JobReport(job_id, "", JobState.UNREADABLE, 0, 0, 0, None, active, str(error))


def _read(journal: Journal, active: datetime, now: float) -> JobReport | None:
    last, version, lease = journal.last_round(), journal.committed(), lease_of(journal)
    plan = last.plan()
    if plan is None:
        return None
    if lease is not None and not lease.is_released:
        active = max(active, datetime.fromtimestamp(lease.renewed_at, UTC))
    state = JobState.DONE if version is not None else _open_state(lease, active, now)
    return JobReport(
        job_id=journal.job_id,
        kind=plan.kind,
        state=state,
        read_version=plan.read_version,
        num_items=len(plan.items),
        num_done=len(last.done_items()),
        version=version,
        last_active=active,
    )


def _open_state(lease: LeaseState | None, active: datetime, now: float) -> JobState:
    if lease is not None and lease.is_fresh(now):
        return JobState.RUNNING
    if now - active.timestamp() > GIVEN_UP_S:
        return JobState.GIVEN_UP
    is_released = lease is not None and lease.is_released
    return JobState.FAILED if is_released else JobState.INTERRUPTED
