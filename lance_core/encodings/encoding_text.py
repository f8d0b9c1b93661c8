"""Encodings as people read them: ``mini-block fsst(variable) [NI]``.

Works on the messages alone, so that what cannot be decoded can still be named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.proto import encodings20_pb2 as pb20, encodings21_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_LAYERS = {1: "AV", 2: "AVL", 3: "NI", 4: "NL", 5: "EL", 6: "NEL"}
_CODECS = {pb.COMPRESSION_LZ4: "lz4", pb.COMPRESSION_ZSTD: "zstd"}


def layout_text(layout: pb.PageLayout) -> str:
    """Name the layout of a 2.1 or 2.2 page with all encodings in it.

    The layers stand in brackets, innermost first, by the short names of the file format: ``AV`` and
    ``NI`` are valid and nullable items, ``AVL``, ``NL``, ``EL`` and ``NEL`` lists that may be null,
    empty, or both.

    Examples
    --------
    >>> values = pb.CompressiveEncoding(flat=pb.Flat(bits_per_value=64))
    >>> page = pb.MiniBlockLayout(value_compression=values, layers=[1])
    >>> layout_text(pb.PageLayout(mini_block_layout=page))
    'mini-block flat64'
    """
    kind = layout.WhichOneof("layout")
    if kind == "mini_block_layout":
        return _mini_block(layout.mini_block_layout)
    if kind == "full_zip_layout":
        page = layout.full_zip_layout
        return f"full-zip {compression_text(page.value_compression)}{_layers(page.layers)}"
    if kind == "constant_layout":
        return _constant(layout.constant_layout)
    if kind == "blob_layout":
        return f"blob({layout_text(layout.blob_layout.inner_layout)})"
    return "unknown layout" if kind is None else kind


def _mini_block(page: pb.MiniBlockLayout) -> str:
    values = compression_text(page.value_compression)
    if page.HasField("dictionary"):
        items = compression_text(page.dictionary)
        values = f"dictionary({page.num_dictionary_items} x {items}, {values})"
    return f"mini-block {values}{_layers(page.layers)}"


def _constant(page: pb.ConstantLayout) -> str:
    value = "" if not page.HasField("inline_value") else f" 0x{page.inline_value[::-1].hex()}"
    return f"constant{value}{_layers(page.layers)}"


def _layers(numbers: Iterable[int]) -> str:
    names = [_LAYERS.get(number, "?") for number in numbers]
    return "" if names == ["AV"] else f" [{', '.join(names)}]"


def compression_text(message: pb.CompressiveEncoding) -> str:
    """Name a compressive encoding and, in parentheses, what is inside it."""
    kind = message.WhichOneof("compression")
    if kind is None:
        return "unknown"
    write = _WRITE.get(kind)
    return kind if write is None else write(message)


def _general(message: pb.CompressiveEncoding) -> str:
    codec = _CODECS.get(message.general.compression.scheme, "unknown codec")
    return f"{codec}({compression_text(message.general.values)})"


def _fixed_size_list(message: pb.CompressiveEncoding) -> str:
    lists = message.fixed_size_list
    nulls = ", nullable" if lists.has_validity else ""
    return f"list{lists.items_per_value}({compression_text(lists.values)}{nulls})"


def _packed(message: pb.CompressiveEncoding) -> str:
    return f"packed({', '.join(f'{bits}' for bits in message.packed_struct.bits_per_value)})"


def _variable_packed(message: pb.CompressiveEncoding) -> str:
    fields = message.variable_packed_struct.fields
    return f"packed({', '.join(compression_text(field.value) for field in fields)})"


def _out_of_line(message: pb.CompressiveEncoding) -> str:
    packed = message.out_of_line_bitpacking
    return f"bitpacking{packed.uncompressed_bits_per_value}({compression_text(packed.values)})"


_WRITE: dict[str, Callable[[pb.CompressiveEncoding], str]] = {
    "flat": lambda message: f"flat{message.flat.bits_per_value}",
    "variable": lambda _: "variable",
    "constant": lambda _: "constant",
    "inline_bitpacking": lambda message: (
        f"bitpacking{message.inline_bitpacking.uncompressed_bits_per_value}"
    ),
    "out_of_line_bitpacking": _out_of_line,
    "fsst": lambda message: f"fsst({compression_text(message.fsst.values)})",
    "rle": lambda message: f"rle({compression_text(message.rle.values)})",
    "byte_stream_split": lambda message: (
        f"byte-stream-split({compression_text(message.byte_stream_split.values)})"
    ),
    "general": _general,
    "fixed_size_list": _fixed_size_list,
    "packed_struct": _packed,
    "variable_packed_struct": _variable_packed,
}


def array_text(message: pb20.ArrayEncoding) -> str:
    """Name an encoding of a 2.0 page and, in parentheses, what is inside it."""
    kind = message.WhichOneof("array_encoding")
    if kind is None:
        return "unknown"
    write = _WRITE_ARRAY.get(kind)
    return kind if write is None else write(message)


def _array_flat(message: pb20.ArrayEncoding) -> str:
    flat = f"flat{message.flat.bits_per_value}"
    scheme = message.flat.compression.scheme
    return flat if scheme in {"", "none"} else f"{scheme[:20]}({flat})"


def _nullable(message: pb20.ArrayEncoding) -> str:
    kind = message.nullable.WhichOneof("nullability")
    if kind == "no_nulls":
        return array_text(message.nullable.no_nulls.values)
    if kind == "some_nulls":
        return f"nullable({array_text(message.nullable.some_nulls.values)})"
    return "all null"


def _array_dictionary(message: pb20.ArrayEncoding) -> str:
    dictionary = message.dictionary
    items, indices = array_text(dictionary.items), array_text(dictionary.indices)
    return f"dictionary({dictionary.num_dictionary_items} x {items}, {indices})"


_WRITE_ARRAY: dict[str, Callable[[pb20.ArrayEncoding], str]] = {
    "flat": _array_flat,
    "nullable": _nullable,
    "fixed_size_list": lambda message: (
        f"list{message.fixed_size_list.dimension}({array_text(message.fixed_size_list.items)})"
    ),
    "list": lambda message: f"list({array_text(message.list.offsets)})",
    "binary": lambda message: f"binary({array_text(message.binary.bytes)})",
    "fsst": lambda message: f"fsst({array_text(message.fsst.binary)})",
    "dictionary": _array_dictionary,
    "packed_struct": lambda message: (
        f"packed({', '.join(array_text(inner) for inner in message.packed_struct.inner)})"
    ),
}
