"""The messages of a column's pages, kept as the bytes of the file and parsed one at a time.

Pages of compressed text have kilobytes of symbols in theirs: kept as objects, they would take
several times the bytes of the file, and memory would grow with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from google.protobuf.message import DecodeError

from lance_core.proto import file2_pb2

if TYPE_CHECKING:
    from collections.abc import Iterator

_VARINT, _EIGHT_BYTES, _DELIMITED, _FOUR_BYTES = 0, 1, 2, 5
_WIDTHS = {_EIGHT_BYTES: 8, _FOUR_BYTES: 4}
_PAGES = file2_pb2.ColumnMetadata.DESCRIPTOR.fields_by_name["pages"].number << 3 | _DELIMITED
_MAX_VARINT_BYTES = 10


class PageMessages:
    """The messages of all pages by number, those without rows too; safe to share between threads.

    Parameters
    ----------
    column
        The ``ColumnMetadata`` message, of which nothing is copied.

    Raises
    ------
    DecodeError
        It is no message.
    """

    def __init__(self, column: memoryview) -> None:
        self._column = column
        self._spans = _page_spans(column)

    def __len__(self) -> int:
        return len(self._spans)

    def __getitem__(self, number: int) -> file2_pb2.ColumnMetadata.Page:
        """Parse the message of a page; raises ``DecodeError`` if it is damaged."""
        start, end = self._spans[number]
        return file2_pb2.ColumnMetadata.Page.FromString(bytes(self._column[start:end]))

    def __iter__(self) -> Iterator[file2_pb2.ColumnMetadata.Page]:
        return (self[number] for number in range(len(self)))


def _page_spans(message: memoryview) -> list[tuple[int, int]]:
    """Return where the pages begin and end in the message around them."""
    spans: list[tuple[int, int]] = []
    at, size = 0, len(message)
    while at < size:
        tag, at = _varint(message, at)
        kind = tag & 7
        if kind == _VARINT:
            _, at = _varint(message, at)
        elif kind == _DELIMITED:
            length, start = _varint(message, at)
            at = start + length
            if tag == _PAGES:
                spans.append((start, at))
        elif kind in _WIDTHS:
            at += _WIDTHS[kind]
        else:
            raise DecodeError("a field of an unknown kind")
    if at != size:
        raise DecodeError("the last field is cut off")
    return spans


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    """Return a number of seven bits per byte, and where it ends."""
    number = 0
    for index, byte in enumerate(message[at : at + _MAX_VARINT_BYTES]):
        number |= (byte & 0x7F) << 7 * index
        if byte < 0x80:  # noqa: PLR2004  # the last byte of a number has no top bit
            return number, at + index + 1
    raise DecodeError("a number is cut off")
