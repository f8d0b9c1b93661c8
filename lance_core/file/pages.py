"""Column metadata messages -> pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import DecodeError

from lance_core.encodings.layouts import describe_layout, describe_mini_block
from lance_core.encodings.page import Loaded, Page
from lance_core.encodings.v2_0.describe import ArrayDescriber
from lance_core.encodings.v2_0.page import ArrayPage
from lance_core.file.footer import FileVersion
from lance_core.proto import encodings20_pb2, encodings21_pb2

if TYPE_CHECKING:
    from lance_core.encodings.mini_block import MiniBlock
    from lance_core.encodings.page import PageLayout
    from lance_core.encodings.place import Place
    from lance_core.proto import file2_pb2
    from lance_core.schema.field import LanceField

_ARRAY_ENCODING = "lance.encodings.ArrayEncoding"
_PAGE_LAYOUT = "lance.encodings21.PageLayout"
_MAX_ROWS = 1 << 48


@dataclass(frozen=True, slots=True, eq=False)
class PageParser:
    """Builds the pages of one column, which holds ``field``.

    ``file_size`` bounds every buffer.
    """

    field: LanceField
    version: FileVersion
    file_size: int
    place: Place

    def pages_of(self, column: file2_pb2.ColumnMetadata) -> list[Page]:
        """Build all pages; those that are laid out alike share one decoded layout.

        Raises
        ------
        CorruptFileError
            A buffer lies outside the file or contradicts the page's layout.
        UnsupportedFeatureError
            A page is encoded in a way that is not read.
        """
        layouts: dict[bytes, PageLayout] = {}
        mini_blocks: dict[bytes, MiniBlock] = {}
        pages: list[Page] = []
        first_row = first_item = 0
        for message in column.pages:
            encoding = message.encoding.direct.encoding
            layout = layouts.get(encoding)
            if layout is None:
                layout = layouts[encoding] = self._layout(encoding, mini_blocks)
            page = Page(
                first_row, message.length, self._buffers(message), layout, Loaded(), first_item
            )
            layout.check(page, self.place)
            pages.append(page)
            first_row += message.length
            first_item += layout.num_items if isinstance(layout, ArrayPage) else 0
            if max(first_row, first_item) > _MAX_ROWS:
                raise self.place.corrupt(f"the pages claim {first_row} rows")
        return pages

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

    def _layout(self, encoding: bytes, mini_blocks: dict[bytes, MiniBlock]) -> PageLayout:
        if len(encoding) == 0:
            raise self.place.unsupported("a page whose encoding is kept elsewhere")
        try:
            wrapped = AnyMessage.FromString(encoding)
            kind = wrapped.type_url.rpartition("/")[2]
            return self._described(kind, wrapped.value, mini_blocks)
        except DecodeError:
            raise self.place.corrupt("the encoding of a page is damaged") from None

    def _described(
        self, kind: str, value: bytes, mini_blocks: dict[bytes, MiniBlock]
    ) -> PageLayout:
        is_v2_0 = self.version is FileVersion.V2_0
        if kind == _PAGE_LAYOUT and not is_v2_0:
            message = encodings21_pb2.PageLayout.FromString(value)
            if message.HasField("mini_block_layout"):
                return self._mini_block(message.mini_block_layout, mini_blocks)
            is_bool = self.field.logical_type == "bool"
            return describe_layout(message, self.place, is_bool=is_bool)
        if kind == _ARRAY_ENCODING and is_v2_0:
            describer = ArrayDescriber(self.place, self.field.logical_type.startswith("dict:"))
            return ArrayPage(describer.describe(encodings20_pb2.ArrayEncoding.FromString(value)))
        raise self.place.unsupported(f"{kind[:80]} in a {self.version.value} file")

    def _mini_block(
        self, message: encodings21_pb2.MiniBlockLayout, known: dict[bytes, MiniBlock]
    ) -> MiniBlock:
        """Describe a layout; pages that differ in nothing but their number of values share it.

        Such are nearly all pages of a column, and describing one costs as much as ten look-ups.
        """
        num_items = message.num_items
        message.ClearField("num_items")
        key = message.SerializeToString()
        layout = known.get(key)
        if layout is None:
            layout = known[key] = describe_mini_block(message, self.place)
        return layout.with_num_items(num_items)
