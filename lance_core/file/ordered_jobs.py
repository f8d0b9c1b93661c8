"""Work spread over threads whose results are consumed in the order of submission."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class OrderedJobs(Generic[T]):
    """Runs at most ``max_waiting`` jobs ahead of the one whose result is consumed next.

    Results are consumed by the thread that calls, while it submits or drains. An error of a job is
    raised there; then only ``close`` may follow.
    """

    def __init__(self, consume: Callable[[T], None], *, num_threads: int, max_waiting: int) -> None:
        self._consume = consume
        self._max_waiting = max_waiting
        self._pool = ThreadPoolExecutor(num_threads, thread_name_prefix="lance-write")
        self._waiting: deque[Future[T]] = deque()

    def submit(self, job: Callable[[], T], *, is_short: bool) -> None:
        """Start a job, waiting while too many are ahead.

        A short one is done by the thread that calls: many of them in several threads would spend
        most of their time on handing the GIL to and fro.
        """
        while len(self._waiting) >= self._max_waiting:
            self._consume_next()
        if not is_short:
            self._waiting.append(self._pool.submit(job))
        elif len(self._waiting) == 0:
            self._consume(job())
        else:
            done: Future[T] = Future()
            done.set_result(job())
            self._waiting.append(done)

    def drain(self) -> None:
        """Wait for all jobs."""
        while len(self._waiting) > 0:
            self._consume_next()

    def close(self) -> None:
        """Drop what is not consumed, and end the threads."""
        self._waiting.clear()
        self._pool.shutdown(cancel_futures=True)

    def _consume_next(self) -> None:
        self._consume(self._waiting.popleft().result())
