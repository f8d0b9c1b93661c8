"""Bringing scalar indices up to date: fragments that no segment covers, and too many segments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyroaring import BitMap

from lance_core.errors import IndexNotFoundError, InvalidRequestError, LanceError
from lance_core.file.arguments import checked_number
from lance_core.file.reader import LanceFileReader
from lance_core.index.coverage import effective_coverage
from lance_core.index.registry import IndexKind, classify
from lance_core.index.scalar.writers.stored_parameters import file_of_parameters, parameters_in
from lance_core.operations.build_segment import build_segment
from lance_core.operations.commit_planned import commit_planned
from lance_core.operations.create_index import NewSegments
from lance_core.operations.new_index import NewIndex
from lance_core.operations.progress import no_progress
from lance_core.operations.write_segment import MEMORY_BYTES
from lance_core.table.reuse_of_version import reuse_of
from lance_core.table.transaction import CreateIndex

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance_core.operations.progress import Progress
    from lance_core.proto import table_pb2
    from lance_core.table.files import TableFiles
    from lance_core.table.index_metadata import IndexMetadata
    from lance_core.table.snapshot import Snapshot

_MOST_SEGMENTS = 1 << 31


@dataclass(frozen=True, slots=True)
class OptimizeOptions:
    """How indices are brought up to date.

    Parameters
    ----------
    names
        Which indices; None = all scalar ones.
    num_segments_to_merge
        So many of the newest segments of an index become one with the fragments that none covers;
        0 gives these a segment of their own.
    """

    names: Sequence[str] | None = None
    num_segments_to_merge: int = 1

    def __post_init__(self) -> None:
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
    """Let scalar indices cover all fragments, in one commit.

    Segments that become one are built anew from the rows of their fragments: what was deleted since
    is no longer in them, and deferred compactions need not be kept for them.

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
        Called with how many indices are done, and of how many.

    Returns
    -------
    Snapshot
        The version committed, or the one given where nothing has to be done.

    Raises
    ------
    IndexNotFoundError
        There is no index of a name.
    InvalidRequestError
        An index that is named is none that answers conditions, or has a type that is not known.
    CommitConflictError
        Others moved rows, or changed the indices, again and again. No file is left.
    """
    if len(_works(snapshot, options)) == 0:
        return snapshot
    with NewSegments(snapshot) as new:

        def plan(newest: Snapshot) -> CreateIndex:
            new.discard()
            works = _works(newest, options)
            progress(0, len(works))
            for done, work in enumerate(works, 1):
                new.keep(
                    build_segment(
                        files, newest, work.index, work.fragments, memory_bytes=memory_bytes
                    )
                )
                progress(done, len(works))
            return CreateIndex(new.segments, tuple(old for work in works for old in work.replaced))

        return commit_planned(snapshot, plan)


@dataclass(frozen=True, slots=True, eq=False)
class _Work:
    """A segment that is to be built, and those in whose place it comes."""

    index: NewIndex
    fragments: BitMap
    replaced: tuple[table_pb2.IndexMetadata, ...]


def _works(snapshot: Snapshot, options: OptimizeOptions) -> list[_Work]:
    by_name = _segments_by_name(snapshot)
    names = options.names
    if names is None:
        names = [name for name, segments in by_name.items() if _is_scalar(segments)]
    for name in names:
        if name not in by_name:
            raise IndexNotFoundError(f"there is no index {name!r}; there are: {sorted(by_name)}")
        if not _is_scalar(by_name[name]):
            raise InvalidRequestError(f"index {name!r} is none of the kinds that are built here")
    found = (_work(snapshot, by_name[name], options.num_segments_to_merge) for name in names)
    return [work for work in found if work is not None]


def _work(
    snapshot: Snapshot,
    segments: Sequence[tuple[IndexMetadata, table_pb2.IndexMetadata]],
    num_merged: int,
) -> _Work | None:
    """Tell what to build for an index, None if it is as it should be."""
    live = BitMap(snapshot.fragments_by_id)
    history = reuse_of(snapshot.scheduler, snapshot.manifest)
    covered = [effective_coverage(segment, live, history) for segment, _ in segments]
    useful = [place for place, each in enumerate(covered) if len(each) > 0]
    merged = useful[-num_merged:] if num_merged > 0 else []
    fragments = live - BitMap.union(BitMap(), *covered)
    if len(fragments) == 0 and len(merged) <= 1:
        return None
    fragments |= BitMap.union(BitMap(), *(covered[place] for place in merged))
    replaced = [place for place in range(len(segments)) if place not in useful or place in merged]
    newest, _ = segments[-1]
    return _Work(
        NewIndex(
            newest.name,
            snapshot.schema.path_of(newest.field_ids[0]),
            str(classify(newest)),
            _parameters(snapshot, newest),
        ),
        fragments,
        tuple(segments[place][1] for place in replaced),
    )


def _segments_by_name(
    snapshot: Snapshot,
) -> dict[str, list[tuple[IndexMetadata, table_pb2.IndexMetadata]]]:
    by_name: dict[str, list[tuple[IndexMetadata, table_pb2.IndexMetadata]]] = {}
    entries = snapshot.manifest.index_section.indices
    for segment, entry in zip(snapshot.indices, entries, strict=True):
        if not segment.is_system:
            by_name.setdefault(segment.name, []).append((segment, entry))
    return by_name


def _is_scalar(segments: Sequence[tuple[IndexMetadata, table_pb2.IndexMetadata]]) -> bool:
    """Tell whether all segments of an index are of one kind that is built here."""
    kinds = {classify(segment) for segment, _ in segments}
    known = {kind for kind in kinds if isinstance(kind, IndexKind)}
    builds = known - {IndexKind.VECTOR, IndexKind.UNTOLD}
    return len(kinds) == 1 and len(builds) == 1


def _parameters(snapshot: Snapshot, segment: IndexMetadata) -> dict[str, object]:
    """Return the parameters of a segment; of one that cannot be read none, so the usual ones."""
    kind = classify(segment)
    file_name = file_of_parameters(kind) if isinstance(kind, IndexKind) else None
    if file_name is None or not isinstance(kind, IndexKind):
        return {}
    place = snapshot.index_place(segment).below(file_name)
    try:
        reader = LanceFileReader.open(place.scheduler, place.path)
    except LanceError:
        return {}
    return parameters_in(kind, reader.schema.metadata)
