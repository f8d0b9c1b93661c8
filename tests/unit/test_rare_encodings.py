"""Encodings that the format knows and no writer at hand emits, decoded from bytes made by hand."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lance_core.encodings.arrow_arrays import to_arrow
from lance_core.encodings.blocks import blocks_of
from lance_core.encodings.describe import describe
from lance_core.encodings.layouts import describe_layout
from lance_core.encodings.page import Loaded, Page
from lance_core.encodings.place import Place
from lance_core.encodings.steps import drive
from lance_core.encodings.v2_0.describe import ArrayDescriber
from lance_core.encodings.v2_0.page import ArrayPage
from lance_core.encodings.values import FixedWidth, Packed, Variable
from lance_core.errors import CorruptFileError
from lance_core.kernels.bitpacking import ORDER
from lance_core.proto import encodings20_pb2 as pb20, encodings21_pb2 as pb

PLACE = Place("a.lance", "c")
PIECES = [(0, 3), (7, 8), (1000, 1100), (2040, 2048)]
EMPTY = pa.binary(0)
BYTES = pb20.ArrayEncoding(flat=pb20.Flat(bits_per_value=8, buffer=pb20.Buffer()))


def read_page(message: pb20.ArrayEncoding, buffer: bytes, num_rows: int = 2048) -> Any:
    node = ArrayDescriber(PLACE, is_dictionary=False).describe(message)
    page = Page(0, num_rows, ((0, len(buffer)),), ArrayPage(node), Loaded())
    page.layout.check(page, PLACE)
    views = memoryview(buffer)
    return drive(node.read(page, PIECES, PLACE), lambda spans: [views[a:b] for a, b in spans])


def rows_of(values: np.ndarray) -> list[int]:
    rows: list[int] = np.concatenate([values[start:stop] for start, stop in PIECES]).tolist()
    return rows


def as_stream(values: np.ndarray, width: int) -> bytes:
    total = sum((int(value) & ((1 << width) - 1)) << (i * width) for i, value in enumerate(values))
    return total.to_bytes(len(values) * width // 8 + 1, "little")


@pytest.mark.parametrize(("kind", "width"), [("u2", 11), ("i4", 13), ("i8", 40), ("i1", 3)])
def test_a_bit_stream_is_spread_to_integers(kind: str, width: int) -> None:
    is_signed = kind[0] == "i"
    values = (np.arange(2048) * 7919 % (1 << width)) - (is_signed << (width - 1))
    message = pb20.Bitpacked(
        compressed_bits_per_value=width,
        uncompressed_bits_per_value=8 * int(kind[1]),
        buffer=pb20.Buffer(),
        signed=is_signed,
    )
    found = read_page(pb20.ArrayEncoding(bitpacked=message), as_stream(values, width))
    assert found.data.view(kind).tolist() == rows_of(values)


def test_packed_blocks_of_2_0_are_unpacked() -> None:
    values = np.arange(2048, dtype=np.uint16) % 1024
    words = []
    for block in values.reshape(2, 1024).astype(int):
        bits = np.zeros((64, 10 * 16), np.uint8)
        for row in range(16):
            start = ORDER[row // 8] * 16 + (row % 8) * 128
            for bit in range(10):
                bits[:, row * 10 + bit] = block[start : start + 64] >> bit & 1
        packed = np.packbits(bits.reshape(64, 10, 16), axis=2, bitorder="little")
        words.append(packed.view("<u2")[:, :, 0].T.tobytes())
    message = pb20.BitpackedForNonNeg(
        compressed_bits_per_value=10, uncompressed_bits_per_value=16, buffer=pb20.Buffer()
    )
    found = read_page(pb20.ArrayEncoding(bitpacked_for_non_neg=message), b"".join(words))
    assert found.data.view(np.uint16).tolist() == rows_of(values)


def test_packed_values_longer_than_their_buffer_are_corrupt() -> None:
    buffer = pb20.Buffer()
    stream = pb20.Bitpacked(
        compressed_bits_per_value=10, uncompressed_bits_per_value=16, buffer=buffer
    )
    blocks = pb20.BitpackedForNonNeg(
        compressed_bits_per_value=10, uncompressed_bits_per_value=16, buffer=buffer
    )
    with pytest.raises(CorruptFileError):
        read_page(pb20.ArrayEncoding(bitpacked=stream), bytes(2559))
    with pytest.raises(CorruptFileError):
        read_page(pb20.ArrayEncoding(bitpacked_for_non_neg=blocks), bytes(2559))


def test_strings_of_one_length_need_no_offsets() -> None:
    texts = [f"{i:04}".encode() for i in range(2048)]
    message = pb20.FixedSizeBinary(bytes=BYTES, byte_width=4)
    found = read_page(pb20.ArrayEncoding(fixed_size_binary=message), b"".join(texts))
    assert isinstance(found, Variable)
    kept = [texts[row] for start, stop in PIECES for row in range(start, stop)]
    assert [bytes(found.slice(i, i + 1).data) for i in range(found.num_values)] == kept


def test_a_constant_of_2_0_is_repeated() -> None:
    found = read_page(pb20.ArrayEncoding(constant=pb20.Constant(value=b"\x07\x00")), b"")
    assert found.data.view(np.uint16).tolist() == [7] * 112


def test_a_constant_in_a_block_is_repeated() -> None:
    encoding = describe(pb.CompressiveEncoding(constant=pb.Constant(value=b"\x05\x00")), PLACE)
    levels = encoding.decode_blocks(blocks_of([b"", b""]), np.array([3, 2]), PLACE)
    assert isinstance(levels, FixedWidth)
    assert levels.data.view(np.uint16).tolist() == [5] * 5
    with pytest.raises(CorruptFileError):
        encoding.decode_blocks(blocks_of([b""]), np.array([1 << 40]), PLACE)


@pytest.mark.parametrize(("bits", "header"), [(32, "<BII"), (64, "<BQQ")])
def test_a_block_of_strings_of_early_writers_is_read(bits: int, header: str) -> None:
    texts = [b"INFO", b"", b"WARN"]
    offsets = np.cumsum([0, *map(len, texts)]).astype(f"<u{bits // 8}").tobytes()
    start = struct.calcsize(header) + len(offsets)
    block = struct.pack(header, bits, len(texts), start) + offsets + b"".join(texts)
    flat = pb.CompressiveEncoding(flat=pb.Flat(bits_per_value=bits))
    encoding = describe(pb.CompressiveEncoding(variable=pb.Variable(offsets=flat)), PLACE)
    found = encoding.decode_blocks(blocks_of([block]), np.array([3]), PLACE)
    assert isinstance(found, Variable)
    assert found.offsets.tolist() == [0, 4, 4, 8]
    assert found.data.tobytes() == b"INFOWARN"
    with pytest.raises(CorruptFileError):
        encoding.decode_blocks(blocks_of([block[:-1]]), np.array([3]), PLACE)


def zstd(data: bytes) -> bytes:
    """Return a frame without the size of its content, as streams are compressed."""
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    frame: bytes = sink.getvalue().to_pybytes()
    return frame


def compressed_bytes(scheme: pb.CompressionScheme.ValueType) -> pb.CompressiveEncoding:
    return pb.CompressiveEncoding(
        flat=pb.Flat(bits_per_value=8, data=pb.BufferCompression(scheme=scheme))
    )


def test_a_zstd_frame_without_a_size_before_it_is_expanded() -> None:
    data = bytes(range(256)) * 8000
    encoding = describe(compressed_bytes(pb.COMPRESSION_ZSTD), PLACE)
    count = np.array([len(data)])
    frame = zstd(data)
    found = encoding.decode_blocks(blocks_of([frame]), count, PLACE)
    assert isinstance(found, FixedWidth)
    assert found.data.tobytes() == data
    with pytest.raises(CorruptFileError):
        encoding.decode_blocks(blocks_of([frame[: len(frame) // 2]]), count, PLACE)


def test_flat_values_in_a_compressed_buffer_are_expanded() -> None:
    data = bytes(range(100))
    block = struct.pack("<I", 100) + pa.Codec("lz4_raw").compress(data, asbytes=True)
    encoding = describe(compressed_bytes(pb.COMPRESSION_LZ4), PLACE)
    found = encoding.decode_chunks([blocks_of([block])], np.array([100]), PLACE)
    assert isinstance(found, FixedWidth)
    assert found.data.tobytes() == data


def packed_rows() -> pb.CompressiveEncoding:
    flat = pb.CompressiveEncoding(flat=pb.Flat(bits_per_value=32))
    fields = pb.VariablePackedStruct()
    fields.fields.add(value=flat, bits_per_value=32)
    texts = pb.CompressiveEncoding(variable=pb.Variable(offsets=flat))
    fields.fields.add(value=texts, bits_per_length=32)
    return pb.CompressiveEncoding(variable_packed_struct=fields)


def test_packed_rows_with_strings_are_taken_apart_and_empty_ones_are_blank() -> None:
    rows = [struct.pack("<II", 7, 2) + b"ab", b"", struct.pack("<II", 9, 0)]
    found = describe(packed_rows(), PLACE).decode_zipped(blocks_of(rows), PLACE)
    assert isinstance(found, Packed)
    numbers, texts = found.children
    assert isinstance(numbers, FixedWidth)
    assert isinstance(texts, Variable)
    assert numbers.data.view(np.uint32).tolist() == [7, 0, 9]
    assert texts.offsets.tolist() == [0, 2, 2, 2]


@pytest.mark.parametrize(
    "row",
    [b"abc", struct.pack("<II", 7, 3) + b"ab", struct.pack("<II", 7, 1) + b"ab", bytes(7)],
)
def test_packed_rows_that_their_children_do_not_fill_are_corrupt(row: bytes) -> None:
    with pytest.raises(CorruptFileError):
        describe(packed_rows(), PLACE).decode_zipped(blocks_of([row]), PLACE)


def test_the_message_of_packed_rows_describes_them_again() -> None:
    encoding = describe(packed_rows(), PLACE)
    assert describe(encoding.message(), PLACE) == encoding


@pytest.mark.parametrize("bits", [0, 24, 128])
def test_indices_of_2_0_that_are_no_numbers_are_corrupt(bits: int) -> None:
    flat = pb20.Flat(bits_per_value=bits, buffer=pb20.Buffer())
    dictionary = pb20.Dictionary(
        indices=pb20.ArrayEncoding(flat=flat), items=BYTES, num_dictionary_items=1
    )
    with pytest.raises(CorruptFileError, match="dictionary indices are not numbers"):
        read_page(pb20.ArrayEncoding(dictionary=dictionary), bytes(1 << 15))


@pytest.mark.parametrize("bits", [0, 1])
def test_what_fills_no_byte_cannot_be_split_into_bytes(bits: int) -> None:
    flat = pb.CompressiveEncoding(flat=pb.Flat(bits_per_value=bits))
    split = pb.CompressiveEncoding(byte_stream_split=pb.ByteStreamSplit(values=flat))
    with pytest.raises(CorruptFileError, match=f"{bits} bits"):
        describe(split, PLACE)


@pytest.mark.parametrize("kind", [pa.int8(), pa.bool_(), pa.string(), pa.null(), pa.list_(EMPTY)])
def test_values_of_no_bytes_are_of_their_own_type_only(kind: pa.DataType) -> None:
    values = FixedWidth(np.empty(0, np.uint8), 0, 3)
    assert to_arrow(values, EMPTY, PLACE).to_pylist() == [b""] * 3
    with pytest.raises(CorruptFileError, match="cannot be"):
        to_arrow(values, kind, PLACE)


def test_a_boolean_page_of_no_bytes_is_corrupt() -> None:
    constant = pb.ConstantLayout(layers=[pb.REPDEF_ALL_VALID_ITEM], inline_value=b"")
    message = pb.PageLayout(constant_layout=constant)
    page = Page(0, 3, (), describe_layout(message, PLACE, is_bool=True), Loaded())
    with pytest.raises(CorruptFileError, match="wrong width"):
        page.layout.check(page, PLACE)
