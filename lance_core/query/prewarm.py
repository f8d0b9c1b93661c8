"""Loading an index into memory before the first query asks for it."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from lance_core.errors import InvalidRequestError, UnsupportedFeatureError
from lance_core.index.registry import IndexKind, classify
from lance_core.io.metering import metered
from lance_core.query.describe_indices import segments_named
from lance_core.scan.vector_type import vector_type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from lance_core.cache.byte_cache import ByteCache
    from lance_core.ids import FieldId
    from lance_core.index.vector.segment import VectorSegment
    from lance_core.query.deadline import Deadline
    from lance_core.query.plan import SegmentDescription, SkippedSegment
    from lance_core.query.segments import BoundSearch
    from lance_core.table.index_metadata import IndexMetadata
    from lance_core.table.snapshot import Snapshot

PIECE_BYTES = 8 << 20
"""Loaded at a time: a query that wants one of these partitions meanwhile waits for all of them."""


@dataclass(frozen=True, slots=True)
class Prewarmed:
    """How far an index has been loaded.

    Parameters
    ----------
    index_name
        The index.
    partitions, partitions_total
        Partitions of all segments that are in memory, of those that are wanted. Of an index of
        values parts of its files, such as pages.
    rows
        Rows in them; 0 of an index of values.
    nbytes
        Memory that they take.
    bytes_read, store_requests
        What was read for it; nothing for what was there already.
    elapsed_ms
        How long it took.
    skipped
        Segments that no query uses either, and why.
    stopped
        Why not all partitions were loaded; None = all were, or it is still going on.
    """

    index_name: str
    partitions_total: int
    partitions: int = 0
    rows: int = 0
    nbytes: int = 0
    bytes_read: int = 0
    store_requests: int = 0
    elapsed_ms: float = 0.0
    skipped: tuple[SkippedSegment, ...] = ()
    stopped: str | None = None

    @property
    def is_complete(self) -> bool:
        """Whether everything that is wanted is in memory."""
        return self.partitions == self.partitions_total


def ignore_progress(_: Prewarmed) -> None:
    """Stand in where nobody watches."""


def require_index(snapshot: Snapshot, name: str) -> list[IndexMetadata]:
    """Return the segments of an index.

    Raises
    ------
    IndexNotFoundError
        There is none of that name; tells which there are.
    UnsupportedFeatureError
        It is on several columns.
    """
    found = segments_named(snapshot, name)
    if len({field_id for each in found for field_id in each.field_ids}) != 1:
        raise UnsupportedFeatureError(f'index "{name}" is not one of a single column')
    return found


def scalar_field(snapshot: Snapshot, name: str) -> FieldId | None:
    """Return the column of an index of values, None of one of vectors; as `require_index`."""
    segments = require_index(snapshot, name)
    field_id = segments[0].field_ids[0]
    kinds = {classify(each) for each in segments}
    if IndexKind.VECTOR in kinds or vector_type(snapshot.schema.by_id(field_id)) is not None:
        return None
    return field_id


class IndexWarmer:
    """One run over the segments of an index; belongs to one thread.

    What is loaded is bounded by the budget of the cache. The least recently used of other entries
    leave for it, as for a query; nothing of the index itself does.

    Parameters
    ----------
    cache
        Keeps what is loaded.
    deadline
        Looked at between pieces.
    progress
        Called after each piece.
    """

    def __init__(
        self, cache: ByteCache, deadline: Deadline, progress: Callable[[Prewarmed], object]
    ) -> None:
        self._budget = cache.stats.budget_bytes
        self._room = self._budget
        self._deadline = deadline
        self._progress = progress
        self._row_bytes = 0.0

    def run(
        self,
        name: str,
        usable: Sequence[SegmentDescription],
        skipped: Sequence[SkippedSegment],
        bind: Callable[[SegmentDescription], BoundSearch],
        partitions: Sequence[int] | None,
    ) -> Prewarmed:
        """Load partitions of all segments, in the order in which they lie in their files.

        Parameters
        ----------
        name
            The index.
        usable, skipped
            Its segments.
        bind
            Gives what queries search of a segment.
        partitions
            Which of each segment; None = all.

        Raises
        ------
        InvalidRequestError
            No segment has such a partition.
        """
        wanted = [_wanted(each, partitions) for each in usable]
        _require_known(partitions, usable, name)
        started = time.perf_counter()
        done = Prewarmed(name, sum(map(len, wanted)), skipped=tuple(skipped))
        with metered() as meter:
            segments = [bind(each) for each in usable]
            self._room -= sum(each.nbytes + each.partitions.segment.nbytes for each in segments)
            for bound, some in zip(segments, wanted, strict=True):
                for step in self._load(bound, some, done):
                    done = replace(
                        step,
                        bytes_read=meter.bytes_read,
                        store_requests=meter.store_requests,
                        elapsed_ms=round((time.perf_counter() - started) * 1000, 3),
                    )
                    self._progress(done)
                if done.stopped is not None:
                    break
        return done

    def _load(
        self, bound: BoundSearch, wanted: NDArray[np.int64], done: Prewarmed
    ) -> Iterator[Prewarmed]:
        segment = bound.partitions.segment
        left = wanted[np.argsort(segment.offsets[wanted], kind="stable")]
        while len(left) > 0:
            self._deadline.check("loading an index")
            piece = left[: _piece_length(segment, left, self._row_bytes)]
            expected = int(segment.lengths[piece].sum() * self._row_bytes)
            if done.nbytes + expected > self._room:
                yield replace(done, stopped=why_stopped(self._budget))
                return
            held = bound.partitions.acquire(piece)
            nbytes = sum(block.nbytes for block in held.blocks)
            if done.nbytes + nbytes > self._room:
                yield replace(done, stopped=why_stopped(self._budget))
                return
            self._row_bytes = max(self._row_bytes, nbytes / max(held.num_rows, 1))
            done = replace(
                done,
                partitions=done.partitions + len(piece),
                rows=done.rows + held.num_rows,
                nbytes=done.nbytes + nbytes,
            )
            left = left[len(piece) :]
            yield done


def why_stopped(budget: int) -> str:
    """Say that the budget of the cache ended."""
    return f"more does not fit into the cache budget of {budget} bytes"


def _piece_length(segment: VectorSegment, left: NDArray[np.int64], row_bytes: float) -> int:
    """Return how many partitions to load next: one to learn how large rows are, then several."""
    if row_bytes == 0:
        return 1
    ends = np.cumsum(segment.lengths[left])
    return max(1, int(np.searchsorted(ends, PIECE_BYTES / row_bytes, side="right")))


def _wanted(description: SegmentDescription, partitions: Sequence[int] | None) -> NDArray[np.int64]:
    if partitions is None:
        return np.arange(description.num_partitions)
    inside = sorted({each for each in partitions if 0 <= each < description.num_partitions})
    return np.array(inside, np.int64)


def _require_known(
    partitions: Sequence[int] | None, usable: Sequence[SegmentDescription], name: str
) -> None:
    most = max((each.num_partitions for each in usable), default=0)
    for each in [] if partitions is None else partitions:
        if not 0 <= each < most and usable:
            raise InvalidRequestError(
                f'index "{name}" has no partition {each}; they are 0 to {most - 1}'
            )
