"""Writing a segment of an inverted index: rows of a column, and documents of other segments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.cache.byte_cache import ByteCache
from lance_core.index.text.segment import open_text_segment
from lance_core.index.text.writers.segment import write_texts
from lance_core.index.text.writers.stored_texts import StoredTexts, recipe_of_segments
from lance_core.operations.followed_segment import SEGMENT_CACHE_BYTES, followed_segment
from lance_core.operations.write_segment import write_segment

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyroaring import BitMap

    from lance_core.index.scalar.writers.indexed_rows import IndexedRows
    from lance_core.index.segment_files import IndexDetails, SegmentFiles
    from lance_core.operations.row_moves import RowMoves
    from lance_core.proto import table_pb2
    from lance_core.table.snapshot import Snapshot


def stored_texts(moves: RowMoves, entry: table_pb2.IndexMetadata) -> StoredTexts:
    """Open a segment whose documents are to go where their rows are now.

    Raises
    ------
    UnusableSegmentError
        It cannot be followed: build it anew.
    CorruptFileError
        Its files contradict the format.
    """
    metadata, stored = followed_segment(moves, entry)
    place = moves.snapshot.index_place(metadata)
    segment = open_text_segment(place, metadata, ByteCache(SEGMENT_CACHE_BYTES))
    return StoredTexts(segment, moves.route(stored, "row_id").follow)


def write_text_segment(
    snapshot: Snapshot,
    name: str,
    field_id: int,
    covered: BitMap,
    stored: Sequence[StoredTexts],
    rows: Iterable[IndexedRows] = (),
    *,
    memory_bytes: int,
) -> table_pb2.IndexMetadata:
    """Write a segment; what does not fit into memory is put on disk meanwhile.

    Parameters
    ----------
    snapshot, name, field_id, covered
        As `write_segment` takes them.
    stored
        At least one segment; the last one tells what they all have in common, and which version of
        the format is written.
    rows
        Rows of the column, named by their ids.
    memory_bytes
        About how much memory may be taken.

    Raises
    ------
    UnusableSegmentError
        The documents of a segment cannot be taken over: build the segment anew.
    InvalidRequestError
        The segments make tokens in different ways.
    LanceError
        What reading rows and files raises. No file is left.
    """
    recipe = recipe_of_segments([each.segment for each in stored])

    def write(out: SegmentFiles) -> IndexDetails:
        write_texts(recipe, stored, rows, out, memory_bytes)
        return recipe.details

    return write_segment(snapshot, name, field_id, covered, write)
