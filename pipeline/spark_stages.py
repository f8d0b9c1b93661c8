"""Stages on Spark: a task per item, of plain Python values, so that nothing is shuffled.

An RDD of the items is all that is needed. A frame and ``mapInArrow`` would do the same with a
shuffle, for it has to be told which row goes to which task.
"""

from __future__ import annotations

import gc
import re
import time
import traceback
import uuid
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import InheritableThread, TaskContext

from lance_core.errors import InvalidRequestError, LanceError, UnsupportedFeatureError
from lance_core.io.file_maps import give_back_pages
from pipeline.errors import SparkFailedError, StageFailedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark import Accumulator, SparkContext
    from pyspark.sql import SparkSession

    from pipeline.progress import Phase, Progress
    from pipeline.stages import Worker

    Numbered = tuple[int, bytes, int]
    """Place of an item, the item, and its rows."""
    Outcome = tuple[int, bytes | None, str]
    """Place of an item, and its result or what went wrong."""

T = TypeVar("T")

_MAX_TASKS = 20_000
_NO_JVM = (
    "Spark's JVM has died, perhaps for lack of memory; run the command again, with its --job-id"
)
_POLL_S = 0.25
_SLOW_COLLECTION_S = 0.02
_MAX_TEXT = 2000
_MAX_REPORT = 20_000
_LOCAL = re.compile(r"local(?:\[[^,\]]*(?:,\s*(\d+))?\])?")
_LOST = re.compile(r"Task (\d+) in stage [\d.]+ failed \d+ times, most recent failure: ([^\n]*)")


class SparkStages:
    """Runs stages in a Spark session.

    Parameters
    ----------
    spark
        A classic session, not one of Spark Connect.
    progress
        Sees what the stages do.
    """

    def __init__(self, spark: SparkSession, progress: Progress) -> None:
        self._context = spark.sparkContext
        self._progress = progress

    def run(
        self,
        name: str,
        items: Sequence[bytes],
        worker: Worker,
        *,
        weights: Sequence[int] | None = None,
    ) -> list[bytes]:
        """Work on all items; see `Stages.run`."""
        if len(items) == 0:
            return []
        rows = [0] * len(items) if weights is None else weights
        numbered = list(zip(range(len(items)), items, rows, strict=True))
        weight = None if weights is None else sum(weights)
        with self._progress.phase(name, len(items), weight) as phase:
            outcomes = self._outcomes(numbered, worker, phase)
            failures = {item: text for item, result, text in outcomes if result is None}
            for item, text in failures.items():
                phase.failed(item, text)
        if failures:
            raise StageFailedError(name, failures)
        found = {item: result for item, result, _ in outcomes if result is not None}
        return [found[item] for item in range(len(items))]

    def _outcomes(
        self, numbered: Sequence[Numbered], worker: Worker, phase: Phase
    ) -> list[Outcome]:
        context = self._context
        num_tasks = min(len(numbered), _MAX_TASKS)
        rows = context.accumulator(0)
        work = partial(_work, worker, max_attempts(context), rows)
        tasks = context.parallelize(numbered, num_tasks).mapPartitions(work)
        try:
            found = watched(context, phase, tasks.collect, rows)
        except SparkFailedError as error:
            raise _blamed(error, phase.name, num_tasks, len(numbered)) from error
        phase.update(len(numbered), rows=rows.value)
        return found


