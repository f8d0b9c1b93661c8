"""Array encoding messages -> decoders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lance_core.encodings.flat import Flat
from lance_core.encodings.fsst import SymbolTable
from lance_core.encodings.general import Codec
from lance_core.encodings.packed_struct import PackedStruct
from lance_core.encodings.v2_0.binary import BinaryArray, FsstArray
from lance_core.encodings.v2_0.bitpacked import BitpackedArray, BlockPackedArray
from lance_core.encodings.v2_0.constant import ConstantArray
from lance_core.encodings.v2_0.dictionary import DictionaryArray
from lance_core.encodings.v2_0.fixed_size_binary import FixedSizeBinaryArray
from lance_core.encodings.v2_0.fixed_size_list import FixedSizeListArray
from lance_core.encodings.v2_0.flat import FlatArray
from lance_core.encodings.v2_0.lists import ListArray
from lance_core.encodings.v2_0.nullable import NullableArray, NullArray
from lance_core.encodings.v2_0.packed_struct import PackedStructArray
from lance_core.proto import encodings20_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Callable

    from lance_core.encodings.place import Place
    from lance_core.encodings.v2_0.node import ArrayNode

_CODECS = {"lz4": "lz4_raw", "zstd": "zstd"}
_BYTE = 8


@dataclass(frozen=True, slots=True)
class ArrayDescriber:
    """Describes the pages of one column; ``is_dictionary`` says what the field's type is."""

    place: Place
    is_dictionary: bool

    def describe(self, message: pb.ArrayEncoding) -> ArrayNode:
        """Return the decoder that a message describes.

        Raises
        ------
        UnsupportedFeatureError
            The encoding is not known; names the column and the encoding.
        CorruptFileError
            The message contradicts itself.
        """
        kind = message.WhichOneof("array_encoding")
        if kind is None or kind not in _DESCRIBE:
            raise self.place.unsupported(f"2.0 {'without encoding' if kind is None else kind}")
        return _DESCRIBE[kind](self, message)

    def flat(self, message: pb.ArrayEncoding) -> FlatArray:
        """Describe values that must be flat."""
        while message.WhichOneof("array_encoding") == "nullable":
            if message.nullable.WhichOneof("nullability") != "no_nulls":
                break
            message = message.nullable.no_nulls.values
        if message.WhichOneof("array_encoding") != "flat":
            raise self.place.unsupported(f"2.0 {message.WhichOneof('array_encoding')} as bytes")
        flat = message.flat
        Flat.of_width(flat.bits_per_value, self.place)
        return FlatArray(flat.bits_per_value, self.buffer(flat.buffer), self.codec(flat))

    def bytes(self, message: pb.ArrayEncoding) -> FlatArray:
        """Describe values that must be flat bytes."""
        data = self.flat(message)
        if data.bits != _BYTE:
            raise self.place.corrupt(f"bytes of {data.bits} bits")
        return data

    def buffer(self, message: pb.Buffer) -> int:
        """Return the number of a buffer of the page."""
        if message.buffer_type != pb.Buffer.page:
            raise self.place.unsupported("2.0 values in a column or file buffer")
        return message.buffer_index

    def codec(self, flat: pb.Flat) -> Codec | None:
        """Return what a flat buffer is compressed with."""
        scheme = flat.compression.scheme
        if scheme in {"", "none"}:
            return None
        if scheme not in _CODECS:
            raise self.place.unsupported(f"2.0 flat with compression {scheme[:40]}")
        return Codec(_CODECS[scheme])


def _nullable(describer: ArrayDescriber, message: pb.ArrayEncoding) -> ArrayNode:
    nullable = message.nullable
    kind = nullable.WhichOneof("nullability")
    if kind == "no_nulls":
        return describer.describe(nullable.no_nulls.values)
    if kind == "some_nulls":
        validity = describer.flat(nullable.some_nulls.validity)
        if validity.bits != 1:
            raise describer.place.corrupt(f"validity of {validity.bits} bits per value")
        return NullableArray(validity, describer.describe(nullable.some_nulls.values))
    if kind == "all_nulls":
        return NullArray()
    raise describer.place.unsupported("2.0 nullable of an unknown kind")


