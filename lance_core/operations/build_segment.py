"""Building a segment of an index; nothing is committed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyroaring import BitMap

from lance_core.errors import InvalidRequestError
from lance_core.operations.indexed_column import indexed_rows
from lance_core.operations.new_index import recipe_of
from lance_core.operations.progress import no_progress
from lance_core.operations.write_segment import MEMORY_BYTES, write_segment

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lance_core.index.segment_files import IndexDetails, SegmentFiles
    from lance_core.operations.new_index import NewIndex
    from lance_core.operations.progress import Progress
    from lance_core.proto import table_pb2
    from lance_core.table.files import TableFiles
    from lance_core.table.snapshot import Snapshot


def build_segment(
    files: TableFiles,
    snapshot: Snapshot,
    index: NewIndex,
    fragment_ids: Iterable[int] | None = None,
    *,
    memory_bytes: int = MEMORY_BYTES,
    progress: Progress = no_progress,
) -> table_pb2.IndexMetadata:
    """Write the files of a segment over some fragments, for `commit_segments` to commit.

    Any number of segments may be built at the same time, on any machine that opens the version.

    Parameters
    ----------
    files
        Opened files.
    snapshot
        The version whose rows are read.
    index
        What to build.
    fragment_ids
        Fragments to cover; None = all.
    memory_bytes
        About how much memory sorting may take; what does not fit is put on disk meanwhile.
    progress
        Called with how many rows were read, and of how many.

    Returns
    -------
    table_pb2.IndexMetadata
        The segment as a manifest describes it; can be pickled. Its files are named by no version
        until it is committed.

    Raises
    ------
    InvalidRequestError
        The name is reserved, there is no such fragment, or the index does not take the column or
        a parameter.
    UnknownColumnError
        There is no such column.
    CorruptFileError, UnsupportedFeatureError
        Rows cannot be read. No file is left.
    """
    writer = recipe_of(snapshot, index)
    covered = _checked_fragments(snapshot, fragment_ids)
    rows = indexed_rows(files, snapshot, index.column, writer.names_rows_by, covered, progress)

    def write(out: SegmentFiles) -> IndexDetails:
        writer.write(rows, out, memory_bytes)
        return writer.details

    return write_segment(
        snapshot, index.name, snapshot.schema.field(index.column).id, covered, write
    )


def _checked_fragments(snapshot: Snapshot, fragment_ids: Iterable[int] | None) -> BitMap:
    present = BitMap(snapshot.fragments_by_id)
    if fragment_ids is None:
        return present
    wanted = set(fragment_ids)
    missing = sorted(wanted - set(present))
    if len(missing) > 0:
        raise InvalidRequestError(f"version {snapshot.version} has no fragments {missing}")
    return BitMap(wanted)
