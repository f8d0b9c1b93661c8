"""Compressive encoding messages -> decoders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.encodings.bitpacking import InlineBitpacking, OutOfLineBitpacking
from lance_core.encodings.byte_stream_split import ByteStreamSplit
from lance_core.encodings.constant import AllNullElements, RepeatedValue
from lance_core.encodings.fixed_size_list import FixedSizeList
from lance_core.encodings.flat import Flat
from lance_core.encodings.fsst import Fsst, SymbolTable
from lance_core.encodings.general import Codec, General
from lance_core.encodings.packed_struct import PackedStruct
from lance_core.encodings.rle import Rle
from lance_core.encodings.values import BOOL_BITS
from lance_core.encodings.variable import NARROW_BITS, WIDE_BITS, VariableWidth
from lance_core.encodings.variable_packed_struct import PackedField, VariablePackedStruct
from lance_core.proto import encodings21_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Callable

    from lance_core.encodings.compression import Compression
    from lance_core.encodings.place import Place

_CODECS = {pb.COMPRESSION_LZ4: "lz4_raw", pb.COMPRESSION_ZSTD: "zstd"}
_RUN_LENGTH_BITS = 8


def describe(message: pb.CompressiveEncoding, place: Place) -> Compression:
    """Return the decoder that a message describes.

    Raises
    ------
    UnsupportedFeatureError
        The encoding, or a part of it, is not known; names the column and the encoding.
    CorruptFileError
        The message contradicts itself.
    """
    kind = message.WhichOneof("compression")
    if kind is None or kind not in _DESCRIBE:
        raise place.unsupported("an encoding newer than 2.2" if kind is None else kind)
    return _DESCRIBE[kind](message, place)


def _flat(message: pb.CompressiveEncoding, place: Place) -> Compression:
    flat = Flat.of_width(message.flat.bits_per_value, place)
    if message.flat.HasField("data"):
        return General(_codec(message.flat.data, place), flat)
    return flat


def flat_bits(message: pb.CompressiveEncoding, place: Place, within: str) -> int:
    """Return the width of a message that must be flat."""
    if message.WhichOneof("compression") != "flat" or message.flat.HasField("data"):
        raise place.unsupported(f"{within} of {message.WhichOneof('compression')}")
    return message.flat.bits_per_value


def _variable(message: pb.CompressiveEncoding, place: Place) -> Compression:
    if message.variable.HasField("values"):
        raise place.unsupported("strings with compressed bytes")
    bits = flat_bits(message.variable.offsets, place, "strings with offsets")
    if bits not in {NARROW_BITS, WIDE_BITS}:
        raise place.corrupt(f"strings with offsets of {bits} bits")
    return VariableWidth(bits)


def _constant(message: pb.CompressiveEncoding, place: Place) -> Compression:
    if message.constant.HasField("value"):
        return RepeatedValue.of(message.constant.value, place)
    return AllNullElements()


def _inline(message: pb.CompressiveEncoding, place: Place) -> Compression:
    if message.inline_bitpacking.HasField("values"):
        raise place.unsupported("bit packing with compressed buffers")
    return InlineBitpacking.of_width(message.inline_bitpacking.uncompressed_bits_per_value, place)


def _out_of_line(message: pb.CompressiveEncoding, place: Place) -> Compression:
    packed = message.out_of_line_bitpacking
    width = flat_bits(packed.values, place, "bit packing")
    return OutOfLineBitpacking.of_widths(packed.uncompressed_bits_per_value, width, place)


def _fsst(message: pb.CompressiveEncoding, place: Place) -> Compression:
    table = SymbolTable.parse(message.fsst.symbol_table, place)
    return Fsst(table, describe(message.fsst.values, place))


def _rle(message: pb.CompressiveEncoding, place: Place) -> Compression:
    if flat_bits(message.rle.run_lengths, place, "run lengths") != _RUN_LENGTH_BITS:
        raise place.unsupported("run lengths of other than 8 bits")
    return Rle.of_width(flat_bits(message.rle.values, place, "run-length coding"), place)


def _split(message: pb.CompressiveEncoding, place: Place) -> Compression:
    bits = flat_bits(message.byte_stream_split.values, place, "byte stream split")
    Flat.of_width(bits, place)
    if bits in {0, BOOL_BITS}:
        raise place.corrupt(f"values of {bits} bits have no bytes that were split")
    return ByteStreamSplit(bits)


def _general(message: pb.CompressiveEncoding, place: Place) -> Compression:
    codec = _codec(message.general.compression, place)
    return General(codec, describe(message.general.values, place))


def _codec(message: pb.BufferCompression, place: Place) -> Codec:
    if message.scheme not in _CODECS:
        raise place.unsupported(f"compression scheme {message.scheme}")
    level = message.level if message.HasField("level") else None
    return Codec(_CODECS[message.scheme], level)


def _fixed_size_list(message: pb.CompressiveEncoding, place: Place) -> Compression:
    lists = message.fixed_size_list
    inner = describe(lists.values, place)
    return FixedSizeList.of(lists.items_per_value, inner, lists.has_validity, place)


def _packed_struct(message: pb.CompressiveEncoding, place: Place) -> Compression:
    packed = message.packed_struct
    return PackedStruct.of(tuple(packed.bits_per_value), describe(packed.values, place), place)


def _variable_packed_struct(message: pb.CompressiveEncoding, place: Place) -> Compression:
    fields = [
        PackedField.of(
            describe(field.value, place), field.bits_per_value, field.bits_per_length, place
        )
        for field in message.variable_packed_struct.fields
    ]
    return VariablePackedStruct(tuple(fields))


_DESCRIBE: dict[str, Callable[[pb.CompressiveEncoding, Place], Compression]] = {
    "flat": _flat,
    "variable": _variable,
    "constant": _constant,
    "inline_bitpacking": _inline,
    "out_of_line_bitpacking": _out_of_line,
    "fsst": _fsst,
    "rle": _rle,
    "byte_stream_split": _split,
    "general": _general,
    "fixed_size_list": _fixed_size_list,
    "packed_struct": _packed_struct,
    "variable_packed_struct": _variable_packed_struct,
}
