"""The messages of pages, parsed one at a time out of the message of their column."""

from __future__ import annotations

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, strategies as st

from lance_core.encodings.place import Place
from lance_core.encodings.version import FileVersion
from lance_core.errors import CorruptFileError
from lance_core.file.page_messages import PageMessages
from lance_core.file.pages import KnownLayouts, PageParser
from lance_core.ids import FieldId
from lance_core.proto.file2_pb2 import ColumnMetadata
from lance_core.schema.field import LanceField

PAGE = ColumnMetadata.Page(length=300, buffer_offsets=[64], buffer_sizes=[8], priority=1 << 40)
LONG_PAGE = ColumnMetadata.Page(length=7, buffer_sizes=list(range(300)))
UNKNOWN = {
    "a number": b"\x98\x06\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    "eight bytes": b"\x99\x06" + b"\x12" * 8,
    "bytes": b"\x9a\x06\x03\x12\x01\x00",
    "four bytes": b"\x9d\x06" + b"\x12" * 4,
}
UNPACKED = b"\x12\x07\x10\x05\x18\x03\x10\x80\x01"
"""A page of three rows with buffers of 5 and 128 bytes, its sizes one by one."""
DAMAGED = {
    "a tag cut off": b"\x80",
    "a number of eleven bytes": b"\x98\x06" + b"\xff" * 10 + b"\x01",
    "a page cut off": b"\x12\x05\x18\x01",
    "four bytes cut off": b"\x9d\x06\x00",
    "a group": b"\x9b\x06\x9c\x06",
}


def messages_of(data: bytes) -> PageMessages:
    return PageMessages(memoryview(data))


@given(st.lists(st.sampled_from([PAGE, LONG_PAGE, ColumnMetadata.Page()]), max_size=9))
def test_pages_are_those_of_the_column_message(pages: list[ColumnMetadata.Page]) -> None:
    column = ColumnMetadata(pages=pages, buffer_offsets=[1, 2], buffer_sizes=[3, 4])
    column.encoding.direct.encoding = b"\x12\x00" * 100
    messages = messages_of(column.SerializeToString())
    assert len(messages) == len(pages)
    assert list(messages) == pages
    assert [messages[number] for number in range(len(pages))] == pages


@given(
    st.lists(
        st.builds(
            ColumnMetadata.Page,
            length=st.integers(0, 1 << 60),
            buffer_offsets=st.lists(st.integers(0, (1 << 64) - 1), max_size=3),
            buffer_sizes=st.lists(st.integers(0, 1 << 50), max_size=9),
            priority=st.integers(0, (1 << 64) - 1),
        ),
        max_size=5,
    )
)
def test_rows_and_sizes_are_those_of_the_messages(pages: list[ColumnMetadata.Page]) -> None:
    messages = messages_of(ColumnMetadata(pages=pages).SerializeToString())
    assert messages.lengths.tolist() == [page.length for page in pages]
    assert messages.sizes.tolist() == [sum(page.buffer_sizes) for page in pages]


def test_sizes_may_stand_one_by_one() -> None:
    messages = messages_of(UNPACKED)
    assert list(messages[0].buffer_sizes) == [5, 128]
    assert (messages.lengths.tolist(), messages.sizes.tolist()) == ([3], [133])


def test_numbers_beyond_all_files_stay_beyond_them() -> None:
    most = (1 << 64) - 1
    page = ColumnMetadata.Page(length=most, buffer_sizes=[most, most])
    messages = messages_of(ColumnMetadata(pages=[page]).SerializeToString())
    assert (messages.lengths.tolist(), messages.sizes.tolist()) == ([1 << 60], [1 << 60])


@given(st.binary(max_size=40))
def test_any_bytes_are_refused_or_read_as_the_library_reads_them(data: bytes) -> None:
    try:
        expected = ColumnMetadata.FromString(data).pages
    except DecodeError:
        return
    try:
        messages = messages_of(data)
    except DecodeError:
        return  # a group, which the library skips
    seen = zip(messages.lengths.tolist(), messages.sizes.tolist(), messages, strict=True)
    for (length, size, message), page in zip(seen, expected, strict=True):
        assert message == page
        assert length in {-1, min(page.length, 1 << 60)}
        assert length == -1 or size == min(sum(page.buffer_sizes), 1 << 60)


@pytest.mark.parametrize("field", UNKNOWN.values(), ids=UNKNOWN)
def test_fields_of_later_releases_are_skipped(field: bytes) -> None:
    page = ColumnMetadata(pages=[PAGE]).SerializeToString()
    data = field + page + field + page
    assert list(messages_of(data)) == list(ColumnMetadata.FromString(data).pages) == [PAGE, PAGE]


@pytest.mark.parametrize("tail", DAMAGED.values(), ids=DAMAGED)
def test_what_is_no_message_is_refused(tail: bytes) -> None:
    with pytest.raises(DecodeError):
        messages_of(ColumnMetadata(pages=[PAGE]).SerializeToString() + tail)


def test_a_damaged_page_is_corrupt() -> None:
    field = LanceField(FieldId(0), "c", "int32", True, {}, ())
    parser = PageParser(field, FileVersion.V2_2, 100, Place("a", "c"), KnownLayouts())
    with pytest.raises(CorruptFileError, match="the message of a page is damaged"):
        parser.pages_of(messages_of(b"\x12\x02\x18\x80"))


@pytest.mark.parametrize("version", [FileVersion.V2_0, FileVersion.V2_2])
def test_a_page_whose_encoding_is_damaged_is_corrupt(version: FileVersion) -> None:
    field = LanceField(FieldId(0), "c", "int32", True, {}, ())
    parser = PageParser(field, version, 100, Place("a", "c"), KnownLayouts())
    with pytest.raises(CorruptFileError, match="the message of a page is damaged"):
        parser.pages_of(messages_of(b"\x12\x05\x18\x03\x22\x01\x80"))[0]
