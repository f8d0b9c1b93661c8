"""Loading the parts of an index one after the other, as far as the cache goes."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from lance_core.errors import InvalidRequestError
from lance_core.io.metering import metered
from lance_core.query.prewarm import PIECE_BYTES, Prewarmed, why_stopped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from lance_core.cache.byte_cache import ByteCache
    from lance_core.query.deadline import Deadline
    from lance_core.query.plan import SkippedSegment


class Loadable(Protocol):
    """Something of an index that is loaded part by part."""

    @property
    def nbytes(self) -> int:
        """Memory held before any part is loaded."""

    @property
    def num_parts(self) -> int:
        """Parts that are read and kept in the cache."""

    def load_parts(self, start: int, stop: int) -> int:
        """Bring the parts ``start`` to ``stop - 1`` into the cache; return the memory they take."""


def load_all(
    name: str,
    open_parts: Callable[[], tuple[Sequence[Loadable], Sequence[SkippedSegment]]],
    cache: ByteCache,
    progress: Callable[[Prewarmed], object],
    deadline: Deadline,
) -> Prewarmed:
    """Load all parts of an index.

    Parameters
    ----------
    name
        The index.
    open_parts
        Returns what to load, and the segments that cannot be used; what it reads is counted too.
    cache
        Keeps what is loaded.
    progress
        Called after each piece of some megabytes.
    deadline
        Looked at between pieces.
    """
    started = time.perf_counter()
    with metered() as meter:
        parts, skipped = open_parts()
        done = Prewarmed(name, sum(each.num_parts for each in parts), skipped=tuple(skipped))
        budget = cache.stats.budget_bytes
        room = budget - sum(each.nbytes for each in parts)
        for num_parts, nbytes in _pieces(parts, room, deadline):
            done = replace(
                done,
                partitions=done.partitions + num_parts,
                nbytes=done.nbytes + nbytes,
                bytes_read=meter.bytes_read,
                store_requests=meter.store_requests,
                elapsed_ms=round((time.perf_counter() - started) * 1000, 3),
            )
            progress(done)
    return done if done.is_complete else replace(done, stopped=why_stopped(budget))


def require_whole(name: str, partitions: Sequence[int] | None) -> None:
    """Refuse to load some partitions of an index that is loaded as a whole."""
    if partitions is not None:
        raise InvalidRequestError(
            f'index "{name}" is none of vectors and has no partitions to name; load all of it'
        )


def _pieces(parts: Sequence[Loadable], room: int, deadline: Deadline) -> Iterator[tuple[int, int]]:
    """Load piece after piece while there is room; yield parts and bytes of each."""
    for each in parts:
        at, part_bytes = 0, 0.0
        while at < each.num_parts:
            deadline.check("loading an index")
            size = 1 if part_bytes == 0 else max(int(PIECE_BYTES / part_bytes), 1)
            stop = min(at + size, each.num_parts)
            if part_bytes * (stop - at) > room:
                return
            nbytes = each.load_parts(at, stop)
            room -= nbytes
            if room < 0:
                return
            yield stop - at, nbytes
            part_bytes = max(part_bytes, nbytes / (stop - at))
            at = stop
