"""Reading many byte ranges at once: few requests, several under way, every byte counted."""

from __future__ import annotations

import threading
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

from lance_core.io.coalesce import coalesce
from lance_core.io.metering import current_meter
from lance_core.io.store import HoldsRanges, check_range

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance_core.io.observing import GetRange, ReadObserver
    from lance_core.io.store import ObjectStore

_MAX_REQUEST_BYTES = 8 << 20
"""Requests stop growing here: several of this size in parallel beat one larger one."""


_NO_BYTES = memoryview(b"")


class ByteRange(NamedTuple):
    """Bytes ``[start, end)`` of one object."""

    path: str
    start: int
    end: int


class Tail(NamedTuple):
    """The last bytes of an object: ``view`` begins at ``start``, the object has ``size`` bytes."""

    view: memoryview
    start: int
    size: int


class RangeScheduler:
    """Reads ranges of one store; safe to share between threads.

    What is read is added to the meter of the calling thread (``metering``): the bytes the store
    delivered and the requests it took. On a store that maps its objects each range is a slice and
    counts as one request.

    Parameters
    ----------
    store
        Where the bytes come from.
    max_concurrency
        Requests of this scheduler under way at one time. Its threads start when first needed and
        end with the scheduler.
    pool
        Threads to use instead of own ones, shared by several schedulers; its size is then the
        limit. A task on that pool must not call a scheduler that uses it: it could wait for ever.
    observer
        Told of reads; None = nobody is.
    """

    def __init__(
        self,
        store: ObjectStore,
        max_concurrency: int = 16,
        *,
        pool: Executor | None = None,
        observer: ReadObserver | None = None,
    ) -> None:
        self.store = store
        self._observer = observer
        self._holder = store if isinstance(store, HoldsRanges) else None
        self._max_concurrency = max_concurrency
        self._pool = pool
        self._pool_lock = threading.Lock()

    def read(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[memoryview]:
        """Return ranges ``[start, end)`` of one object, read-only, in the order given.

        Ranges may overlap, repeat and be empty. Raises ``CorruptFileError`` if one is not inside
        the object, and the errors of the store.
        """
        if not ranges:
            return []
        whole = self.store.map(path)
        if whole is not None:
            return _slice(path, whole, ranges)
        return self._fetch([ByteRange(path, start, end) for start, end in ranges])

    def read_many(self, ranges: Sequence[ByteRange]) -> list[memoryview]:
        """Return ranges of several objects, in the order given; otherwise like ``read``."""
        views: dict[int, memoryview] = {}
        waiting: list[int] = []
        for path, positions in _positions_by_path(ranges).items():
            whole = self.store.map(path)
            if whole is None:
                waiting += positions
            else:
                bounds = [ranges[position][1:] for position in positions]
                views.update(zip(positions, _slice(path, whole, bounds), strict=True))
        fetched = self._fetch([ranges[position] for position in waiting])
        views.update(zip(waiting, fetched, strict=True))
        return [views[position] for position in range(len(ranges))]

    def tail(self, path: str, size: int | None, length: int) -> Tail:
        """Return the last ``length`` bytes of an object, or all of it if it is shorter.

        ``size`` is the object's size where the caller knows it; None costs a head request.
        """
        if size is None:
            size = self._size(path)
        start = max(0, size - length)
        (view,) = self.read(path, [(start, size)])
        return Tail(view, start, size)

    def _size(self, path: str) -> int:
        whole = self.store.map(path)
        if whole is not None:
            return len(whole)
        held = None if self._holder is None else self._holder.held_size(path)
        if held is not None:
            return held
        current_meter().store_requests += 1
        return self.store.head(path).size

    def _fetch(self, ranges: Sequence[ByteRange]) -> list[memoryview]:
        """Read from a store that waits: coalesce per object, then all requests at once."""
        requests: list[ByteRange] = []
        owners: dict[int, int] = {}
        views = self._at_hand(ranges)
        for path, positions in _positions_by_path(ranges).items():
            wanted = [position for position in positions if position not in views]
            bounds = [ranges[position][1:] for position in wanted]
            plan = coalesce(bounds, self.store.coalesce_gap, _MAX_REQUEST_BYTES)
            for position, owner in zip(wanted, plan.owners, strict=True):
                owners[position] = len(requests) + owner
            requests += [ByteRange(path, start, end) for start, end in plan.requests]
        answers = self._request(requests)
        for position, owner in owners.items():
            _, start, end = ranges[position]
            skip = requests[owner].start
            views[position] = answers[owner][start - skip : end - skip]
        return [views[position] for position in range(len(ranges))]

    def _at_hand(self, ranges: Sequence[ByteRange]) -> dict[int, memoryview]:
        """Return, by position, the ranges that are empty and those that need not be fetched."""
        views: dict[int, memoryview] = {}
        for position, byte_range in enumerate(ranges):
            if _is_empty(byte_range):
                views[position] = _NO_BYTES
            elif self._holder is not None:
                held = self._holder.held_range(*byte_range)
                if held is not None:
                    views[position] = held
        return views

    def _request(self, requests: list[ByteRange]) -> list[memoryview]:
        get_range: GetRange = self.store.get_range
        if self._observer is not None:
            get_range = self._observer.watch(get_range)
        if len(requests) == 1:
            answers = [get_range(*requests[0])]
        else:
            answers = self._in_parallel(get_range, requests)
        meter = current_meter()
        meter.store_requests += len(requests)
        meter.bytes_read += sum(end - start for _, start, end in requests)
        return answers

    def _in_parallel(self, get_range: GetRange, requests: list[ByteRange]) -> list[memoryview]:
        if not requests:
            return []
        pool = self._threads()
        running = [pool.submit(get_range, *request) for request in requests]
        try:
            return [future.result() for future in running]
        except BaseException:
            for future in running:
                future.cancel()
            raise

    def _threads(self) -> Executor:
        with self._pool_lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._max_concurrency, "lance-serve-read")
            return self._pool


def _positions_by_path(ranges: Sequence[ByteRange]) -> dict[str, list[int]]:
    by_path: dict[str, list[int]] = {}
    for position, byte_range in enumerate(ranges):
        by_path.setdefault(byte_range.path, []).append(position)
    return by_path


def _is_empty(byte_range: ByteRange) -> bool:
    """Tell whether a range needs no reading; one that is no range at all is corruption.

    Whether a range lies inside the object is for the store to say.
    """
    path, start, end = byte_range
    check_range(path, start, end, size=max(start, end))
    return start == end


def _slice(path: str, whole: memoryview, ranges: Sequence[tuple[int, int]]) -> list[memoryview]:
    size = len(whole)
    num_bytes = 0
    views: list[memoryview] = []
    for start, end in ranges:
        if not 0 <= start <= end <= size:
            check_range(path, start, end, size=size)
        num_bytes += end - start
        views.append(whole[start:end])
    meter = current_meter()
    meter.bytes_read += num_bytes
    meter.store_requests += len(views)
    return views
