"""Making one segment of several of an index, without reading the column again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyroaring import BitMap

from lance_core.errors import InvalidRequestError
from lance_core.index.registry import UnusableSegmentError
from lance_core.operations.index_arguments import checked_memory, checked_segments
from lance_core.operations.rewrite_segments import rewrite_segments
from lance_core.operations.row_moves import RowMoves
from lance_core.operations.segments_there import check_there
from lance_core.operations.write_segment import MEMORY_BYTES
from lance_core.table.index_metadata import index_from_proto

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance_core.proto import table_pb2
    from lance_core.table.files import TableFiles
    from lance_core.table.snapshot import Snapshot


def merge_segments(
    files: TableFiles,
    snapshot: Snapshot,
    segments: Sequence[table_pb2.IndexMetadata],
    *,
    memory_bytes: int = MEMORY_BYTES,
) -> table_pb2.IndexMetadata:
    """Write a segment that has the rows of others, for `commit_segments` to commit.

    Rows are merged as files hold them, in memory that does not grow with their number; vectors keep
    their codes, and get new graphs. Rows that were deleted since are left out, and those that
    deferred compactions moved are named by their new places.

    Parameters
    ----------
    files
        Opened files.
    snapshot
        A version that has the rows.
    segments
        One or more of one index, which cover different fragments: committed ones, or such as
        `build_segment` returned. The last one tells what was left open when they were built.
        Those of vectors share a model.
    memory_bytes
        About how much memory may be taken; what does not fit is put on disk meanwhile. Inverted
        segments take more: 286 MB beyond a budget of 256 MiB for a million documents, and budgets
        as small as 64 MB are not kept.

    Returns
    -------
    table_pb2.IndexMetadata
        The segment as a manifest describes it; the others stay as they are.

    Raises
    ------
    InvalidRequestError
        The segments do not fit together, are not in the dataset, cover no fragment of the version,
        or have to be built anew: zones that differ in size or whose rows a deferred compaction
        moved, codes that this release does not write.
    CorruptFileError
        What is read contradicts the format. No file is left.
    """
    segments, memory_bytes = checked_segments(segments), checked_memory(memory_bytes)
    _check(snapshot, segments)
    check_there(snapshot, segments)
    moves = RowMoves.of(files, snapshot)
    _check_coverage(moves, segments)
    try:
        merged = rewrite_segments(moves, segments, memory_bytes)
    except UnusableSegmentError as error:
        raise InvalidRequestError(
            f"segments of index {segments[-1].name!r} cannot be merged: {error}"
        ) from error
    committed = {each.uuid.uuid for each in snapshot.manifest.index_section.indices}
    merged.dataset_version = min(  # what the version has is as of the version
        snapshot.version if each.uuid.uuid in committed else each.dataset_version
        for each in segments
    )
    return merged


def _check(snapshot: Snapshot, segments: Sequence[table_pb2.IndexMetadata]) -> None:
    told = {
        (each.name, tuple(each.fields), each.index_details.type_url.rpartition(".")[2])
        for each in segments
    }
    if len(told) > 1:
        raise InvalidRequestError("segments become one that are of one index, kind and column")
    if max(each.dataset_version for each in segments) > snapshot.version:
        raise InvalidRequestError(
            f"a segment was built from a version after {snapshot.version}; open a newer one"
        )


def _check_coverage(moves: RowMoves, segments: Sequence[table_pb2.IndexMetadata]) -> None:
    covered = BitMap()
    for each in segments:
        stored = index_from_proto(each, moves.snapshot.manifest.path).fragment_bitmap
        if stored is None:
            raise InvalidRequestError("which fragments a segment covers is not recorded")
        own = moves.coverage(stored)
        if own.intersect(covered):
            raise InvalidRequestError(f"several segments cover fragments {sorted(own & covered)}")
        covered |= own
    if len(covered) == 0 and len(moves.num_rows) > 0:
        raise InvalidRequestError(
            f"no segment covers a fragment of version {moves.snapshot.version}; build one anew"
        )
