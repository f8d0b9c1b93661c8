"""Own threads for the work of requests; the event loop only moves bytes.

Two lanes: the search lane runs what needs no waiting (decode, search resident data, encode), the
I/O lane everything that may wait for a store or takes long. A slow store can so never hold a
search thread.
"""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING, Generic, TypeVar

from service.api.errors import BusyError

if TYPE_CHECKING:
    from collections.abc import Callable

    from service.telemetry.tracing import Tracing

T = TypeVar("T")
V = TypeVar("V")


class _Job(Generic[T]):
    """A call and the future that waits for it."""

    __slots__ = ("call", "future", "loop", "since_s")

    def __init__(self, call: Callable[[], T], loop: asyncio.AbstractEventLoop) -> None:
        self.call = call
        self.loop = loop
        self.since_s = time.perf_counter()
        self.future: asyncio.Future[T] = loop.create_future()

    def run(self) -> None:
        """Run the call on this thread, unless nobody waits for it any more."""
        if self.future.cancelled():
            return
        try:
            value = self.call()
        except BaseException as error:  # it belongs to the waiting request
            self._on_loop(self._fail, error)
        else:
            self._on_loop(self._succeed, value)

    def _on_loop(self, settle: Callable[[V], None], outcome: V) -> None:
        """Settle the future on its loop; a loop that was closed has nobody who waits."""
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(settle, outcome)

    def _succeed(self, value: T) -> None:
        if not self.future.cancelled():
            self.future.set_result(value)

    def _fail(self, error: BaseException) -> None:
        if not self.future.cancelled():
            self.future.set_exception(error)


@dataclass(frozen=True, slots=True)
class LaneFigures:
    """What a lane does at one moment, and has done so far.

    ``waited_s`` is the time that the calls waited which a thread took, all together.
    """

    num_threads: int
    num_busy: int
    num_taken: int
    num_refused: int
    waited_s: float


class _Worker:
    """One thread of a lane; it alone counts here, so that no lock is needed."""

    __slots__ = ("_queue", "is_busy", "num_taken", "waited_s")

    def __init__(self, queue: SimpleQueue[_Job[object] | None]) -> None:
        self._queue = queue
        self.is_busy = False
        self.num_taken = 0
        self.waited_s = 0.0

    def work(self) -> None:
        """Run what is queued until there is None."""
        while True:
            job = self._queue.get()
            if job is None:
                return
            self.waited_s += time.perf_counter() - job.since_s
            self.num_taken += 1
            self.is_busy = True
            job.run()
            self.is_busy = False
            del job  # do not keep the last answer alive while waiting


class Lane:
    """Daemon threads on one bounded queue."""

    def __init__(
        self, name: str, *, num_threads: int, max_waiting: int, tracing: Tracing | None = None
    ) -> None:
        self.name = name
        self._tracing = tracing
        self._max_waiting = max_waiting
        self._queue: SimpleQueue[_Job[object] | None] = SimpleQueue()
        self._workers = [_Worker(self._queue) for _ in range(num_threads)]
        self._num_refused = 0

    def start(self) -> None:
        """Start the threads; what was submitted before waits until now."""
        for number, worker in enumerate(self._workers):
            name = f"{self.name}-{number}"
            threading.Thread(target=worker.work, name=name, daemon=True).start()

    def stop(self) -> None:
        """Let the threads end after the work that is queued."""
        for _ in self._workers:
            self._queue.put(None)

    @property
    def num_waiting(self) -> int:
        """Calls that no thread has taken yet."""
        return self._queue.qsize()

    def figures(self) -> LaneFigures:
        """Return what is done and was done."""
        return LaneFigures(
            num_threads=len(self._workers),
            num_busy=sum(each.is_busy for each in self._workers),
            num_taken=sum(each.num_taken for each in self._workers),
            num_refused=self._num_refused,
            waited_s=sum(each.waited_s for each in self._workers),
        )

    async def run(self, call: Callable[[], T]) -> T:
        """Return what ``call`` returns on a thread of this lane, or raise what it raises.

        When the awaiting task is cancelled before a thread takes the call, the call never runs.

        Raises
        ------
        BusyError
            The queue is full.
        """
        if self.num_waiting >= self._max_waiting:
            self._num_refused += 1
            raise BusyError(
                f"{self._max_waiting} requests are waiting already (setting max_queued_requests)"
            )
        if self._tracing is not None:
            call = self._tracing.carried(self.name, call)
        job = _Job(call, asyncio.get_running_loop())
        self._queue.put(job)  # type: ignore[arg-type]  # a job's type is its own affair
        return await job.future
