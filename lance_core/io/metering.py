"""What one query costs in reads: a meter that follows the thread of the query.

Stores and caches are shared between queries, so their own counters cannot say which query paid.
The meter lives in a context variable: code deep below a query adds to it without being handed it.
Work that a query gives to another thread counts only if that thread runs in a copy of the context.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(slots=True)
class QueryMeter:
    """Running totals of one query.

    ``bytes_read`` are the bytes the store delivered, gaps closed by coalescing included;
    ``store_requests`` the range reads and head requests that delivered them.
    """

    bytes_read: int = 0
    store_requests: int = 0
    cache_hits: int = 0
    cache_misses: int = 0

    def add(self, other: QueryMeter) -> None:
        """Count what was read elsewhere for the same query."""
        self.bytes_read += other.bytes_read
        self.store_requests += other.store_requests
        self.cache_hits += other.cache_hits
        self.cache_misses += other.cache_misses


_meter: ContextVar[QueryMeter | None] = ContextVar("lance_core_query_meter", default=None)


def current_meter() -> QueryMeter:
    """Return the meter of the running query, or one that nobody reads."""
    meter = _meter.get()
    return QueryMeter() if meter is None else meter


class metered:  # noqa: N801 - used like the functions of contextlib
    """Count the reads of this block, and of no block around it, in a new meter.

    A class of its own, because a generator would cost more than many reads.
    """

    __slots__ = ("_token",)

    def __enter__(self) -> QueryMeter:
        meter = QueryMeter()
        self._token = _meter.set(meter)
        return meter

    def __exit__(self, *_: object) -> None:
        _meter.reset(self._token)
