"""Type names of describe, in both dialects."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from service.api.exchange import Dialect
from service.api.type_names import describe_schema

FLOAT_ITEM = pa.field("item", pa.float32())


def name_of(kind: pa.DataType, dialect: Dialect) -> Any:
    fields: Any = describe_schema(pa.schema([pa.field("x", kind)]), dialect)["fields"]
    return fields[0]["type"]


@pytest.mark.parametrize(
    ("kind", "lancedb", "namespace"),
    [
        (pa.null(), "null", "null"),
        (pa.bool_(), "bool", "bool"),
        (pa.int8(), "int8", "int8"),
        (pa.uint64(), "uint64", "uint64"),
        (pa.float16(), "halffloat", "float16"),
        (pa.float32(), "float", "float32"),
        (pa.float64(), "double", "float64"),
        (pa.string(), "string", "utf8"),
        (pa.large_string(), "large_string", "large_utf8"),
        (pa.binary(), "binary", "binary"),
        (pa.large_binary(), "large_binary", "large_binary"),
        (pa.date32(), "date32:day", "date32"),
        (pa.date64(), "date64:ms", "date64"),
        (pa.time32("s"), "time32:s", "time32"),
        (pa.time64("ns"), "time64:ns", "time64"),
        (pa.timestamp("us"), "timestamp:us:-", "timestamp"),
        (pa.timestamp("ms", "UTC"), "timestamp:ms:UTC", "timestamp"),
        (pa.timestamp("ns", "+05:30"), "timestamp:ns:+05:30", "timestamp"),
        (pa.duration("ns"), "duration:ns", "duration"),
        (pa.dictionary(pa.int32(), pa.string()), "dict:string:int32:false", "utf8"),
        (pa.json_(), "string", "utf8"),
    ],
    ids=str,
)
def test_types_that_are_one_word(kind: pa.DataType, lancedb: Any, namespace: Any) -> None:
    assert name_of(kind, Dialect.LANCEDB) == {"type": lancedb}
    assert name_of(kind, Dialect.NAMESPACE) == {"type": namespace}


@pytest.mark.parametrize(
    ("kind", "lancedb", "namespace"),
    [
        (
            pa.decimal128(10, 2),
            {"type": "decimal:128:10:2"},
            {"type": "decimal128", "length": 10002},
        ),
        (
            pa.decimal256(40, 3),
            {"type": "decimal:256:40:3"},
            {"type": "decimal256", "length": 40003},
        ),
        (pa.binary(5), *[{"type": "fixed_size_binary", "length": 5}] * 2),
    ],
    ids=str,
)
def test_types_with_numbers(kind: pa.DataType, lancedb: Any, namespace: Any) -> None:
    assert name_of(kind, Dialect.LANCEDB) == lancedb
    assert name_of(kind, Dialect.NAMESPACE) == namespace


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (pa.list_(FLOAT_ITEM), "list"),
        (pa.large_list(FLOAT_ITEM), "large_list"),
        (pa.list_(FLOAT_ITEM, 4), "fixed_size_list"),
        (pa.struct([FLOAT_ITEM]), "struct"),
    ],
    ids=str,
)
def test_nested_types_describe_their_fields(kind: pa.DataType, name: str) -> None:
    for dialect, item in [(Dialect.LANCEDB, "float"), (Dialect.NAMESPACE, "float32")]:
        described = name_of(kind, dialect)
        assert described["type"] == name
        assert described["fields"] == [{"name": "item", "nullable": True, "type": {"type": item}}]
        assert described.get("length") == (4 if name == "fixed_size_list" else None)


def test_a_map_is_a_list_of_pairs_for_lancedb() -> None:
    kind = pa.map_(pa.string(), pa.int64())
    lancedb, namespace = name_of(kind, Dialect.LANCEDB), name_of(kind, Dialect.NAMESPACE)
    assert (lancedb["type"], namespace["type"]) == ("large_list", "map")
    assert namespace["fields"][0]["name"] == "entries"
    for described in (lancedb, namespace):
        entries = described["fields"][0]["type"]
        assert entries["type"] == "struct"
        assert [field["name"] for field in entries["fields"]] == ["key", "value"]


def test_metadata_and_nullability_are_kept() -> None:
    schema = pa.schema(
        [pa.field("x", pa.int8(), nullable=False, metadata={"unit": "m"})], metadata={"k": "v"}
    )
    described = describe_schema(schema, Dialect.NAMESPACE)
    assert described["metadata"] == {"k": "v"}
    assert described["fields"] == [
        {"name": "x", "nullable": False, "type": {"type": "int8"}, "metadata": {"unit": "m"}}
    ]
