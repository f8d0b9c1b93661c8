"""Column metadata messages -> pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import DecodeError

from lance_core.encodings.layouts import describe_layout
from lance_core.encodings.page import Loaded, Page
from lance_core.file.footer import FileVersion
from lance_core.proto import encodings21_pb2

if TYPE_CHECKING:
    from lance_core.encodings.page import PageLayout
    from lance_core.encodings.place import Place
    from lance_core.proto import file2_pb2

_LAYOUT_2_1 = "lance.encodings21.PageLayout"


def pages_of(
    column: file2_pb2.ColumnMetadata,
    version: FileVersion,
    place: Place,
    *,
    file_size: int,
    is_bool: bool,
) -> list[Page]:
    """Build the pages of a column.

    Pages are often laid out alike, so that a layout is decoded once per distinct message.

    Raises
    ------
    CorruptFileError
        A buffer lies outside the file or contradicts the page's layout.
    UnsupportedFeatureError
        A page is encoded in a way that is not read.
    """
    layouts: dict[bytes, PageLayout] = {}
    pages: list[Page] = []
    first_row = 0
    for message in column.pages:
        encoding = message.encoding.direct.encoding
        layout = layouts.get(encoding)
        if layout is None:
            layout = _layout(encoding, version, place, is_bool=is_bool)
            layouts[encoding] = layout
        page = Page(
            first_row, message.length, _buffers(message, place, file_size), layout, Loaded()
        )
        layout.check(page, place)
        pages.append(page)
        first_row += message.length
    return pages


def _buffers(
    message: file2_pb2.ColumnMetadata.Page, place: Place, file_size: int
) -> tuple[tuple[int, int], ...]:
    offsets, sizes = message.buffer_offsets, message.buffer_sizes
    if len(offsets) != len(sizes):
        raise place.corrupt(f"{len(offsets)} buffer offsets but {len(sizes)} sizes")
    buffers = tuple(zip(offsets, sizes, strict=True))
    for offset, size in buffers:
        if offset + size > file_size:
            raise place.corrupt(
                f"a buffer of {size} bytes leaves the file of {file_size}", offset=offset
            )
    return buffers


def _layout(encoding: bytes, version: FileVersion, place: Place, *, is_bool: bool) -> PageLayout:
    try:
        wrapped = AnyMessage.FromString(encoding)
        kind = wrapped.type_url.rpartition("/")[2]
        if kind == _LAYOUT_2_1 and version is not FileVersion.V2_0:
            message = encodings21_pb2.PageLayout.FromString(wrapped.value)
            return describe_layout(message, place, is_bool=is_bool)
    except DecodeError:
        raise place.corrupt("the encoding of a page is damaged") from None
    if len(encoding) == 0:
        raise place.unsupported("a page whose encoding is kept elsewhere")
    raise place.unsupported(f"{kind} in a {version.value} file")