def watched(
    context: SparkContext, phase: Phase, work: Callable[[], T], rows: Accumulator[int]
) -> T:
    """Call something that runs Spark jobs, and show meanwhile how far they are.

    Parameters
    ----------
    context
        Of the session.
    phase
        Sees it.
    work
        Is called in a thread of its own; an interrupt cancels its jobs.
    rows
        Rows that are done.

    Raises
    ------
    SparkFailedError
        Whatever ``work`` raised.
    """
    group = f"{phase.name}-{uuid.uuid4().hex}"
    found: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        context.setJobGroup(group, phase.name, interruptOnCancel=True)
        try:
            found.append(work())
        except BaseException as error:
            errors.append(error)

    thread = InheritableThread(target=run, session=None)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(_POLL_S)
            _show(context, group, phase, rows)
    except (Py4JNetworkError, OSError) as error:
        raise SparkFailedError(_NO_JVM) from error
    except BaseException:  # above all the user's Ctrl-C
        with suppress(Py4JError, OSError):
            context.cancelJobGroup(group)
        raise
    if errors:
        if isinstance(errors[0], (Py4JNetworkError, OSError, EOFError)):
            raise SparkFailedError(_NO_JVM) from errors[0]
        text = str(errors[0])[:_MAX_REPORT]
        raise SparkFailedError(f"stage {phase.name!r} was given up: {text}") from errors[0]
    return found[0]


def _show(context: SparkContext, group: str, phase: Phase, rows: Accumulator[int]) -> None:
    tracker = context.statusTracker()
    tasks = done = active = failed = 0
    for job in tracker.getJobIdsForGroup(group):
        info = tracker.getJobInfo(job)
        for number in () if info is None else info.stageIds:
            stage = tracker.getStageInfo(number)
            if stage is not None:
                tasks += stage.numTasks
                done += stage.numCompletedTasks
                active += stage.numActiveTasks
                failed += stage.numFailedTasks
    items = done * phase.num_items // max(tasks, 1)
    phase.update(min(items, phase.num_items), active=active, retried=failed, rows=rows.value)


def max_attempts(context: SparkContext) -> int:
    """Return how often Spark tries a task; local masters say so in their name, or it is once.

    Raises nothing; see Spark's documentation of ``spark.task.maxFailures``.
    """
    local = _LOCAL.fullmatch(context.master or "")
    if local is not None:
        return 1 if local[1] is None else int(local[1])
    return int(context.getConf().get("spark.task.maxFailures", "4") or "4")


def _work(
    worker: Worker, attempts: int, rows: Accumulator[int], numbered: Iterator[Numbered]
) -> Iterator[Outcome]:
    """Work on the items of one task; runs in a worker.

    The last attempt returns what went wrong instead of raising it: Spark would end the stage, and
    so the work on all other items.
    """
    task = TaskContext.get()
    is_last = task is None or task.attemptNumber() + 1 >= attempts
    for item, data, num_rows in numbered:
        try:
            result = worker(data)
        except (InvalidRequestError, UnsupportedFeatureError) as error:
            yield item, None, told(error)  # the same again, however often it is tried
        except Exception as error:
            if not is_last:
                raise
            yield item, None, told(error)
        else:
            rows.add(num_rows)
            yield item, result, ""
    give_back_pages()
    spare_collections()


def spare_collections() -> None:
    """Collect garbage, and take the rest out of the collector's sight if that is much.

    Spark collects after each task. Kernels leave 100,000 objects in a worker, which live as long as
    it does: looking at them takes 0.1 s, again and again.
    """
    started = time.perf_counter()
    gc.collect()
    if time.perf_counter() - started > _SLOW_COLLECTION_S:
        gc.freeze()


def told(error: Exception) -> str:
    """Return what went wrong, in a line or two; errors of ours say it without their class."""
    if isinstance(error, LanceError):
        return str(error)[:_MAX_TEXT]
    return "".join(traceback.format_exception_only(error)).strip()[:_MAX_TEXT]


def _blamed(error: SparkFailedError, name: str, num_tasks: int, num_items: int) -> Exception:
    """Return which items Spark's error is about, or the error if it is about none."""
    found = _LOST.search(str(error))
    if found is None:
        return error
    task, text = int(found[1]), found[2]
    first, end = (place * num_items // num_tasks for place in (task, task + 1))
    return StageFailedError(name, dict.fromkeys(range(first, end), text[:_MAX_TEXT]))
