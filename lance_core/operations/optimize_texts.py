"""Bringing an inverted index up to date: documents are taken over, new rows made tokens of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lance_core.cache.byte_cache import ByteCache
from lance_core.errors import CorruptFileError, InvalidRequestError
from lance_core.index.registry import IndexKind, UnusableSegmentError, classify
from lance_core.index.text.segment import open_text_segment
from lance_core.index.text.writers.recipe import fitting_version, told_parameters
from lance_core.index.text.writers.stored_texts import recipe_of_segments
from lance_core.operations.followed_segment import SEGMENT_CACHE_BYTES
from lance_core.operations.index_state import union
from lance_core.operations.indexed_column import indexed_rows
from lance_core.operations.new_index import NewIndex
from lance_core.operations.row_moves import RowMoves
from lance_core.operations.segment_anew import SegmentAnew
from lance_core.operations.write_text_segment import stored_texts, write_text_segment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyroaring import BitMap

    from lance_core.index.text.writers.stored_texts import StoredTexts
    from lance_core.operations.index_state import IndexState, SegmentState
    from lance_core.operations.progress import Progress
    from lance_core.proto import table_pb2
    from lance_core.table.files import TableFiles
    from lance_core.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True, eq=False)
class _Extension:
    """A segment of documents that others have, and of rows that none has."""

    name: str
    column: str
    stored: Sequence[StoredTexts]
    covered: BitMap
    fresh: BitMap
    replaced: tuple[table_pb2.IndexMetadata, ...]

    def build(
        self, files: TableFiles, snapshot: Snapshot, memory_bytes: int, progress: Progress
    ) -> table_pb2.IndexMetadata:
        """Write the segment."""
        return write_text_segment(
            snapshot,
            self.name,
            snapshot.schema.field(self.column).id,
            self.covered | self.fresh,
            self.stored,
            indexed_rows(files, snapshot, self.column, "row_id", self.fresh, progress),
            memory_bytes=memory_bytes,
        )


def text_work(
    files: TableFiles,
    snapshot: Snapshot,
    state: IndexState,
    merged: Sequence[SegmentState],
    *,
    retrain: bool,
) -> _Extension | SegmentAnew:
    """Tell what to build so that some segments become one with the fragments that none covers.

    Documents of segments are taken over where these make tokens in the same way; else, and where
    all is wanted anew, the rows are read.

    Parameters
    ----------
    files
        Opened files.
    snapshot
        The version.
    state
        The index.
    merged
        Segments that become one with the fragments that none covers.
    retrain
        Whether all is made anew.

    Raises
    ------
    InvalidRequestError
        Files do not tell how tokens were made.
    """
    column = snapshot.schema.path_of(state.field(snapshot).id)
    covered, replaced = union(each.covered for each in merged), state.replaced(merged)
    stored = None if retrain else _stored(files, snapshot, merged)
    if stored is not None:
        return _Extension(state.name, column, stored, covered, state.uncovered, replaced)
    index = NewIndex(state.name, column, str(IndexKind.INVERTED), _parameters(snapshot, state))
    return SegmentAnew(index, covered | state.uncovered, replaced)


def is_of_texts(state: IndexState) -> bool:
    """Tell whether all segments of an index are inverted."""
    return all(classify(each.metadata) is IndexKind.INVERTED for each in state.segments)


def _stored(
    files: TableFiles, snapshot: Snapshot, merged: Sequence[SegmentState]
) -> list[StoredTexts] | None:
    """Open segments; None if there are none, or their rows have to be read."""
    if len(merged) == 0:
        return None
    moves = RowMoves.of(files, snapshot)
    try:
        stored = [stored_texts(moves, each.entry) for each in merged]
        recipe_of_segments([each.segment for each in stored])
    except (UnusableSegmentError, CorruptFileError, InvalidRequestError):
        return None
    return stored


def _parameters(snapshot: Snapshot, state: IndexState) -> dict[str, object]:
    """Return with which parameters an index was built, as the newest files tell that can be read.

    Raises ``InvalidRequestError`` if none can.
    """
    newest = state.segments[-1].metadata
    place = snapshot.index_place(newest)
    try:
        segment = open_text_segment(place, newest, ByteCache(SEGMENT_CACHE_BYTES))
    except (UnusableSegmentError, CorruptFileError) as error:
        raise InvalidRequestError(
            f"index {state.name!r} has to be built anew, but {error}; create it again"
        ) from error
    if any(each.documents.has_elements for each in segment.partitions):
        raise InvalidRequestError(
            f"index {state.name!r} has a document for each element of a list, which is not built"
            " here; create it again to have one for each row"
        )
    parameters = segment.parameters
    version = fitting_version(parameters, newest.index_version)
    return {**told_parameters(parameters), "format_version": version}
