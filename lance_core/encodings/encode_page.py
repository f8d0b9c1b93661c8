"""One leaf -> one page: which layout, its buffers and its message."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lance_core.encodings.choose import choose_values
from lance_core.encodings.constant_encode import encode_all_null, encode_one_value, has_no_value
from lance_core.encodings.full_zip_encode import encode_full_zip
from lance_core.encodings.hints import Hints
from lance_core.encodings.leaf_types import offset_bits
from lance_core.encodings.mini_block_encode import encode_mini_block

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lance_core.encodings.shred import Leaf
    from lance_core.encodings.version import FileVersion
    from lance_core.proto import encodings21_pb2 as pb
    from lance_core.schema.field import LanceField


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


def encode_page(leaf: Leaf, field: LanceField, version: FileVersion) -> EncodedPage:
    """Encode rows of one column as one page of a 2.1 or 2.2 file.

    Parameters
    ----------
    leaf
        At least one row.
    field
        The field that owns the column; its metadata may ask for encodings.
    version
        Of the file; decides which layouts and encodings may occur.

    Raises
    ------
    InvalidRequestError
        The field's metadata asks for something that does not exist; names key and column.
    UnsupportedFeatureError
        The values have no form in this version.
    """
    buffers, layout = _encode(leaf, field, version)
    return EncodedPage(buffers, layout, leaf.num_rows)


def _encode(
    leaf: Leaf, field: LanceField, version: FileVersion
) -> tuple[tuple[NDArray[np.uint8], ...], pb.PageLayout]:
    hints = Hints.of(field.metadata, field.name)
    if has_no_value(leaf):
        return encode_all_null(leaf, version)
    length_bits = offset_bits(field.logical_type)
    constant = encode_one_value(leaf, version, length_bits)
    if constant is not None:
        return constant
    choice = choose_values(leaf.values, field, hints, version)
    if not choice.zipped:
        page = encode_mini_block(leaf, choice, version)
        if page is not None:
            return page
        choice = choose_values(leaf.values, field, hints, version, zipped=True)
    return encode_full_zip(leaf, choice.values, choice.encoding, length_bits)
