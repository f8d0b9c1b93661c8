"""How the posting lists of a partition are stored, told by the columns and keys that are there."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_core.index.registry import UnusableSegmentError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lance_core.file.reader import LanceFileReader

LISTS_OF_BYTES = tuple(
    make(kind) for make in (pa.list_, pa.large_list) for kind in (pa.large_binary(), pa.binary())
)
"""Types of columns that have blocks."""

_FORMATS = ("1", "2", "3")
_BLOCK_SIZES = ("128", "256")
_TAILS = {"fixed32_v1": False, "varint_delta_v1": True}


class PositionCodec(StrEnum):
    """How positions are stored."""

    LISTS = "lists"
    """Parts of their own for each document."""

    PACKED = "packed_delta_v1"
    """One stream for each token, of packed differences."""

    VARINTS = "varint_doc_delta_v2"
    """One stream for each token, of differences as varints."""


@dataclass(frozen=True, slots=True)
class PostingLayout:
    """How posting lists are stored.

    Parameters
    ----------
    block_size
        Postings of a block.
    is_varint
        Whether the last block, where it is not full, has varints.
    positions
        How positions are stored, None where there are none.
    """

    block_size: int
    is_varint: bool
    positions: PositionCodec | None

    @classmethod
    def of(cls, reader: LanceFileReader, of_segment: Mapping[str, str]) -> PostingLayout:
        """Tell the layout of a file of postings.

        Parameters
        ----------
        reader
            The file.
        of_segment
            Keys of the segment's metadata; those of the file go before them.

        Raises
        ------
        UnusableSegmentError
            A value is none that this release knows.
        """
        told = {**of_segment, **reader.schema.metadata}
        version = told.get("format_version", "1")
        if version not in _FORMATS:
            raise UnusableSegmentError(
                f"unsupported FTS format version {version}, expected 1, 2, or 3"
            )
        size = told.get("posting_block_size", _BLOCK_SIZES[0])
        tail = told.get("posting_tail_codec", "fixed32_v1")
        if size not in _BLOCK_SIZES or tail not in _TAILS:
            raise UnusableSegmentError(f"blocks of {size} postings with {tail} are not supported")
        names = reader.schema.names
        return cls(int(size), _TAILS[tail], _position_codec(names, told))


def _position_codec(names: tuple[str, ...], told: Mapping[str, str]) -> PositionCodec | None:
    if "_compressed_position" not in names:
        return PositionCodec.LISTS if "_position" in names else None
    codec = told.get("positions_codec", PositionCodec.VARINTS)
    if codec not in (PositionCodec.PACKED, PositionCodec.VARINTS):
        raise UnusableSegmentError(f"positions stored as {codec} are not supported")
    return PositionCodec(codec)
