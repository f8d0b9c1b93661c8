"""Doing the same for several files of a store that waits: at once, and counted as one query."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TYPE_CHECKING, TypeVar

from lance_core.io.metering import QueryMeter, current_meter, metered

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lance_core.io.store import ObjectStore

T = TypeVar("T")
R = TypeVar("R")

_MAX_THREADS = 16


def for_each(
    store: ObjectStore,
    work: Callable[[T], R],
    items: Sequence[T],
    *,
    num_threads: int | None = None,
) -> list[R]:
    """Return ``[work(item) for item in items]``; in threads where the store makes them wait.

    A store with a coalescing gap of 0 costs nothing per request (memory, mapped files), so there
    the calling thread does all the work. What the threads read is added to the caller's meter.
    The first failure, in the order of ``items``, is raised when all have ended. ``num_threads`` is
    16 if left out.
    """
    if len(items) <= 1 or store.coalesce_gap == 0:
        return [work(item) for item in items]

    def measured(item: T) -> tuple[R, QueryMeter]:
        with metered() as meter:
            return work(item), meter

    most = _MAX_THREADS if num_threads is None else num_threads
    # each thread in a copy of its own of what the caller's thread knows, such as who is asking
    contexts = [copy_context() for _ in items]
    with ThreadPoolExecutor(min(len(items), most), "lance-serve-wait") as pool:
        answers = list(pool.map(lambda context, item: context.run(measured, item), contexts, items))
    total = current_meter()
    for _, meter in answers:
        total.add(meter)
    return [answer for answer, _ in answers]
