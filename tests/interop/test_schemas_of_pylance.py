"""Our schema messages are those that pylance writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from lance.file import LanceFileWriter

from lance_core.file.reader import LanceFileReader
from lance_core.io.mapped_store import MappedStore
from lance_core.io.scheduler import RangeScheduler
from lance_core.proto import file_pb2
from lance_core.schema.from_arrow import schema_from_arrow
from lance_core.schema.to_proto import schema_message

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

_STRUCT = pa.struct([pa.field("x", pa.int8(), nullable=False, metadata={"k": "v"})])
_BFLOAT16 = {"ARROW:extension:name": "lance.bfloat16"}
FIELDS = [
    *(
        pa.field(str(kind), kind)
        for kind in (
            pa.null(), pa.bool_(), pa.int32(), pa.uint64(), pa.float16(), pa.float64(),
            pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.binary(7),
            pa.string_view(), pa.binary_view(), pa.decimal128(10, 2), pa.decimal256(50, 2),
            pa.date32(), pa.date64(), pa.time32("ms"), pa.time64("us"), pa.timestamp("ns"),
            pa.timestamp("us", "Europe/Berlin"), pa.duration("ms"),
            pa.list_(pa.int8()), pa.large_list(pa.string()), pa.list_(_STRUCT), _STRUCT,
            pa.struct([]), pa.map_(pa.string(), pa.int8()),
            pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.uint32(), pa.int64()),
            pa.list_(pa.dictionary(pa.int8(), pa.large_string())),
            pa.list_(pa.float32(), 4), pa.list_(pa.list_(pa.float32(), 3), 4),
            pa.list_(pa.binary(4), 2), pa.list_(pa.bool_(), 8), pa.list_(pa.decimal128(5, 1), 2),
            pa.list_(pa.timestamp("us", "UTC"), 2), pa.json_(), pa.uuid(), pa.list_(pa.uuid()),
            pa.fixed_shape_tensor(pa.float32(), [2, 2]), pa.list_(pa.string_view()),
        )
    ),
    pa.field("packed", _STRUCT, metadata={"lance-encoding:packed": "true"}),
    pa.field("bfloat16", pa.binary(2), metadata=_BFLOAT16),
    pa.field("bfloat16s", pa.list_(pa.field("item", pa.binary(2), metadata=_BFLOAT16), 4)),
    pa.field("key", pa.int32(), nullable=False, metadata={
        "lance-schema:unenforced-primary-key": "true",
        "lance-schema:unenforced-primary-key:position": "2",
        "lance-schema:unenforced-clustering-key:position": "3",
    }),
]  # fmt: skip


def messages_of_pylance(schema: pa.Schema, folder: Path) -> file_pb2.Schema:
    with LanceFileWriter(str(folder / "f.lance"), schema, version="2.2"):
        pass
    reader = LanceFileReader.open(RangeScheduler(MappedStore(folder)), "f.lance")
    return file_pb2.FileDescriptor.FromString(bytes(reader.global_buffer(0))).schema


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
def test_messages_are_those_of_pylance(field: pa.Field, tmp_path: Path) -> None:
    column = field.with_name("column")
    schema = pa.schema([pa.field("first", pa.int8()), column], {"k": "v"})
    assert schema_message(schema_from_arrow(schema)) == messages_of_pylance(schema, tmp_path)
