"""A stage of a job that has several: what it has done already is kept by itself."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pipeline.job import work_and_record
from pipeline.journal import Journal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.job import JobContext
    from pipeline.stages import Worker

_NUMBER_BYTES = 8


def run_kept(
    context: JobContext,
    name: str,
    items: Sequence[bytes],
    worker: Worker,
    *,
    weights: Sequence[int] | None = None,
) -> list[bytes]:
    """Work on items, but for those that an earlier run of the job has worked on.

    Parameters
    ----------
    context
        Of the job.
    name
        Of the stage; letters.
    items, worker, weights
        As `Stages.run`. The items have to be the same in each run.

    Returns
    -------
    list[bytes]
        Results in the order of the items: of several attempts the same one in each run.
    """
    journal = Journal.of(context.state_uri, f"{context.job_id}.{name}", context.storage_options)
    recorded = journal.recorded()
    missing = [place for place in range(len(items)) if place not in recorded]
    if missing:
        numbered = [place.to_bytes(_NUMBER_BYTES, "big") + items[place] for place in missing]
        own = None if weights is None else [weights[place] for place in missing]
        context.progress.listen(journal.beats)
        try:
            context.stages.run(
                name, numbered, partial(work_and_record, journal, worker), weights=own
            )
        finally:
            context.progress.listen(None)
        recorded = journal.recorded()
    return [recorded[place] for place in range(len(items))]
