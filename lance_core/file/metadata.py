"""What a Lance file says about itself: schema, tables of buffers and columns (1.3, 1.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from google.protobuf.message import DecodeError

from lance_core.errors import CorruptFileError
from lance_core.file.footer import TABLE_ENTRY_BYTES, Footer, parse_footer
from lance_core.file.page_messages import PageMessages
from lance_core.proto import file2_pb2, file_pb2
from lance_core.schema.from_proto import schema_from_messages

if TYPE_CHECKING:
    from lance_core.encodings.version import FileVersion
    from lance_core.io.scheduler import RangeScheduler
    from lance_core.schema.tree import LanceSchema

_TAIL_BYTES = 64 << 10
_MAX_ROWS = 1 << 48

Span = tuple[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class FileMetadata:
    """Everything but the columns' own metadata, which is looked at when a column is first used.

    ``buffers`` are the ``(start, end)`` of the global buffers; ``columns`` those of the column
    messages inside ``view``, whose first byte is byte ``view_start`` of the file.
    """

    path: str
    size: int
    version: FileVersion
    schema: LanceSchema
    num_rows: int
    buffers: tuple[Span, ...]
    columns: tuple[Span, ...]
    view: memoryview
    view_start: int

    @property
    def num_columns(self) -> int:
        """Number of columns in the file."""
        return len(self.columns)

    def column(self, index: int) -> file2_pb2.ColumnMetadata:
        """Parse the metadata of one column."""
        try:
            return file2_pb2.ColumnMetadata.FromString(bytes(self._column_bytes(index)))
        except DecodeError:
            raise self._damaged(index) from None

    def pages(self, index: int) -> PageMessages:
        """Find the messages of the pages of one column; they are views into the metadata."""
        try:
            return PageMessages(self._column_bytes(index))
        except DecodeError:
            raise self._damaged(index) from None

    def _column_bytes(self, index: int) -> memoryview:
        start, end = self.columns[index]
        return self.view[start - self.view_start : end - self.view_start]

    def _damaged(self, index: int) -> CorruptFileError:
        reason = f"the metadata of column {index} is damaged"
        return CorruptFileError(self.path, reason, offset=self.columns[index][0])


def read_metadata(scheduler: RangeScheduler, path: str, size: int | None) -> FileMetadata:
    """Read the end of a file: one read of at most 64 KiB, and one more if that is too little.

    Parameters
    ----------
    scheduler
        Reads the file.
    path
        The file, as the store names it.
    size
        Its exact size if known, else None.

    Raises
    ------
    CorruptFileError
        The file contradicts the format.
    UnsupportedFeatureError
        A file version that is not read.
    """
    tail = scheduler.tail(path, size, _TAIL_BYTES)
    footer = parse_footer(path, tail)
    view, start = tail.view, tail.start
    if footer.buffer_table_start < start:
        (view,) = scheduler.read(path, [(footer.column_metadata_start, tail.size)])
        start = footer.column_metadata_start
    buffers = _table(path, view, start, footer.buffer_table_start, footer.num_buffers)
    wanted = min(footer.column_metadata_start, buffers[0][0])
    _check_spans(path, buffers, tail.size)
    if wanted < start:
        (head,) = scheduler.read(path, [(wanted, start)])
        view, start = memoryview(bytes(head) + bytes(view)), wanted
    # a copy of the small part lets go of the mapping and of the rest of the tail
    view, start = memoryview(bytes(view[wanted - start :])), wanted
    columns = _columns(path, view, start, footer)
    descriptor = _descriptor(path, view[buffers[0][0] - start : buffers[0][1] - start])
    schema = schema_from_messages(descriptor.schema.fields, descriptor.schema.metadata, path=path)
    return FileMetadata(
        path,
        tail.size,
        footer.version,
        schema,
        descriptor.length,
        buffers,
        columns,
        view,
        start,
    )


def _table(path: str, view: memoryview, start: int, at: int, entries: int) -> tuple[Span, ...]:
    begin = at - start
    words = np.frombuffer(view[begin : begin + entries * TABLE_ENTRY_BYTES], "<u8").reshape(-1, 2)
    return tuple((position, position + length) for position, length in words.tolist())


def _check_spans(path: str, spans: tuple[Span, ...], limit: int) -> None:
    for start, end in spans:
        if not 0 <= start <= end <= limit:
            raise CorruptFileError(path, f"bytes {start} to {end} of {limit} were expected")


def _columns(path: str, view: memoryview, start: int, footer: Footer) -> tuple[Span, ...]:
    spans = _table(path, view, start, footer.column_table_start, footer.num_columns)
    _check_spans(path, spans, footer.column_table_start)
    if any(begin < footer.column_metadata_start for begin, _ in spans):
        raise CorruptFileError(path, "a column's metadata lies before all column metadata")
    return spans


def _descriptor(path: str, view: memoryview) -> file_pb2.FileDescriptor:
    message = file_pb2.FileDescriptor()
    try:
        message.ParseFromString(bytes(view))
    except DecodeError:
        raise CorruptFileError(path, "the file descriptor is damaged") from None
    if message.length > _MAX_ROWS:
        raise CorruptFileError(path, f"the file claims {message.length} rows")
    return message
