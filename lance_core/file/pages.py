"""Column metadata messages -> pages."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import DecodeError

from lance_core.encodings.layouts import describe_layout, describe_mini_block
from lance_core.encodings.page import Loaded, Page
from lance_core.encodings.v2_0.describe import ArrayDescriber
from lance_core.encodings.v2_0.page import ArrayPage
from lance_core.encodings.version import FileVersion
from lance_core.file.page_list import PageList
from lance_core.proto import encodings20_pb2, encodings21_pb2

if TYPE_CHECKING:
    from collections.abc import Callable

    from lance_core.encodings.mini_block import MiniBlock
    from lance_core.encodings.page import PageLayout
    from lance_core.encodings.place import Place
    from lance_core.errors import CorruptFileError
    from lance_core.file.page_messages import PageMessages
    from lance_core.proto import file2_pb2
    from lance_core.schema.field import LanceField

_ARRAY_ENCODING = "lance.encodings.ArrayEncoding"
_PAGE_LAYOUT = "lance.encodings21.PageLayout"
_MAX_ROWS = 1 << 48
_MAX_KNOWN_BYTES = 1 << 10
"""Longer messages hold a symbol table of their page's own: none is like another."""


class KnownLayouts:
    """The layouts of short messages that were decoded: most columns have those of others."""

    def __init__(self) -> None:
        self._by_message: dict[tuple[str, bytes], PageLayout] = {}
        self._mini_blocks: dict[bytes, MiniBlock] = {}

    def layout(
        self, kind: str, message: bytes, decode: Callable[[bytes], PageLayout]
    ) -> PageLayout:
        """Return the layout of a message; ``kind`` tells types apart that read it differently."""
        if len(message) > _MAX_KNOWN_BYTES:
            return decode(message)
        found = self._by_message.get((kind, message))
        return (
            self._by_message.setdefault((kind, message), decode(message))
            if found is None
            else found
        )

    def mini_block(self, message: encodings21_pb2.MiniBlockLayout, place: Place) -> MiniBlock:
        """Return a layout; pages that differ in nothing but their number of values share it.

        Such are nearly all pages of a column, and describing one costs as much as ten look-ups.
        """
        if message.ByteSize() > _MAX_KNOWN_BYTES:
            return describe_mini_block(message, place)
        num_items = message.num_items
        message.ClearField("num_items")
        key = message.SerializeToString()
        layout = self._mini_blocks.get(key)
        if layout is None:
            layout = describe_mini_block(message, place)
            layout = self._mini_blocks.setdefault(key, layout)
        return layout.with_num_items(num_items)


