"""The bytes of the container: alignment, tables, footer."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from lance_core.encodings.version import FileVersion
from lance_core.file.container_writer import ContainerWriter, FilePage
from lance_core.file.metadata import FileMetadata, read_metadata
from lance_core.ids import ColumnIndex
from lance_core.io.memory_store import MemoryStore
from lance_core.io.scheduler import RangeScheduler
from lance_core.proto import encodings21_pb2, file_pb2

PATH = "file.lance"
SCHEMA = file_pb2.Schema(
    fields=[file_pb2.Field(name="a", id=0, parent_id=-1, logical_type="int8")],
    metadata={"k": b"v"},
)
LAYOUT = encodings21_pb2.PageLayout(constant_layout=encodings21_pb2.ConstantLayout())


def page(*buffers: bytes, length: int = 1, column: int = 0) -> FilePage:
    return FilePage(ColumnIndex(column), buffers, LAYOUT, length)


def written(*pages: FilePage, version: FileVersion = FileVersion.V2_2) -> bytes:
    store = MemoryStore()
    container = ContainerWriter(store.open_sink(PATH), version, 2)
    for each in pages:
        container.add_page(each)
    container.add_global_buffer(np.arange(5, dtype=np.uint8))
    size = container.finish(SCHEMA, 3)
    data = bytes(store.get_range(PATH, 0, store.head(PATH).size))
    assert size == len(data)
    return data


def opened(data: bytes) -> FileMetadata:
    store = MemoryStore()
    store.put(PATH, data)
    return read_metadata(RangeScheduler(store), PATH, None)


def test_every_buffer_begins_at_a_multiple_of_64() -> None:
    metadata = opened(written(page(b"abc", b"", b"d" * 64), page(b"e")))
    pages = metadata.column(0).pages
    offsets = [offset for each in pages for offset in each.buffer_offsets]
    offsets += [start for start, _ in metadata.buffers]
    assert [offset % 64 for offset in offsets] == [0] * len(offsets)
    assert list(pages[0].buffer_sizes) == [3, 0, 64]


def test_buffers_are_where_the_pages_say() -> None:
    data = written(page(b"abc"), page(b"de", b"fgh"))
    for message, expected in zip(
        opened(data).column(0).pages, [[b"abc"], [b"de", b"fgh"]], strict=True
    ):
        spans = zip(message.buffer_offsets, message.buffer_sizes, strict=True)
        assert [data[start : start + size] for start, size in spans] == expected


def test_pages_say_their_length_and_first_row() -> None:
    metadata = opened(written(page(length=5), page(length=7, column=1), page(length=2)))
    assert [(each.length, each.priority) for each in metadata.column(0).pages] == [(5, 0), (2, 5)]
    assert [(each.length, each.priority) for each in metadata.column(1).pages] == [(7, 0)]


def test_global_buffers_count_from_one_behind_the_descriptor() -> None:
    data = written()
    start, end = opened(data).buffers[1]
    assert data[start:end] == bytes(range(5))


def test_the_descriptor_holds_schema_and_rows() -> None:
    metadata = opened(written())
    assert (metadata.num_rows, metadata.schema.names) == (3, ("a",))
    assert dict(metadata.schema.metadata) == {"k": "v"}


@pytest.mark.parametrize(
    ("version", "numbers"),
    [(FileVersion.V2_0, (0, 3)), (FileVersion.V2_1, (2, 1)), (FileVersion.V2_2, (2, 2))],
)
def test_the_footer_ends_the_file(version: FileVersion, numbers: tuple[int, int]) -> None:
    assert struct.unpack("<HH4s", written(version=version)[-8:]) == (*numbers, b"LANC")


def test_messages_name_their_type_behind_a_slash() -> None:
    encoding = opened(written(page())).column(0).pages[0].encoding.direct.encoding
    assert b"\x0a\x1d/lance.encodings21.PageLayout" in encoding
