"""Letting indices follow deferred compactions, so that these need not be remembered for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.errors import InvalidRequestError
from lance_core.index.registry import IndexKind, UnusableSegmentError, classify
from lance_core.operations.commit_planned import commit_planned
from lance_core.operations.create_index import NewSegments
from lance_core.operations.index_arguments import (
    checked_index_names,
    checked_memory,
    checked_progress,
)
from lance_core.operations.progress import no_progress
from lance_core.operations.rewrite_segments import rewrite_segments
from lance_core.operations.row_moves import RowMoves
from lance_core.operations.write_segment import MEMORY_BYTES
from lance_core.query.describe_indices import no_such_index
from lance_core.table.reuse_of_version import reuse_of
from lance_core.table.reuse_trim import trimmed
from lance_core.table.transaction import CreateIndex

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from lance_core.operations.progress import Progress
    from lance_core.proto import table_pb2
    from lance_core.table.files import TableFiles
    from lance_core.table.index_metadata import IndexMetadata
    from lance_core.table.snapshot import Snapshot

_OF_STRETCHES = frozenset((IndexKind.ZONEMAP, IndexKind.BLOOMFILTER))


def remap_indices(
    files: TableFiles,
    snapshot: Snapshot,
    names: Sequence[str] | None = None,
    *,
    memory_bytes: int = MEMORY_BYTES,
    progress: Progress = no_progress,
) -> Snapshot:
    """Write segments anew that deferred compactions have left behind, in one commit.

    Columns are not read. A trim can then remove the compactions from the Fragment Reuse Index,
    unless an index needs them that cannot be followed so: zone maps and Bloom filters name
    stretches of rows, and have to be built anew.

    Parameters
    ----------
    files
        Opened files.
    snapshot
        The version to begin with; after a conflict the newest one is looked at.
    names
        Which indices; None = all that can follow.
    memory_bytes
        As `build_segment` takes it; vectors that do not fit are put on disk meanwhile.
    progress
        Called with how many segments are done, and of how many.

    Returns
    -------
    Snapshot
        The version committed, or the one given where nothing has to be done.

    Raises
    ------
    IndexNotFoundError
        There is no index of a name.
    InvalidRequestError
        An index that is named cannot follow, or an argument is none; or no index of vectors can
        be built in so little memory.
    CommitConflictError
        Others changed the indices again and again. No file is left.
    CorruptFileError
        A segment contradicts the format.

    Notes
    -----
    Lance table format, section "Writing and trimming": the new segments are as of the version whose
    history was followed.
    """
    names, progress = checked_index_names(names), checked_progress(progress)
    memory_bytes = checked_memory(memory_bytes)
    with NewSegments(snapshot) as new:

        def plan(newest: Snapshot) -> CreateIndex | None:
            new.discard()
            works = segments_left_behind(newest, names)
            moves = RowMoves.of(files, newest)
            replaced: list[table_pb2.IndexMetadata] = []
            progress(0, len(works))
            for done, entry in enumerate(works, 1):
                segment = _followed(moves, entry, memory_bytes, is_named=names is not None)
                if segment is not None:
                    new.keep(segment)
                    replaced.append(entry)
                progress(done, len(works))
            if len(replaced) == 0:
                return None
            return CreateIndex(new.segments, tuple(replaced))

        return commit_planned(snapshot, plan)


def _followed(
    moves: RowMoves, entry: table_pb2.IndexMetadata, memory_bytes: int, *, is_named: bool
) -> table_pb2.IndexMetadata | None:
    try:
        return follow_segment(moves, entry, memory_bytes)
    except UnusableSegmentError as error:
        if is_named:
            raise InvalidRequestError(f"index {entry.name!r} cannot follow: {error}") from error
        return None


def follow_segment(
    moves: RowMoves, entry: table_pb2.IndexMetadata, memory_bytes: int = MEMORY_BYTES
) -> table_pb2.IndexMetadata:
    """Write a segment anew that deferred compactions have left behind; nothing is committed.

    Parameters
    ----------
    moves
        What the compactions of a version did.
    entry
        A segment of that version, of those that `segments_left_behind` returns.
    memory_bytes
        As `build_segment` takes it.

    Returns
    -------
    table_pb2.IndexMetadata
        Built from the version of the moves: a compaction that comes later has to be followed yet,
        also if it is committed first.

    Raises
    ------
    UnusableSegmentError
        The files of the segment cannot be relied on: build it anew.
    CorruptFileError
        They contradict the format. No file is left.
    """
    segment = rewrite_segments(moves, [entry], memory_bytes)
    segment.dataset_version = moves.snapshot.version
    return segment


def segments_left_behind(
    snapshot: Snapshot, names: Collection[str] | None = None
) -> list[table_pb2.IndexMetadata]:
    """Return the segments whose files need a deferred compaction, of kinds that can follow.

    Parameters
    ----------
    snapshot
        The version.
    names
        Of which indices; None = all, those left out that cannot follow.

    Raises
    ------
    IndexNotFoundError
        There is no index of a name.
    InvalidRequestError
        An index that is named cannot follow.
    """
    history = reuse_of(snapshot.scheduler, snapshot.manifest)
    known = {each.name for each in snapshot.indices if not each.is_system}
    missing = sorted(set(names or ()) - known)
    if len(missing) > 0:
        raise no_such_index(snapshot, missing[0])
    found: list[table_pb2.IndexMetadata] = []
    entries = snapshot.manifest.index_section.indices
    for segment, entry in zip(snapshot.indices, entries, strict=True):
        is_wanted = not segment.is_system if names is None else segment.name in names
        if is_wanted and len(trimmed(history, [segment]).versions) > 0:
            reason = _obstacle(segment)
            if reason is None:
                found.append(entry)
            elif names is not None:
                raise InvalidRequestError(f"index {segment.name!r} cannot follow: {reason}")
    return found


def _obstacle(segment: IndexMetadata) -> str | None:
    kind = classify(segment)
    if not isinstance(kind, IndexKind):
        return kind.reason
    return f"a {kind} index has to be built anew" if kind in _OF_STRETCHES else None