class PageParser:
    """Describes the pages of one column, which holds ``field``.

    Pages that are laid out alike share one decoded layout, with those of all columns that are
    given the same ``layouts``. ``file_size`` bounds every buffer.
    """

    def __init__(
        self,
        field: LanceField,
        version: FileVersion,
        file_size: int,
        place: Place,
        layouts: KnownLayouts,
    ) -> None:
        self.field = field
        self.version = version
        self.file_size = file_size
        self.place = place
        self._layouts = layouts
        # booleans and dictionaries read some messages in ways of their own
        self._kind = field.logical_type.partition(":")[0]

    def pages_of(self, messages: PageMessages) -> PageList:
        """Return the pages that have rows; each is described when it is first wanted.

        Raises
        ------
        CorruptFileError
            The pages have too many rows, or the message of one is seen to be damaged. What lies
            deeper in it is looked at when the page is described.
        UnsupportedFeatureError
            A page of a 2.0 file is encoded in a way that is not read.
        """
        lengths, all_sizes = self._lengths_and_sizes(messages)
        first_rows = list(accumulate(lengths, initial=0))
        first_items = self._first_items(messages)
        if max(first_rows[-1], first_items[-1]) > _MAX_ROWS:
            raise self.place.corrupt(f"the pages claim {first_rows[-1]} rows")
        filled = [number for number, length in enumerate(lengths) if length > 0]

        def describe(position: int) -> Page:
            number = filled[position]
            try:
                message = messages[number]
            except DecodeError:
                raise self._damaged() from None
            return self._page(message, first_rows[number], first_items[number])

        starts = [first_rows[number] for number in filled]
        sizes = [all_sizes[number] for number in filled]
        bounds = np.array([*starts, first_rows[-1]], np.int64)
        return PageList(bounds, np.array(sizes, np.int64), describe)

    def _lengths_and_sizes(self, messages: PageMessages) -> tuple[list[int], list[int]]:
        """Return the rows of each page, and the bytes of its buffers."""
        if bool((messages.lengths < 0).any()):
            raise self._damaged()
        return messages.lengths.tolist(), np.minimum(messages.sizes, self.file_size).tolist()

    def _damaged(self) -> CorruptFileError:
        return self.place.corrupt("the message of a page is damaged")

    def _first_items(self, messages: PageMessages) -> list[int]:
        """Return how many elements of a child column belong to the pages before each.

        Only lists of 2.0 files have some; there it takes the layouts of all pages to know.
        """
        if self.version is not FileVersion.V2_0:
            return [0] * (len(messages) + 1)
        try:
            layouts = [self._layout_of(message) for message in messages]
        except DecodeError:
            raise self._damaged() from None
        counts = [each.num_items if isinstance(each, ArrayPage) else 0 for each in layouts]
        return list(accumulate(counts, initial=0))

    def _page(
        self, message: file2_pb2.ColumnMetadata.Page, first_row: int, first_item: int
    ) -> Page:
        layout = self._layout_of(message)
        page = Page(first_row, message.length, self._buffers(message), layout, Loaded(), first_item)
        layout.check(page, self.place)
        return page

    def _layout_of(self, message: file2_pb2.ColumnMetadata.Page) -> PageLayout:
        encoding = message.encoding.direct.encoding
        return self._layouts.layout(self._kind, encoding, self._layout)

    def _buffers(self, message: file2_pb2.ColumnMetadata.Page) -> tuple[tuple[int, int], ...]:
        offsets, sizes = message.buffer_offsets, message.buffer_sizes
        if len(offsets) != len(sizes):
            raise self.place.corrupt(f"{len(offsets)} buffer offsets but {len(sizes)} sizes")
        buffers = tuple(zip(offsets, sizes, strict=True))
        for offset, size in buffers:
            if offset + size > self.file_size:
                raise self.place.corrupt(
                    f"a buffer of {size} bytes leaves the file of {self.file_size}", offset=offset
                )
        return buffers

    def _layout(self, encoding: bytes) -> PageLayout:
        if len(encoding) == 0:
            raise self.place.unsupported("a page whose encoding is kept elsewhere")
        try:
            wrapped = AnyMessage.FromString(encoding)
            kind = wrapped.type_url.rpartition("/")[2]
            return self._described(kind, wrapped.value)
        except DecodeError:
            raise self.place.corrupt("the encoding of a page is damaged") from None

    def _described(self, kind: str, value: bytes) -> PageLayout:
        is_v2_0 = self.version is FileVersion.V2_0
        if kind == _PAGE_LAYOUT and not is_v2_0:
            message = encodings21_pb2.PageLayout.FromString(value)
            if message.HasField("mini_block_layout"):
                return self._layouts.mini_block(message.mini_block_layout, self.place)
            is_bool = self.field.logical_type == "bool"
            return describe_layout(message, self.place, is_bool=is_bool)
        if kind == _ARRAY_ENCODING and is_v2_0:
            describer = ArrayDescriber(self.place, self.field.is_dictionary)
            return ArrayPage(describer.describe(encodings20_pb2.ArrayEncoding.FromString(value)))
        raise self.place.unsupported(f"{kind[:80]} in a {self.version.value} file")
