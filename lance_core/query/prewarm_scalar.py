"""Loading an index of values into memory before the first filter asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.query.prewarm_parts import load_all, require_whole
from lance_core.query.scalar_indices import ScalarIndices
from lance_core.table.frag_reuse import load_frag_reuse

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lance_core.ids import FieldId
    from lance_core.index.scalar.segment import ValueSegment
    from lance_core.query.deadline import Deadline
    from lance_core.query.plan import SkippedSegment
    from lance_core.query.prewarm import Prewarmed
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
    require_whole(name, partitions)

    def opened() -> tuple[Sequence[ValueSegment], Sequence[SkippedSegment]]:
        indices = ScalarIndices(session, snapshot, load_frag_reuse(session.cache, snapshot))
        segments = indices.opened(field_id, name)
        skipped = [each for each in indices.skipped([field_id]) if each.index_name == name]
        return segments, skipped

    return load_all(name, opened, session.cache, progress, deadline)
