"""Doing work ahead of whoever takes its results, in order, with bounded memory."""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from lance_core.io.metering import QueryMeter, current_meter, metered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future

T = TypeVar("T")


def ahead(
    tasks: Iterator[Callable[[], T]], *, num_threads: int, depth: Callable[[], int]
) -> Iterator[T]:
    """Yield the results of tasks in their order.

    Parameters
    ----------
    tasks
        Asked for in the caller's thread, each when it can be begun. The first is done before the
        second is asked for, so that what it measured can size the rest.
    num_threads
        Tasks under way at one time.
    depth
        Says, when the first task is done, how many results and tasks under way may exist beside
        the one being used; 0 does all the work in the caller's thread.

    Notes
    -----
    The first failure in the order of tasks is raised in its place. What the threads read is added
    to the meter of the caller. Closing the iterator waits for the tasks under way.
    """
    first = next(tasks, None)
    if first is None:
        return
    yield first()
    num_waiting = depth()
    if num_waiting == 0:
        for task in tasks:
            yield task()
        return
    waiting: deque[Future[tuple[T, QueryMeter]]] = deque()
    pool: ThreadPoolExecutor | None = None
    try:
        for task in tasks:
            if pool is None:
                pool = ThreadPoolExecutor(num_threads, "lance-core-ahead")
            waiting.append(pool.submit(_measured, task))
            if len(waiting) > num_waiting:
                yield _result(waiting.popleft())
        while len(waiting) > 0:
            yield _result(waiting.popleft())
    finally:
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)


def _measured(task: Callable[[], T]) -> tuple[T, QueryMeter]:
    with metered() as meter:
        return task(), meter


def _result(future: Future[tuple[T, QueryMeter]]) -> T:
    result, meter = future.result()
    current_meter().add(meter)
    return result
