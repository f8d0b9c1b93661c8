"""Own threads for the work of requests; the event loop only moves bytes.

Two lanes: the search lane runs what needs no waiting (decode, search resident data, encode), the
I/O lane everything that may wait for a store or takes long. A slow store can so never hold a
search thread.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING, Generic, TypeVar

from service.api.errors import BusyError

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
V = TypeVar("V")


class _Job(Generic[T]):
    """A call and the future that waits for it."""

    __slots__ = ("call", "future", "loop")

    def __init__(self, call: Callable[[], T], loop: asyncio.AbstractEventLoop) -> None:
        self.call = call
        self.loop = loop
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


class Lane:
    """Daemon threads on one bounded queue."""

    def __init__(self, name: str, *, num_threads: int, max_waiting: int) -> None:
        self._name = name
        self._num_threads = num_threads
        self._max_waiting = max_waiting
        self._queue: SimpleQueue[_Job[object] | None] = SimpleQueue()

    def start(self) -> None:
        """Start the threads; what was submitted before waits until now."""
        for number in range(self._num_threads):
            threading.Thread(target=self._work, name=f"{self._name}-{number}", daemon=True).start()

    def stop(self) -> None:
        """Let the threads end after the work that is queued."""
        for _ in range(self._num_threads):
            self._queue.put(None)

    @property
    def num_waiting(self) -> int:
        """Calls that no thread has taken yet."""
        return self._queue.qsize()

    async def run(self, call: Callable[[], T]) -> T:
        """Return what ``call`` returns on a thread of this lane, or raise what it raises.

        When the awaiting task is cancelled before a thread takes the call, the call never runs.

        Raises
        ------
        BusyError
            The queue is full.
        """
        if self.num_waiting >= self._max_waiting:
            raise BusyError(
                f"{self._max_waiting} requests are waiting already (setting max_queued_requests)"
            )
        job = _Job(call, asyncio.get_running_loop())
        self._queue.put(job)  # type: ignore[arg-type]  # a job's type is its own affair
        return await job.future

    def _work(self) -> None:
        while True:
            job = self._queue.get()
            if job is None:
                return
            job.run()
            del job  # do not keep the last answer alive while waiting