def _fixed_size_list(describer: ArrayDescriber, message: pb.ArrayEncoding) -> ArrayNode:
    lists = message.fixed_size_list
    return FixedSizeListArray(lists.dimension, describer.describe(lists.items))


def _list(describer: ArrayDescriber, message: pb.ArrayEncoding) -> ArrayNode:
    lists = message.list
    offsets = describer.describe(lists.offsets)
    return ListArray(offsets, lists.null_offset_adjustment, lists.num_items)


def _binary(describer: ArrayDescriber, message: pb.ArrayEncoding) -> ArrayNode:
    binary = message.binary
    data = describer.bytes(binary.bytes)
    return BinaryArray(describer.describe(binary.indices), data, binary.null_adjustment)


def _fsst(describer: ArrayDescriber, message: pb.ArrayEncoding) -> ArrayNode:
    table = SymbolTable.parse(message.fsst.symbol_table, describer.place)
    return FsstArray(describer.describe(message.fsst.binary), table)


def _dictionary(describer: ArrayDescriber, message: pb.ArrayEncoding) -> ArrayNode:
    dictionary = message.dictionary
    return DictionaryArray(
        describer.describe(dictionary.indices),
        describer.describe(dictionary.items),
        dictionary.num_dictionary_items,
        counts_from_one=not describer.is_dictionary,
    )


def _packed_struct(describer: ArrayDescriber, message: pb.ArrayEncoding) -> ArrayNode:
    packed = message.packed_struct
    children = [describer.flat(inner) for inner in packed.inner]
    bits = tuple(child.bits for child in children)
    rows = FlatArray(sum(bits), describer.buffer(packed.buffer), None)
    split = PackedStruct.of(bits, Flat.of_width(rows.bits, describer.place), describer.place)
    return PackedStructArray(split, rows)


def _struct(describer: ArrayDescriber, message: pb.ArrayEncoding) -> ArrayNode:
    # a header without data; only the column of a struct without children is ever read
    return NullArray()


def _bitpacked(describer: ArrayDescriber, message: pb.ArrayEncoding) -> ArrayNode:
    packed = message.bitpacked
    return BitpackedArray(
        packed.compressed_bits_per_value,
        packed.uncompressed_bits_per_value,
        describer.buffer(packed.buffer),
        packed.signed,
    )


def _block_packed(describer: ArrayDescriber, message: pb.ArrayEncoding) -> ArrayNode:
    packed = message.bitpacked_for_non_neg
    return BlockPackedArray(
        packed.compressed_bits_per_value,
        packed.uncompressed_bits_per_value,
        describer.buffer(packed.buffer),
    )


def _fixed_size_binary(describer: ArrayDescriber, message: pb.ArrayEncoding) -> ArrayNode:
    binary = message.fixed_size_binary
    return FixedSizeBinaryArray(describer.bytes(binary.bytes), binary.byte_width)


def _constant(describer: ArrayDescriber, message: pb.ArrayEncoding) -> ArrayNode:
    return ConstantArray(message.constant.value)


_DESCRIBE: dict[str, Callable[[ArrayDescriber, pb.ArrayEncoding], ArrayNode]] = {
    "flat": ArrayDescriber.flat,
    "nullable": _nullable,
    "fixed_size_list": _fixed_size_list,
    "list": _list,
    "struct": _struct,
    "binary": _binary,
    "fsst": _fsst,
    "dictionary": _dictionary,
    "packed_struct": _packed_struct,
    "bitpacked": _bitpacked,
    "fixed_size_binary": _fixed_size_binary,
    "bitpacked_for_non_neg": _block_packed,
    "constant": _constant,
}
