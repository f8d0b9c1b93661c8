"""Damage to the bytes of a Lance file: bits, words, lengths, tables and protobuf messages.

Damage that leaves the container intact reaches deeper checks than flipped bits do, so messages are
changed as messages and the file is put together again around them.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

from lance_core.proto import encodings20_pb2, encodings21_pb2, file2_pb2, file_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy as np

_FOOTER = struct.Struct("<QQQIIHH4s")
_SMALL_EDGES = (0, 1, 2, 3, 7, 8, 15, 255, 256, 2**15, 2**16 - 1, 2**16)
_EDGES = (*_SMALL_EDGES, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**40, 2**62, 2**63 - 1, 2**63)
_TAIL_BYTES = 1500
_WIDTHS = (1, 2, 4, 8)
_ENCODINGS: dict[str, type[Message]] = {
    "PageLayout": encodings21_pb2.PageLayout,
    "ArrayEncoding": encodings20_pb2.ArrayEncoding,
    "ColumnEncoding": encodings20_pb2.ColumnEncoding,
}


@dataclass(slots=True)
class _Container:
    """The parts of a file that say where things are; ``body`` is all that comes before them."""

    body: bytes
    descriptor: bytes
    columns: list[bytes]
    buffers: list[tuple[int, int]]
    version: tuple[int, int]

    @classmethod
    def parse(cls, data: bytes) -> _Container:
        start, columns_at, buffers_at, num_buffers, num_columns, major, minor, _ = (
            _FOOTER.unpack_from(data, len(data) - _FOOTER.size)
        )
        places = _table(data, columns_at, num_columns)
        buffers = _table(data, buffers_at, num_buffers)
        position, length = buffers[0]
        columns = [data[at : at + size] for at, size in places]
        descriptor = data[position : position + length]
        return cls(data[:start], descriptor, columns, buffers, (major, minor))

    def assemble(self) -> bytes:
        """Return a file in which every position and length is right."""
        body = self.body + b"\0" * (-len(self.body) % 64)
        buffers = [(len(body), len(self.descriptor)), *self.buffers[1:]]
        body += self.descriptor
        start, places = len(body), []
        for column in self.columns:
            places.append((len(body), len(column)))
            body += column
        columns_at = len(body)
        body += b"".join(struct.pack("<QQ", *place) for place in places)
        buffers_at = len(body)
        body += b"".join(struct.pack("<QQ", *place) for place in buffers)
        counts = (len(buffers), len(places))
        return body + _FOOTER.pack(start, columns_at, buffers_at, *counts, *self.version, b"LANC")


def _table(data: bytes, position: int, count: int) -> list[tuple[int, int]]:
    return [struct.unpack_from("<QQ", data, position + 16 * index) for index in range(count)]


def damaged(data: bytes, rng: np.random.Generator) -> tuple[bytes, str]:
    """Damage a valid file in one way.

    Returns
    -------
    tuple[bytes, str]
        The damaged file and what was done to it.
    """
    kind = str(rng.choice(list(_KINDS), p=[share for _, share in _KINDS.values()]))
    return _KINDS[kind][0](data, rng), kind


def _position(size: int, rng: np.random.Generator) -> int:
    low = 0 if rng.random() < 0.5 else max(0, size - _TAIL_BYTES)
    return int(rng.integers(low, size))


def _flip_bits(data: bytes, rng: np.random.Generator) -> bytes:
    changed = bytearray(data)
    for _ in range(int(rng.integers(1, 5))):
        changed[_position(len(data), rng)] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def _change_words(data: bytes, rng: np.random.Generator) -> bytes:
    """Write numbers that are limits of something over one to three words."""
    changed = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        width = int(rng.choice(_WIDTHS))
        position = _position(len(data), rng) // width * width
        value = _other(int.from_bytes(data[position : position + width], "little"), rng)
        word = (value % (1 << (8 * width))).to_bytes(width, "little")
        changed[position : position + width] = word[: len(data) - position]
    return bytes(changed)


def _cut(data: bytes, rng: np.random.Generator) -> bytes:
    return data[: _position(len(data), rng)]


def _splice(data: bytes, rng: np.random.Generator) -> bytes:
    """Remove, repeat or insert bytes, so that all behind them is displaced."""
    start, length = _position(len(data), rng), int(rng.integers(1, 65))
    piece = data[start : start + length]
    middle = [b"", piece + piece, rng.bytes(length) + piece][int(rng.integers(3))]
    return data[:start] + middle + data[start + length :]


def _change_footer(data: bytes, rng: np.random.Generator) -> bytes:
    fields = list(_FOOTER.unpack_from(data, len(data) - _FOOTER.size))
    index = int(rng.integers(7))
    bits = 64 if index < 3 else 32 if index < 5 else 16
    fields[index] = _other(fields[index], rng) % (1 << bits)
    return data[: -_FOOTER.size] + _FOOTER.pack(*fields)


def _change_tables(data: bytes, rng: np.random.Generator) -> bytes:
    """Change one position or length in the tables of columns and global buffers."""
    _, start, _, num_buffers, num_columns, *_ = _FOOTER.unpack_from(data, len(data) - _FOOTER.size)
    position = start + 8 * int(rng.integers(2 * (num_buffers + num_columns)))
    value = _other(int.from_bytes(data[position : position + 8], "little"), rng) % (1 << 64)
    return data[:position] + value.to_bytes(8, "little") + data[position + 8 :]


def _change_buffers(data: bytes, rng: np.random.Generator) -> bytes:
    """Change words near the start of a page buffer: tables, headers, offsets, lengths."""
    container = _Container.parse(data)
    changed = bytearray(data)
    places = [place for column in container.columns for place in _page_buffers(column)]
    places += container.buffers[1:]
    if len(places) == 0:
        return _change_words(data, rng)
    for _ in range(int(rng.integers(1, 3))):
        position, size = places[int(rng.integers(len(places)))]
        width = int(rng.choice(_WIDTHS))
        reach = min(size, 64 if rng.random() < 0.6 else size)
        start = position + int(rng.integers(0, max(reach, 1))) // width * width
        value = _other(int.from_bytes(data[start : start + width], "little"), rng)
        changed[start : start + width] = (value % (1 << (8 * width))).to_bytes(width, "little")
    return bytes(changed)


def _page_buffers(column: bytes) -> Iterator[tuple[int, int]]:
    for page in file2_pb2.ColumnMetadata.FromString(column).pages:
        yield from zip(page.buffer_offsets, page.buffer_sizes, strict=True)


def _change_column(data: bytes, rng: np.random.Generator) -> bytes:
    """Change one to three fields in the metadata of a column, its page encodings among them."""
    container = _Container.parse(data)
    if len(container.columns) == 0:
        return _change_schema(data, rng)
    index = int(rng.integers(len(container.columns)))
    column = file2_pb2.ColumnMetadata.FromString(container.columns[index])
    for _ in range(int(rng.integers(1, 4))):
        if rng.random() < 0.7 and len(column.pages) > 0:
            page = column.pages[int(rng.integers(len(column.pages)))]
            _change_encoding(page.encoding.direct, rng)
        else:
            _change_message(column, rng)
    container.columns[index] = column.SerializeToString()
    return container.assemble()


def _change_encoding(direct: file2_pb2.DirectEncoding, rng: np.random.Generator) -> None:
    try:
        any_message = AnyMessage.FromString(direct.encoding)
        kind = _ENCODINGS[any_message.type_url.rpartition(".")[2]]
        message = kind.FromString(any_message.value)
    except (DecodeError, KeyError):  # an earlier change went here
        return
    _change_message(message, rng)
    any_message.value = message.SerializeToString()
    direct.encoding = any_message.SerializeToString()


def _change_schema(data: bytes, rng: np.random.Generator) -> bytes:
    container = _Container.parse(data)
    message = file_pb2.FileDescriptor.FromString(container.descriptor)
    _change_message(message, rng)
    container.descriptor = message.SerializeToString()
    return container.assemble()


def _change_wire(data: bytes, rng: np.random.Generator) -> bytes:
    """Change bytes of a message, lengths of parts among them, inside an intact container."""
    container = _Container.parse(data)
    index = int(rng.integers(-1, len(container.columns)))
    wire = bytearray(container.descriptor if index < 0 else container.columns[index])
    for _ in range(int(rng.integers(1, 3)) if len(wire) > 0 else 0):
        wire[int(rng.integers(len(wire)))] = int(rng.integers(256))
    if rng.random() < 0.2:
        wire = wire[: int(rng.integers(len(wire) + 1))]
    if index < 0:
        container.descriptor = bytes(wire)
    else:
        container.columns[index] = bytes(wire)
    return container.assemble()


def _change_message(message: Message, rng: np.random.Generator) -> None:
    """Change one field somewhere in a message, or take away or repeat a part of it."""
    changes = list(_changes(message, rng))
    if len(changes) > 0:
        changes[int(rng.integers(len(changes)))]()


def _changes(message: Message, rng: np.random.Generator) -> Iterator[Callable[[], None]]:
    for field, value in message.ListFields():
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            continue
        yield partial(message.ClearField, field.name)
        if not field.is_repeated:
            yield from _field_changes(message, field, value, rng)
            continue
        if len(value) > 0:
            yield value.pop
            yield partial(value.append, value[0])
        for index, item in enumerate(value):
            if isinstance(item, Message):
                yield from _changes(item, rng)
            else:
                yield from _item_changes(value, index, field, rng)


def _field_changes(
    message: Message, field: FieldDescriptor, value: object, rng: np.random.Generator
) -> Iterator[Callable[[], None]]:
    if isinstance(value, Message):
        yield from _changes(value, rng)
        if isinstance(value, encodings21_pb2.CompressiveEncoding):
            yield lambda: value.CopyFrom(_some_encoding(rng))
    elif field.type != FieldDescriptor.TYPE_STRING:
        yield lambda: setattr(message, field.name, _scalar(field, value, rng))


def _item_changes(
    values: list[object], index: int, field: FieldDescriptor, rng: np.random.Generator
) -> Iterator[Callable[[], None]]:
    def change() -> None:
        values[index] = _scalar(field, values[index], rng)

    if field.type != FieldDescriptor.TYPE_STRING:
        yield change


def _scalar(field: FieldDescriptor, value: object, rng: np.random.Generator) -> object:
    if isinstance(value, bytes):
        changed = bytearray(value + rng.bytes(int(rng.integers(0, 3))))
        if len(changed) > 0:
            changed[int(rng.integers(len(changed)))] = int(rng.integers(256))
        return bytes(changed[: int(rng.integers(len(changed) + 1))])
    if isinstance(value, bool):
        return not value
    number = _other(int(value), rng)  # type: ignore[call-overload]  # strings are left out
    kind = FieldDescriptor
    if field.cpp_type == kind.CPPTYPE_ENUM:
        return number % 8
    bits = 32 if field.cpp_type in {kind.CPPTYPE_UINT32, kind.CPPTYPE_INT32} else 64
    number %= 1 << bits
    is_signed = field.cpp_type in {kind.CPPTYPE_INT32, kind.CPPTYPE_INT64}
    return number - (1 << bits) if is_signed and number >= 1 << (bits - 1) else number


def _some_encoding(rng: np.random.Generator) -> encodings21_pb2.CompressiveEncoding:
    """Return an encoding that may well not fit the values it stands for."""
    pb = encodings21_pb2
    bits = int(rng.choice([1, 8, 16, 32, 64, 128]))
    flat = pb.CompressiveEncoding(flat=pb.Flat(bits_per_value=bits))
    bytes_ = pb.CompressiveEncoding(flat=pb.Flat(bits_per_value=8))
    offsets = pb.CompressiveEncoding(flat=pb.Flat(bits_per_value=32))
    scheme = pb.BufferCompression(scheme=int(rng.integers(1, 3)))  # type: ignore[arg-type]
    inline = pb.InlineBitpacking(uncompressed_bits_per_value=bits)
    some = [
        flat,
        pb.CompressiveEncoding(variable=pb.Variable(offsets=offsets)),
        pb.CompressiveEncoding(inline_bitpacking=inline),
        pb.CompressiveEncoding(rle=pb.Rle(values=flat, run_lengths=bytes_)),
        pb.CompressiveEncoding(byte_stream_split=pb.ByteStreamSplit(values=flat)),
        pb.CompressiveEncoding(general=pb.General(compression=scheme, values=flat)),
        pb.CompressiveEncoding(
            fixed_size_list=pb.FixedSizeList(
                items_per_value=int(rng.choice(_EDGES)), values=flat, has_validity=True
            )
        ),
        pb.CompressiveEncoding(
            out_of_line_bitpacking=pb.OutOfLineBitpacking(
                uncompressed_bits_per_value=bits, values=flat
            )
        ),
    ]
    return some[int(rng.integers(len(some)))]


def _other(value: int, rng: np.random.Generator) -> int:
    """Return another number: near, far, or at the edge of some width."""
    near = [value + 1, value - 1, value * 2, value // 2, value + 8, value ^ 0x80]
    choices = [*near, *(int(edge) for edge in rng.choice(len(_EDGES), 3))]
    picked = int(rng.integers(len(choices)))
    return choices[picked] if picked < len(near) else _EDGES[choices[picked]]


_KINDS: dict[str, tuple[Callable[[bytes, np.random.Generator], bytes], float]] = {
    "flipped bits": (_flip_bits, 0.15),
    "changed words": (_change_words, 0.1),
    "cut": (_cut, 0.05),
    "spliced": (_splice, 0.1),
    "changed footer": (_change_footer, 0.05),
    "changed tables": (_change_tables, 0.05),
    "changed page buffers": (_change_buffers, 0.2),
    "changed column metadata": (_change_column, 0.2),
    "changed schema": (_change_schema, 0.03),
    "changed message bytes": (_change_wire, 0.07),
}
