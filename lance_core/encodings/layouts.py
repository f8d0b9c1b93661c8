"""Page layout messages of 2.1 and 2.2 files -> layouts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.encodings.blob_page import BlobPage
from lance_core.encodings.constant_page import ConstantPage
from lance_core.encodings.describe import describe
from lance_core.encodings.full_zip import FullZip
from lance_core.encodings.levels import Layers
from lance_core.encodings.mini_block import MiniBlock

if TYPE_CHECKING:
    from lance_core.encodings.compression import Compression
    from lance_core.encodings.page import PageLayout
    from lance_core.encodings.place import Place
    from lance_core.proto import encodings21_pb2 as pb

_INNER = {"mini_block_layout", "full_zip_layout", "constant_layout"}
_LENGTH_BITS = {32, 64}
_MAX_CONTROL_BITS = 32


def describe_layout(message: pb.PageLayout, place: Place, *, is_bool: bool) -> PageLayout:
    """Return the layout that a message describes.

    Parameters
    ----------
    message
        From the page's metadata.
    place
        The column, for errors.
    is_bool
        Whether the column's type is boolean.

    Raises
    ------
    UnsupportedFeatureError
        The layout or an encoding in it cannot be read.
    CorruptFileError
        The message contradicts itself.
    """
    kind = message.WhichOneof("layout")
    if kind == "mini_block_layout":
        return describe_mini_block(message.mini_block_layout, place)
    if kind == "full_zip_layout":
        return _full_zip(message.full_zip_layout, place)
    if kind == "blob_layout" and message.blob_layout.inner_layout.WhichOneof("layout") in _INNER:
        inner = describe_layout(message.blob_layout.inner_layout, place, is_bool=False)
        return BlobPage(inner, Layers.of(message.blob_layout.layers, place))
    if kind == "constant_layout":
        return _constant(message.constant_layout, place, is_bool=is_bool)
    raise place.unsupported("an unknown page layout" if kind is None else kind)


def _optional(
    message: pb.CompressiveEncoding, place: Place, *, present: bool
) -> Compression | None:
    return describe(message, place) if present else None


def describe_mini_block(message: pb.MiniBlockLayout, place: Place) -> MiniBlock:
    """Return the mini-block layout that a message describes; errors as `describe_layout`."""
    values = describe(message.value_compression, place)
    if message.num_buffers != values.num_buffers:
        raise place.corrupt(f"{message.num_buffers} buffers of values encoded as {values.name}")
    if message.repetition_index_depth > 1:
        raise place.unsupported(f"a repetition index of depth {message.repetition_index_depth}")
    return MiniBlock(
        _optional(message.rep_compression, place, present=message.HasField("rep_compression")),
        _optional(message.def_compression, place, present=message.HasField("def_compression")),
        values,
        _optional(message.dictionary, place, present=message.HasField("dictionary")),
        message.num_dictionary_items,
        Layers.of(message.layers, place),
        message.num_items,
        message.has_large_chunk,
        message.repetition_index_depth > 0,
    )


def _full_zip(message: pb.FullZipLayout, place: Place) -> FullZip:
    value_bits = message.bits_per_value
    length_bits = message.bits_per_offset
    details = message.WhichOneof("details")
    if details is None or value_bits % 8 != 0:
        raise place.unsupported(f"full-zip values of {value_bits} bits")
    if details == "bits_per_offset" and length_bits not in _LENGTH_BITS:
        raise place.corrupt(f"full-zip lengths of {length_bits} bits")
    if message.bits_rep + message.bits_def > _MAX_CONTROL_BITS:
        raise place.corrupt("full-zip control words wider than 32 bits")
    return FullZip(
        message.bits_rep,
        message.bits_def,
        value_bits // 8,
        length_bits // 8,
        describe(message.value_compression, place),
        Layers.of(message.layers, place),
    )


def _constant(message: pb.ConstantLayout, place: Place, *, is_bool: bool) -> ConstantPage:
    return ConstantPage(
        Layers.of(message.layers, place),
        message.inline_value if message.HasField("inline_value") else None,
        _optional(message.rep_compression, place, present=message.HasField("rep_compression")),
        _optional(message.def_compression, place, present=message.HasField("def_compression")),
        message.num_rep_values,
        message.num_def_values,
        is_bool,
    )
