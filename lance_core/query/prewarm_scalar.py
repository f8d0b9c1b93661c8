"""Loading an index of values into memory before the first filter asks for it."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from lance_core.errors import InvalidRequestError
from lance_core.io.metering import metered
from lance_core.query.prewarm import PIECE_BYTES, Prewarmed, why_stopped
from lance_core.query.scalar_indices import ScalarIndices
from lance_core.table.frag_reuse import load_frag_reuse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from lance_core.ids import FieldId
    from lance_core.index.scalar.segment import ScalarSegment
    from lance_core.query.deadline import Deadline
    from lance_core.query.session import Session
    from lance_core.table.snapshot import Snapshot


def warm_scalar_index(
    session: Session,
    snapshot: Snapshot,
    field_id: FieldId,
    name: str,
    partitions: Sequence[int] | None,
    progress: Callable[[Prewarmed], object],
    deadline: Deadline,
) -> Prewarmed:
    """Load all parts of an index: pages, sets of rows, postings.

    Parameters
    ----------
    session, snapshot
        Cache and opened files, and the version.
    field_id, name
        The column, and its index.
    partitions
        None: there are no such parts here.
    progress
        Called after each piece of some megabytes.
    deadline
        Looked at between pieces.

    Raises
    ------
    InvalidRequestError
        Partitions are asked for.
    CorruptFileError
        A segment contradicts the format.
    """
    if partitions is not None:
        raise InvalidRequestError(
            f'index "{name}" is one of values and has no partitions; load all of it'
        )
    started = time.perf_counter()
    with metered() as meter:
        indices = ScalarIndices(session, snapshot, load_frag_reuse(session.cache, snapshot))
        segments = indices.opened(field_id, name)
        skipped = tuple(each for each in indices.skipped([field_id]) if each.index_name == name)
        done = Prewarmed(name, sum(each.num_parts for each in segments), skipped=skipped)
        budget = session.cache.stats.budget_bytes
        room = budget - sum(each.nbytes for each in segments)
        for num_parts, nbytes in _pieces(segments, room, deadline):
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


def _pieces(
    segments: Sequence[ScalarSegment], room: int, deadline: Deadline
) -> Iterator[tuple[int, int]]:
    """Load piece after piece while there is room; yield parts and bytes of each."""
    for segment in segments:
        at, part_bytes = 0, 0.0
        while at < segment.num_parts:
            deadline.check("loading an index")
            size = 1 if part_bytes == 0 else max(int(PIECE_BYTES / part_bytes), 1)
            stop = min(at + size, segment.num_parts)
            if part_bytes * (stop - at) > room:
                return
            nbytes = segment.load_parts(at, stop)
            room -= nbytes
            if room < 0:
                return
            yield stop - at, nbytes
            part_bytes = max(part_bytes, nbytes / (stop - at))
            at = stop
