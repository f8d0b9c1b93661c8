"""The container of a file being written: pages and buffers, then all that describes them.

Layout: file format, section 1. Everything but the descriptions goes to the sink at once, so memory
grows with the number of pages, not with their bytes.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np
from google.protobuf.any_pb2 import Any as AnyMessage

from lance_core.encodings.version import FileVersion
from lance_core.proto import encodings20_pb2, file2_pb2, file_pb2

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from google.protobuf.message import Message

    from lance_core.ids import ColumnIndex
    from lance_core.io.sink import ObjectSink, Piece

ALIGNMENT = 64
_FOOTER = struct.Struct("<QQQIIHH4s")
_TABLE_ENTRY = struct.Struct("<QQ")
_MAGIC = b"LANC"
_SMALL_BYTES = 4 << 10
_FOOTER_VERSIONS = {FileVersion.V2_0: (0, 3), FileVersion.V2_1: (2, 1), FileVersion.V2_2: (2, 2)}

Span = tuple[int, int]
"""Position and length of a buffer."""


@dataclass(frozen=True, slots=True, eq=False)
class FilePage:
    """A page as its column lists it.

    Attributes
    ----------
    column
        Where it belongs.
    buffers
        Bytes in the order of the format.
    encoding
        The message that describes them.
    length
        Rows; elements, below the lists of 2.0 files.
    """

    column: ColumnIndex
    buffers: tuple[Piece, ...]
    encoding: Message
    length: int


class ContainerWriter:
    """Appends to ``sink``; pages of different columns may come in any order."""

    def __init__(self, sink: ObjectSink, version: FileVersion, num_columns: int) -> None:
        self._sink = sink
        self._version = version
        self._columns = [
            _Column(_wrapped(encodings20_pb2.ColumnEncoding(values=encodings20_pb2.Empty())))
            for _ in range(num_columns)
        ]
        self._global_buffers: list[Span] = []

    def write_buffer(self, data: Piece) -> Span:
        """Append bytes at a multiple of 64; return where they lie."""
        padding = bytes(-self._sink.size % ALIGNMENT)
        start = self._sink.size + len(padding)
        view = data.data if isinstance(data, np.ndarray) else memoryview(data)
        if view.nbytes < _SMALL_BYTES:  # one call costs more than a copy
            self._sink.write(padding + view.tobytes())
        else:
            self._sink.write(padding)
            self._sink.write(view)
        return start, self._sink.size - start

    def add_page(self, page: FilePage) -> None:
        """Append a page behind the others of its column."""
        spans = [self.write_buffer(buffer) for buffer in page.buffers]
        self._columns[page.column].add(page, spans)

    def set_column_encoding(self, column: ColumnIndex, encoding: Message) -> None:
        """Say that a column is not one of plain values."""
        self._columns[column].encoding = _wrapped(encoding)

    def add_global_buffer(self, data: Piece) -> int:
        """Append a buffer of the user; return the index by which the file knows it."""
        self._global_buffers.append(self.write_buffer(data))
        return len(self._global_buffers)

    def finish(self, schema: file_pb2.Schema, num_rows: int) -> int:
        """Append the descriptions and make the file readable; return its size."""
        descriptor = file_pb2.FileDescriptor(schema=schema, length=num_rows)
        described = self.write_buffer(descriptor.SerializeToString(deterministic=True))
        columns_at = self._sink.size
        columns = self._append_all([column.message() for column in self._columns])
        column_table_at = self._append_table(columns)
        buffers = [described, *self._global_buffers]
        buffer_table_at = self._append_table(buffers)
        self._sink.write(
            _FOOTER.pack(
                columns_at,
                column_table_at,
                buffer_table_at,
                len(buffers),
                len(columns),
                *_FOOTER_VERSIONS[self._version],
                _MAGIC,
            )
        )
        return self._sink.finish()

    def _append_all(self, messages: Sequence[bytes]) -> list[Span]:
        starts = accumulate(map(len, messages), initial=self._sink.size)
        self._sink.write(b"".join(messages))
        return [(start, len(message)) for start, message in zip(starts, messages, strict=False)]

    def _append_table(self, spans: Sequence[Span]) -> int:
        start = self._sink.size
        self._sink.write(b"".join(_TABLE_ENTRY.pack(*span) for span in spans))
        return start


class _Column:
    """What is known of a column; its pages are kept as they will be written."""

    def __init__(self, encoding: file2_pb2.Encoding) -> None:
        self.encoding = encoding
        self._pages = bytearray()
        self._length = 0

    def add(self, page: FilePage, spans: Iterable[Span]) -> None:
        offsets, sizes = [], []
        for offset, size in spans:
            offsets.append(offset)
            sizes.append(size)
        message = file2_pb2.ColumnMetadata.Page(
            buffer_offsets=offsets,
            buffer_sizes=sizes,
            length=page.length,
            encoding=_wrapped(page.encoding),
            priority=self._length,
        )
        # messages are joined by joining their bytes, and a list of messages takes ten times these
        self._pages += file2_pb2.ColumnMetadata(pages=[message]).SerializeToString()
        self._length += page.length

    def message(self) -> bytes:
        return file2_pb2.ColumnMetadata(encoding=self.encoding).SerializeToString() + self._pages


def _wrapped(message: Message) -> file2_pb2.Encoding:
    """Wrap a message as the reference does: the type has a slash but no host before it."""
    content = message.SerializeToString(deterministic=True)
    wrapped = AnyMessage(type_url=f"/{message.DESCRIPTOR.full_name}", value=content)
    direct = file2_pb2.DirectEncoding(encoding=wrapped.SerializeToString())
    return file2_pb2.Encoding(direct=direct)
