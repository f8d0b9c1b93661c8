"""One load per key, shared by all threads that ask for it while it runs."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from lance_core.errors import CancelledByClientError, DeadlineExceededError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

K = TypeVar("K", bound="Hashable")
V = TypeVar("V")

_CONCERNS_ITS_CALLER_ONLY = (DeadlineExceededError, CancelledByClientError)
"""Errors that say nothing about the key: a waiter with more time tries for itself."""


class _Flight(Generic[V]):
    """A load, under way or ended, and the thread that runs it.

    Most end before anybody waits: what waiters wait for is made by the first of them.
    """

    __slots__ = ("ended", "error", "has_ended", "thread", "value")

    def __init__(self, thread: int) -> None:
        self.thread = thread
        self.has_ended = False
        self.ended: threading.Event | None = None
        self.value: V | None = None
        self.error: BaseException | None = None


class SingleFlight(Generic[K, V]):
    """Share one running load between all threads that ask for the same key.

    A load may ask for other keys. Threads whose loads wait for one another in a circle would wait
    for ever, so the one that would close the circle loads the key once more for itself.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[K, _Flight[V]] = {}
        self._waiting: dict[int, _Flight[V]] = {}

    def __len__(self) -> int:
        """Return the number of keys being loaded."""
        return len(self._running)

    def do(self, key: K, load: Callable[[], V]) -> V:
        """Return the value for ``key``; the first caller runs ``load``, the others wait for it.

        A failed load raises the same error in every waiter, and the next caller tries again.
        """
        return self.do_many([key], lambda _: [load()])[key]

    def do_many(self, keys: Sequence[K], load_many: Callable[[list[K]], Sequence[V]]) -> dict[K, V]:
        """Return the values of all ``keys``, loading those that no other thread is loading.

        ``load_many`` is called at most once for all of these together, in the order of ``keys``
        and without repeats, and returns one value for each. Own loads come before waiting, so
        that threads with overlapping keys cannot block each other.
        """
        thread = threading.get_ident()
        own, others = self._claim(keys, thread)
        values = self._load(own, load_many) if own else {}
        for key, flight in others.items():
            values[key] = self._wait(key, flight, thread, load_many)
        return values

    def _claim(
        self, keys: Sequence[K], thread: int
    ) -> tuple[dict[K, _Flight[V]], dict[K, _Flight[V]]]:
        own: dict[K, _Flight[V]] = {}
        others: dict[K, _Flight[V]] = {}
        with self._lock:
            for key in dict.fromkeys(keys):
                running = self._running.get(key)
                if running is None:
                    own[key] = self._running[key] = _Flight(thread)
                else:
                    others[key] = running
        return own, others

    def _load(
        self, own: dict[K, _Flight[V]], load_many: Callable[[list[K]], Sequence[V]]
    ) -> dict[K, V]:
        try:
            values = dict(zip(own, load_many(list(own)), strict=True))
        except BaseException as error:
            self._land(own, {}, error)
            raise
        self._land(own, values, None)
        return values

    def _land(
        self, own: dict[K, _Flight[V]], values: Mapping[K, V], error: BaseException | None
    ) -> None:
        """Forget the flights before waking the waiters: one that retries must not meet its own."""
        with self._lock:
            for key, flight in own.items():
                del self._running[key]
                flight.value, flight.error = values.get(key), error
                flight.has_ended = True
        for flight in own.values():
            if flight.ended is not None:
                flight.ended.set()

    def _wait(
        self,
        key: K,
        flight: _Flight[V],
        thread: int,
        load_many: Callable[[list[K]], Sequence[V]],
    ) -> V:
        with self._lock:
            closes_a_circle = self._leads_to(flight, thread)
            if not closes_a_circle:
                self._waiting[thread] = flight
                if flight.ended is None and not flight.has_ended:
                    flight.ended = threading.Event()
        if closes_a_circle:
            (value,) = load_many([key])
            return value
        try:
            if flight.ended is not None:
                flight.ended.wait()
            if flight.error is not None:
                raise flight.error
            return cast("V", flight.value)
        except _CONCERNS_ITS_CALLER_ONLY:
            return self.do_many([key], load_many)[key]
        finally:
            with self._lock:
                self._waiting.pop(thread, None)

    def _leads_to(self, flight: _Flight[V], thread: int) -> bool:
        """Tell whether ``flight`` waits, through any number of threads, for ``thread``."""
        behind: _Flight[V] | None = flight
        while behind is not None and behind.thread != thread:
            behind = None if behind.has_ended else self._waiting.get(behind.thread)
        return behind is not None
