"""One leaf -> its pages: which layout, buffers and message each has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lance_core.encodings.choose import choose_values, holds_bits
from lance_core.encodings.constant_encode import (
    encode_all_null,
    encode_one_value,
    has_no_bytes,
    has_no_value,
)
from lance_core.encodings.full_zip_encode import encode_full_zip
from lance_core.encodings.hints import Hints
from lance_core.encodings.leaf_types import offset_bits
from lance_core.encodings.mini_block_encode import MAX_CHUNK_LEVELS, encode_mini_block
from lance_core.encodings.split_rows import split_rows
from lance_core.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from lance_core.encodings.shred import Leaf
    from lance_core.encodings.version import FileVersion
    from lance_core.proto import encodings21_pb2 as pb
    from lance_core.schema.field import LanceField


_MANY_LEVELS = 4096
"""So many null and empty lists may be why a page does not fit into chunks; fewer are not."""


@dataclass(frozen=True, slots=True, eq=False)
class EncodedPage:
    """A page ready to be written.

    Attributes
    ----------
    buffers
        Bytes in the order of the format, each contiguous; the writer aligns them to 64 bytes. They
        may share memory with the array that was encoded.
    layout
        The layout message, to be wrapped for the page's metadata.
    num_rows
        Rows of the table that the page holds.
    """

    buffers: tuple[NDArray[np.uint8], ...]
    layout: pb.PageLayout
    num_rows: int

    @property
    def num_bytes(self) -> int:
        """Bytes of all buffers, without alignment."""
        return sum(buffer.nbytes for buffer in self.buffers)


def encode_pages(leaf: Leaf, field: LanceField, version: FileVersion) -> list[EncodedPage]:
    """Encode rows of one column for a 2.1 or 2.2 file.

    Parameters
    ----------
    leaf
        At least one row.
    field
        The field that owns the column; its metadata may ask for encodings.
    version
        Of the file; decides which layouts and encodings may occur.

    Returns
    -------
    list[EncodedPage]
        One page; several, in the order of the rows, where so many lists are null or empty that
        no chunk could hold their levels.

    Raises
    ------
    InvalidRequestError
        The field's metadata asks for something that does not exist; names key and column.
    UnsupportedFeatureError
        The values have no form in this version.
    """
    hints = Hints.of(field.metadata, field.name)
    return list(_pages(leaf, field, hints, version))


def _pages(
    leaf: Leaf, field: LanceField, hints: Hints, version: FileVersion
) -> Iterator[EncodedPage]:
    encoded = _encode(leaf, field, hints, version)
    if encoded is not None:
        yield EncodedPage(*encoded, leaf.num_rows)
        return
    for piece in split_rows(leaf, min(MAX_CHUNK_LEVELS, leaf.num_levels // 2)):
        yield from _pages(piece, field, hints, version)


def _encode(
    leaf: Leaf, field: LanceField, hints: Hints, version: FileVersion
) -> tuple[tuple[NDArray[np.uint8], ...], pb.PageLayout] | None:
    """Return buffers and message of one page, or None if the rows have to be split first."""
    if has_no_value(leaf):
        return encode_all_null(leaf, version)
    length_bits = offset_bits(field.logical_type)
    constant = encode_one_value(leaf, version, length_bits)
    if constant is not None:
        return constant
    if has_no_bytes(leaf.values):
        raise UnsupportedFeatureError(
            f"column {field.name!r}: {version.value} files hold no values of no bytes but nulls;"
            " write version 2.2"
        )
    choice = choose_values(leaf.values, field, hints, version)
    if not choice.zipped:
        page = encode_mini_block(leaf, choice, version)
        if page is not None:
            return page
        if leaf.num_rows > 1 and leaf.num_levels - leaf.values.num_values > _MANY_LEVELS:
            return None
        choice = choose_values(leaf.values, field, hints, version, zipped=True)
        if not choice.zipped or holds_bits(choice.values):
            raise UnsupportedFeatureError(
                f"column {field.name!r}: a row holds more null or empty lists than a page of "
                f"{field.logical_type} can; decode dictionaries, widen vectors of booleans"
            )
    return encode_full_zip(leaf, choice.values, choice.encoding, length_bits)
