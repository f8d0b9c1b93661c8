"""Type strings of the format and their Arrow types."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from lance_core.errors import UnsupportedFeatureError
from lance_core.ids import FieldId
from lance_core.schema.arrow import (
    arrow_type,
    parse_logical_type,
    to_arrow_field,
    to_arrow_schema,
)
from lance_core.schema.field import LanceField
from lance_core.schema.tree import LanceSchema

TYPES = {
    "null": pa.null(),
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "uint64": pa.uint64(),
    "halffloat": pa.float16(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "large_string": pa.large_string(),
    "binary": pa.binary(),
    "large_binary": pa.large_binary(),
    "json": pa.json_(),
    "fixed_size_binary:16": pa.binary(16),
    "decimal:128:25:2": pa.decimal128(25, 2),
    "decimal:256:50:-2": pa.decimal256(50, -2),
    "date32:day": pa.date32(),
    "date64:ms": pa.date64(),
    "time32:s": pa.time32("s"),
    "time64:ns": pa.time64("ns"),
    "timestamp:us:-": pa.timestamp("us"),
    "timestamp:ns:+02:00": pa.timestamp("ns", "+02:00"),
    "duration:ms": pa.duration("ms"),
    "dict:string:int16:false": pa.dictionary(pa.int16(), pa.string()),
    "dict:timestamp:us:-:uint8:false": pa.dictionary(pa.uint8(), pa.timestamp("us")),
    "fixed_size_list:float:128": pa.list_(pa.float32(), 128),
    "fixed_size_list:fixed_size_list:float:3:4": pa.list_(pa.list_(pa.float32(), 3), 4),
    "fixed_size_list:lance.bfloat16:8": pa.list_(pa.binary(2), 8),
}


def field(name: str, logical_type: str, *children: LanceField, number: int = 0) -> LanceField:
    return LanceField(FieldId(number), name, logical_type, nullable=True, children=children)


@pytest.mark.parametrize("logical_type", TYPES)
def test_a_type_string_has_its_arrow_type(logical_type: str) -> None:
    assert parse_logical_type(logical_type) == TYPES[logical_type]


@pytest.mark.parametrize(
    "logical_type",
    [
        "",
        "interval",
        "fixed_size_binary:-1",
        "fixed_size_list:float:x",
        "fixed_size_list:float:99999999999",
        "timestamp:h:-",
        "decimal:128:x:y",
        "dict:string:float:false",
        "fixed_size_list:" * 40 + "float" + ":1" * 40,
    ],
)
def test_a_string_that_names_no_type_is_unsupported(logical_type: str) -> None:
    with pytest.raises(UnsupportedFeatureError):
        parse_logical_type(logical_type)


def test_nested_types_are_built_from_children() -> None:
    key, value = field("key", "string"), field("value", "int32")
    assert arrow_type(field("s", "struct", key)) == pa.struct([("key", pa.string())])
    assert arrow_type(field("l", "list", value)).value_type == pa.int32()
    assert arrow_type(field("l", "large_list.struct", field("item", "struct", key))) == (
        pa.large_list(pa.field("item", pa.struct([("key", pa.string())])))
    )
    mapping = field("m", "map", field("entries", "struct", replace(key, nullable=False), value))
    assert pa.types.is_map(arrow_type(mapping))
    lists = field("f", "fixed_size_list:struct:3", field("item", "struct", key))
    assert arrow_type(lists).list_size == 3


@pytest.mark.parametrize(
    "bad",
    [
        field("c", "list"),
        field("c", "map", field("entries", "string")),
        field("c", "map", field("entries", "struct", field("k", "int8"), field("v", "int8"))),
        field("c", "fixed_size_list:struct:0", field("item", "struct")),
    ],
)
def test_a_nested_type_without_fitting_children_is_unsupported(bad: LanceField) -> None:
    with pytest.raises(UnsupportedFeatureError, match="column 'c'"):
        arrow_type(bad)


def test_a_schema_keeps_names_nullability_and_metadata() -> None:
    noted = LanceField(FieldId(1), "b", "int8", nullable=False, metadata={"k": "v"})
    schema = to_arrow_schema(LanceSchema((field("a", "string"), noted), {"made": "today"}))
    wanted = pa.schema(
        [pa.field("a", pa.string()), pa.field("b", pa.int8(), nullable=False, metadata={"k": "v"})],
        {"made": "today"},
    )
    assert schema.equals(wanted, check_metadata=True)


def test_a_column_of_nulls_is_nullable_whatever_the_file_says() -> None:
    field = LanceField(FieldId(0), "n", "null", nullable=False)
    assert to_arrow_field(field).nullable
