"""The messages of a column's pages, kept as the bytes of the file and parsed one at a time.

Pages of compressed text have kilobytes of symbols in theirs: kept as objects, they would take
several times the bytes of the file, and memory would grow with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from google.protobuf.message import DecodeError

from lance_core.encodings.blocks import address_of_bytes
from lance_core.kernels.page_table import DAMAGED, END, LENGTH, NUM_BYTES, START, find_pages
from lance_core.proto import file2_pb2

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray


class PageMessages:
    """The messages of all pages by number, those without rows too; safe to share between threads.

    Parameters
    ----------
    column
        The ``ColumnMetadata`` message, of which nothing is copied.

    Attributes
    ----------
    lengths
        Rows of each page, shape ``(n,)``; -1 where its message is seen to be damaged.
    sizes
        Bytes of the buffers of each page, shape ``(n,)``; 2**60 stands for more.

    Raises
    ------
    DecodeError
        It is no message.
    """

    def __init__(self, column: memoryview) -> None:
        self._column = column
        found = _find_pages(column)
        self._spans = found[:, [START, END]].tolist()
        self.lengths: NDArray[np.int64] = found[:, LENGTH]
        self.sizes: NDArray[np.int64] = found[:, NUM_BYTES]

    def __len__(self) -> int:
        return len(self._spans)

    def __getitem__(self, number: int) -> file2_pb2.ColumnMetadata.Page:
        """Parse the message of a page; raises ``DecodeError`` if it is damaged."""
        start, end = self._spans[number]
        return file2_pb2.ColumnMetadata.Page.FromString(bytes(self._column[start:end]))

    def __iter__(self) -> Iterator[file2_pb2.ColumnMetadata.Page]:
        return (self[number] for number in range(len(self)))


def _find_pages(column: memoryview) -> NDArray[np.int64]:
    """Return where pages lie and what they hold, as `lance_core.kernels.page_table` tells it."""
    address, size = address_of_bytes(column), len(column)
    count = find_pages(address, size, np.empty((0, 4), np.int64))
    if count == DAMAGED:
        raise DecodeError("the message of a column is damaged")
    found = np.empty((count, 4), np.int64)
    find_pages(address, size, found)
    return found
