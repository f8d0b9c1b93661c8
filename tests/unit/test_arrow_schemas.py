"""From Arrow schemas to field trees and messages, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lance_core.errors import InvalidRequestError, UnsupportedFeatureError
from lance_core.proto import file_pb2
from lance_core.schema.arrow import to_arrow_schema
from lance_core.schema.from_arrow import schema_from_arrow
from lance_core.schema.from_proto import schema_from_messages
from lance_core.schema.to_proto import schema_message

if TYPE_CHECKING:
    from lance_core.schema.tree import LanceSchema

PLAIN_TYPES = [
    pa.binary(0),
    pa.bool_(),
    pa.int8(),
    pa.uint64(),
    pa.float16(),
    pa.float32(),
    pa.float64(),
    pa.string(),
    pa.large_string(),
    pa.binary(),
    pa.large_binary(),
    pa.binary(7),
    pa.decimal128(10, 2),
    pa.decimal256(50, -2),
    pa.date32(),
    pa.date64(),
    pa.time32("s"),
    pa.time64("ns"),
    pa.timestamp("us"),
    pa.timestamp("ns", "+02:00"),
    pa.timestamp("ms", "Europe/Berlin"),
    pa.duration("s"),
    pa.dictionary(pa.int16(), pa.string()),
    pa.list_(pa.float32(), 128),
    pa.list_(pa.list_(pa.float32(), 3), 4),
    pa.list_(pa.decimal128(5, 1), 2),
    pa.list_(pa.field("element", pa.int8(), nullable=False)),
    pa.large_list(pa.struct([pa.field("x", pa.int8(), metadata={"k": "v"})])),
    pa.struct([]),
    pa.struct([pa.field("x", pa.int8(), nullable=False), pa.field("y", pa.list_(pa.string()))]),
    pa.map_(pa.string(), pa.list_(pa.int8())),
]

REFUSED_TYPES = [
    pa.month_day_nano_interval(),
    pa.run_end_encoded(pa.int32(), pa.int8()),
    pa.list_view(pa.int8()),
    pa.dense_union([pa.field("a", pa.int8())]),
    pa.decimal32(5, 1),
    pa.decimal64(5, 1),
    pa.map_(pa.string(), pa.int8(), keys_sorted=True),
    pa.list_(pa.list_(pa.int8()), 2),
    pa.list_(pa.string(), 2),
    pa.list_(pa.struct([pa.field("x", pa.int8())]), 2),
    pa.list_(pa.dictionary(pa.int8(), pa.string()), 2),
    pa.list_(pa.int8(), 0),
    pa.dictionary(pa.int8(), pa.timestamp("us")),
    pa.dictionary(pa.int8(), pa.list_(pa.int8())),
]


def read_back(schema: LanceSchema) -> LanceSchema:
    message = file_pb2.Schema.FromString(schema_message(schema).SerializeToString())
    return schema_from_messages(message.fields, message.metadata, path="f")


@pytest.mark.parametrize("kind", PLAIN_TYPES, ids=str)
def test_a_type_survives_the_way_to_the_file_and_back(kind: pa.DataType) -> None:
    schema = pa.schema([pa.field("a", kind), pa.field("b", kind, nullable=False)], {"k": "v"})
    tree = schema_from_arrow(schema)
    assert read_back(tree) == tree
    assert to_arrow_schema(tree).equals(schema, check_metadata=True)


@pytest.mark.parametrize("kind", REFUSED_TYPES, ids=str)
def test_a_type_that_files_cannot_hold_is_refused_by_column(kind: pa.DataType) -> None:
    nested = pa.struct([pa.field("inner", kind)])
    with pytest.raises(UnsupportedFeatureError, match=r"outer\.inner.* not stored"):
        schema_from_arrow(pa.schema({"outer": nested}))


def test_ids_count_the_fields_in_pre_order() -> None:
    inner = pa.struct({"x": pa.int8(), "y": pa.list_(pa.string())})
    tree = schema_from_arrow(pa.schema({"a": pa.int8(), "s": inner, "z": pa.int8()}))
    assert [(node.id, node.name) for node in tree.walk()] == [
        (0, "a"),
        (1, "s"),
        (2, "x"),
        (3, "y"),
        (4, "item"),
        (5, "z"),
    ]


@pytest.mark.parametrize(
    ("kind", "stored"), [(pa.string_view(), "string"), (pa.binary_view(), "binary")]
)
def test_views_become_what_they_view(kind: pa.DataType, stored: str) -> None:
    assert schema_from_arrow(pa.schema({"a": kind})).fields[0].logical_type == stored


@pytest.mark.parametrize("kind", [pa.json_(), pa.json_(pa.large_string())], ids=["utf8", "large"])
def test_json_text_becomes_stored_json(kind: pa.DataType) -> None:
    (field,) = schema_from_arrow(pa.schema({"a": kind})).fields
    assert field.logical_type == "json"
    assert field.metadata["ARROW:extension:name"] == "lance.json"


def test_json_in_another_type_is_refused() -> None:
    field = pa.field("a", pa.int8(), metadata={"ARROW:extension:name": "arrow.json"})
    with pytest.raises(InvalidRequestError, match=r"'a': arrow\.json is kept in string"):
        schema_from_arrow(pa.schema([field]))


def test_an_extension_type_is_its_storage_and_metadata() -> None:
    (field,) = schema_from_arrow(
        pa.schema({"a": pa.fixed_shape_tensor(pa.float32(), [2, 2])})
    ).fields
    assert field.logical_type == "fixed_size_list:float:4"
    assert field.metadata["ARROW:extension:name"] == "arrow.fixed_shape_tensor"
    assert field.metadata["ARROW:extension:metadata"] == '{"shape":[2,2]}'


def test_lists_of_bfloat16_have_a_type_of_their_own() -> None:
    element = pa.field("item", pa.binary(2), metadata={"ARROW:extension:name": "lance.bfloat16"})
    (field,) = schema_from_arrow(pa.schema({"a": pa.list_(element, 4)})).fields
    assert field.logical_type == "fixed_size_list:lance.bfloat16:4"


def test_a_column_of_nulls_is_one() -> None:
    assert schema_from_arrow(pa.schema({"a": pa.null()})).fields[0].logical_type == "null"


def test_a_column_with_a_dot_in_its_name_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match=r"'a\.b' has a dot"):
        schema_from_arrow(pa.schema({"a.b": pa.int8()}))


def test_two_columns_of_one_name_are_refused() -> None:
    schema = pa.schema([pa.field("a", pa.int8()), pa.field("a", pa.int8())])
    with pytest.raises(InvalidRequestError, match="two fields named 'a'"):
        schema_from_arrow(schema)


def test_metadata_that_is_no_text_is_refused() -> None:
    field = pa.field("a", pa.int8(), metadata={"k": b"\xff"})
    with pytest.raises(InvalidRequestError, match="column 'a' is not UTF-8"):
        schema_from_arrow(pa.schema([field]))


def test_bottomless_nesting_is_refused() -> None:
    kind = pa.int8()
    for _ in range(70):
        kind = pa.list_(kind)
    with pytest.raises(UnsupportedFeatureError, match="nested deeper"):
        schema_from_arrow(pa.schema({"a": kind}))


def test_a_key_position_that_is_no_number_is_refused() -> None:
    key = "lance-schema:unenforced-primary-key:position"
    tree = schema_from_arrow(pa.schema([pa.field("a", pa.int8(), metadata={key: "-1"})]))
    with pytest.raises(InvalidRequestError, match="column 'a'"):
        schema_message(tree)
