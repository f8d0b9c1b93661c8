"""Stages without Spark, and contexts of jobs on them."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

from lance_core.errors import InvalidRequestError, UnsupportedFeatureError
from pipeline.errors import StageFailedError
from pipeline.job import JobContext
from pipeline.journal import default_state_uri, new_job_id
from pipeline.progress import make_progress

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pipeline.progress import Progress
    from pipeline.stages import Worker

_ATTEMPTS = 4


class LocalStages:
    """Runs items one after the other in this process, as Spark would: pickled, tried four times.

    ``ran`` holds the names of stages and the number of their items.
    """

    def __init__(self) -> None:
        self.ran: list[tuple[str, int]] = []

    def run(
        self,
        name: str,
        items: Sequence[bytes],
        worker: Worker,
        *,
        weights: Sequence[int] | None = None,
    ) -> list[bytes]:
        assert weights is None or len(weights) == len(items)
        self.ran.append((name, len(items)))
        results, failures = [], {}
        for place, item in enumerate(items):
            try:
                results.append(_tried(worker, item))
            except Exception as error:
                failures[place] = f"{type(error).__name__}: {error}"
        if failures:
            raise StageFailedError(name, failures)
        return results


def local_context(
    uri: str | Path,
    *,
    job_id: str | None = None,
    stages: LocalStages | None = None,
    progress: Progress | None = None,
    dry_run: bool = False,
) -> JobContext:
    """Return a context of a job on a local dataset."""
    return JobContext(
        uri=str(uri),
        storage_options=None,
        job_id=new_job_id("test") if job_id is None else job_id,
        state_uri=default_state_uri(str(uri)),
        stages=LocalStages() if stages is None else stages,
        progress=make_progress("none") if progress is None else progress,
        dry_run=dry_run,
    )


def _tried(worker: Worker, item: bytes) -> bytes:
    for _ in range(_ATTEMPTS - 1):
        try:
            return _copied(worker)(item)
        except (InvalidRequestError, UnsupportedFeatureError):
            raise
        except Exception:  # noqa: S112 - the next attempt tells
            continue
    return _copied(worker)(item)


def _copied(worker: Worker) -> Worker:
    copy: Worker = pickle.loads(pickle.dumps(worker))  # noqa: S301 - as Spark sends it
    return copy
