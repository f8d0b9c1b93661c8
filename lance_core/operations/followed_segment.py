"""Segments whose rows can be followed to where they are now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyroaring import BitMap

from lance_core.index.coverage import doubtful_coverage
from lance_core.index.registry import UnusableSegmentError
from lance_core.table.index_metadata import index_from_proto
from lance_core.table.index_upkeep import is_system
from lance_core.table.reuse_of_version import reuse_of

if TYPE_CHECKING:
    from lance_core.operations.row_moves import RowMoves
    from lance_core.proto import table_pb2
    from lance_core.table.index_metadata import IndexMetadata

SEGMENT_CACHE_BYTES = 32 << 20
"""Of segments that are read once, from front to back."""


def followed_segment(
    moves: RowMoves, entry: table_pb2.IndexMetadata
) -> tuple[IndexMetadata, BitMap]:
    """Return a segment of a manifest as a value, and the fragments that it was built from.

    Raises
    ------
    UnusableSegmentError
        It cannot be followed: build it anew.
    """
    snapshot = moves.snapshot
    metadata = index_from_proto(entry, snapshot.manifest.path)
    stored = metadata.fragment_bitmap
    if is_system(entry) or stored is None or len(metadata.field_ids) != 1:
        raise UnusableSegmentError("it is none of an index of one column with known coverage")
    live = BitMap(snapshot.fragments_by_id)
    history = reuse_of(snapshot.scheduler, snapshot.manifest)
    if len(doubtful_coverage(metadata, live, history)) > 0:
        raise UnusableSegmentError("pylance may have lost rows of it: build it anew")
    return metadata, stored
