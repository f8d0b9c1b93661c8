"""Bringing indices up to date: fragments that no segment covers, and too many segments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lance_core.errors import InvalidRequestError
from lance_core.file.arguments import checked_flag, checked_number
from lance_core.operations.commit_planned import commit_planned
from lance_core.operations.create_index import NewSegments
from lance_core.operations.index_arguments import (
    checked_index_names,
    checked_memory,
    checked_progress,
)
from lance_core.operations.index_state import index_states
from lance_core.operations.optimize_scalars import is_scalar, scalar_work
from lance_core.operations.optimize_texts import is_of_texts, text_work
from lance_core.operations.optimize_vectors import vector_work
from lance_core.operations.progress import no_progress, share
from lance_core.operations.write_segment import MEMORY_BYTES
from lance_core.query.describe_indices import no_such_index
from lance_core.scan.vector_type import vector_type
from lance_core.table.index_upkeep import coverage
from lance_core.table.transaction import CreateIndex

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance_core.operations.index_state import IndexState, IndexWork, SegmentState
    from lance_core.operations.progress import Progress
    from lance_core.proto import table_pb2
    from lance_core.table.files import TableFiles
    from lance_core.table.snapshot import Snapshot

_MOST_SEGMENTS = 1 << 31


@dataclass(frozen=True, slots=True)
class OptimizeOptions:
    """How indices are brought up to date.

    Parameters
    ----------
    names
        Which indices; None = all that can be.
    num_segments_to_merge
        So many of the newest segments of an index become one with the fragments that none covers;
        0 gives these a segment of their own.
    retrain
        Whether all segments become one that is built as if there was none: of vectors by a new
        model, with as many partitions as the rows ask for.
    """

    names: Sequence[str] | None = None
    num_segments_to_merge: int = 1
    retrain: bool = False

    def __post_init__(self) -> None:
        names = checked_index_names(self.names)
        object.__setattr__(self, "names", names)  # how a frozen value is finished
        checked_flag("retrain", self.retrain)
        checked_number("num_segments_to_merge", self.num_segments_to_merge, 0, _MOST_SEGMENTS)


_DEFAULTS = OptimizeOptions()


def optimize_indices(
    files: TableFiles,
    snapshot: Snapshot,
    options: OptimizeOptions = _DEFAULTS,
    *,
    memory_bytes: int = MEMORY_BYTES,
    progress: Progress = no_progress,
) -> Snapshot:
    """Let indices cover all fragments, in one commit.

    Segments that become one are merged as files hold them: rows of vectors keep their codes, as
    long as they are of one model, and those of inverted indices their tokens. Zone maps and Bloom
    filters are built anew where rows have moved or zones differ in size. What was deleted since is
    no longer in them, and deferred compactions need not be kept for them. Segments that answer
    nothing, as their fragments are gone, go too.

    Parameters
    ----------
    files
        Opened files.
    snapshot
        The version to begin with; after a conflict the newest one is looked at.
    options
        Which indices, and how.
    memory_bytes
        As `build_segment` takes it.
    progress
        Called with how far the indices are, in thousandths; each is an equal part. It begins anew
        after a conflict.

    Returns
    -------
    Snapshot
        The version committed, or the one given where nothing has to be done. So it is where an
        index has no files yet and there are still too few vectors for it.

    Raises
    ------
    IndexNotFoundError
        There is no index of a name.
    InvalidRequestError
        An index that is named is of a type that is not built here, or has to be built anew and does
        not tell how; or an argument is none.
    CommitConflictError
        Others moved rows, or changed the indices, again and again. No file is left.

    Notes
    -----
    The partitions of a vector index stay as they are unless it is retrained. pylance 14.0.2 splits
    those that have grown far beyond the size that it aims at for the type of the index, and joins
    small ones: 60,000 rows added at one place to 4 partitions of 500 gave 14 in all with IVF_FLAT,
    11 with IVF_PQ, 8 with IVF_SQ and 18 with IVF_RQ, but one for all with IVF_HNSW_SQ. `inspect`
    says when partitions are uneven.
    """
    memory_bytes, progress = checked_memory(memory_bytes), checked_progress(progress)
    with NewSegments(snapshot) as new:

        def plan(newest: Snapshot) -> CreateIndex | None:
            new.discard()
            works = _works(files, newest, options)
            if len(works) == 0:
                return None
            replaced: list[table_pb2.IndexMetadata] = []
            for place, work in enumerate(works):
                hearing = share(progress, place, len(works))
                hearing(0, 1)
                segment = work.build(files, newest, memory_bytes, hearing)
                if len(coverage(segment)) > 0:  # else there were too few vectors, and no files
                    new.keep(segment)
                    replaced += work.replaced
                hearing(1, 1)
            return CreateIndex(new.segments, tuple(replaced)) if new.segments else None

        return commit_planned(snapshot, plan)


def _works(files: TableFiles, snapshot: Snapshot, options: OptimizeOptions) -> list[IndexWork]:
    states = index_states(snapshot)
    found: list[IndexWork | None] = []
    for name in states if options.names is None else options.names:
        if name not in states:
            raise no_such_index(snapshot, name)
        try:
            found.append(_work(files, snapshot, states[name], options))
        except InvalidRequestError:
            if options.names is not None:
                raise
    return [work for work in found if work is not None]


def _work(
    files: TableFiles, snapshot: Snapshot, state: IndexState, options: OptimizeOptions
) -> IndexWork | None:
    """Tell what to build for an index, None if it is as it should be."""
    useful, number = state.useful, options.num_segments_to_merge
    first = 0 if options.retrain else max(len(useful) - number, 0)
    merged = useful[first:]
    has_dead = len(merged) > 0 and len(useful) < len(state.segments)
    is_whole = len(state.uncovered) == 0 and len(merged) <= 1 and not has_dead
    if is_whole and not options.retrain:
        return None
    return index_work(files, snapshot, state, merged, retrain=options.retrain)


def index_work(
    files: TableFiles,
    snapshot: Snapshot,
    state: IndexState,
    merged: Sequence[SegmentState],
    *,
    retrain: bool = False,
) -> IndexWork | None:
    """Tell how some segments of an index become one with fragments that none covers.

    Parameters
    ----------
    files, snapshot
        Opened files, and the version.
    state
        The index; ``uncovered`` may be some of the fragments that none covers.
    merged
        The segments, the newest last; none = the fragments get a segment of their own.
    retrain
        Whether it is built as if there was no index.

    Returns
    -------
    IndexWork | None
        What to build. None where there are too few vectors to train a model that is needed.

    Raises
    ------
    InvalidRequestError
        The type of the index is not built here, or it has to be built anew and does not tell how.
    """
    if vector_type(state.field(snapshot)) is not None:
        return vector_work(files, snapshot, state, merged, retrain=retrain)
    if is_scalar(state):
        return scalar_work(snapshot, state, merged, retrain=retrain)
    if is_of_texts(state):
        return text_work(files, snapshot, state, merged, retrain=retrain)
    raise InvalidRequestError(f"index {state.name!r} is none of the kinds that are built here")
