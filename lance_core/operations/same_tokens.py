"""Segments of one inverted index make tokens in one way, or a search leaves rows out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.cache.byte_cache import ByteCache
from lance_core.errors import CorruptFileError, InvalidRequestError
from lance_core.index.registry import IndexKind, UnusableSegmentError, classify
from lance_core.index.text.segment import open_text_segment
from lance_core.operations.followed_segment import SEGMENT_CACHE_BYTES
from lance_core.query.text_segments import TextManner
from lance_core.table.index_metadata import index_from_proto

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance_core.proto import table_pb2
    from lance_core.table.snapshot import Snapshot


def check_same_tokens(snapshot: Snapshot, segments: Sequence[table_pb2.IndexMetadata]) -> None:
    """Check that segments which are going to be one index make the same tokens of the same texts.

    Opens those that are inverted; of one that cannot be opened nobody can tell. Segments of other
    kinds are not looked at, nor is one that is alone.

    Raises
    ------
    InvalidRequestError
        They do not: a search goes by the tokens of one of them.
    """
    first: TextManner | None = None
    for segment in segments if len(segments) > 1 else ():
        manner = _manner(snapshot, segment)
        first = manner if first is None else first
        if manner is not None and first is not None and not manner.agrees(first):
            raise InvalidRequestError(
                f"segments of index {segment.name!r} make tokens in other ways: that of fragments"
                f" {sorted(index_from_proto(segment, '').fragment_bitmap or ())} differs from"
                " another one; build all with the same parameters, or take another name"
            )


def _manner(snapshot: Snapshot, segment: table_pb2.IndexMetadata) -> TextManner | None:
    metadata = index_from_proto(segment, snapshot.manifest.path)
    if classify(metadata) is not IndexKind.INVERTED:
        return None
    try:
        place = snapshot.index_place(metadata)
        return TextManner.of(open_text_segment(place, metadata, ByteCache(SEGMENT_CACHE_BYTES)))
    except (UnusableSegmentError, CorruptFileError):
        return None
