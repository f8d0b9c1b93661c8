"""What batches must look like, and JSON at any depth."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lance_core.encodings import jsonb
from lance_core.encodings.place import Place
from lance_core.errors import InvalidRequestError, TypeMismatchError
from lance_core.file.stored_arrays import BatchChecker, stored_array
from lance_core.schema.from_arrow import schema_from_arrow

SCHEMA = pa.schema({"a": pa.int32(), "s": pa.struct({"x": pa.string()})})
TEXTS = ['{"k":1}', None, "2"]
PLACE = Place("f", "c")


def check(schema: pa.Schema, expected: pa.Schema = SCHEMA) -> None:
    checker = BatchChecker(schema_from_arrow(expected))
    checker.check(schema)
    checker.check(schema)


def test_columns_may_come_in_any_order() -> None:
    check(pa.schema([SCHEMA.field("s"), SCHEMA.field("a")]))


def test_views_and_plain_strings_are_one_type() -> None:
    check(pa.schema({"a": pa.int32(), "s": pa.struct({"x": pa.string_view()})}))


def test_extension_types_and_their_storage_are_one_type() -> None:
    check(pa.schema({"u": pa.binary(16)}), pa.schema({"u": pa.uuid()}))


def test_nullability_is_left_to_the_values() -> None:
    check(pa.schema([SCHEMA.field("a").with_nullable(False), SCHEMA.field("s")]))


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (pa.schema({"a": pa.int32()}), r"lacks \['s'\]"),
        (SCHEMA.append(pa.field("z", pa.int8())), r"has \['z'\] besides"),
    ],
    ids=["missing", "unknown"],
)
def test_other_columns_are_named(schema: pa.Schema, message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        check(schema)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"a": pa.int64(), "s": SCHEMA.field("s").type}, "'a' is int32 in the file and int64"),
        ({"a": pa.int32(), "s": pa.struct({"x": pa.binary()})}, "struct<x: binary> in the batch"),
        ({"a": pa.int32(), "s": pa.struct({"y": pa.string()})}, "struct<y: string> in the batch"),
    ],
    ids=["number", "nested", "name"],
)
def test_another_type_is_named(schema: dict[str, pa.DataType], message: str) -> None:
    with pytest.raises(TypeMismatchError, match=message):
        check(pa.schema(schema))


def stored(array: pa.Array) -> pa.Array:
    (field,) = schema_from_arrow(pa.schema([pa.field("c", array.type)])).fields
    return stored_array(array, field)


def text_of(documents: pa.Array) -> list[str | None]:
    return jsonb.to_text(documents, PLACE).to_pylist()  # type: ignore[no-any-return]  # of pyarrow


def json_of(texts: list[str | None]) -> pa.Array:
    return pa.array(texts, pa.json_())


def test_json_text_becomes_documents() -> None:
    found = stored(json_of(TEXTS))
    assert found.type == pa.large_binary()
    assert text_of(found) == TEXTS


def test_documents_are_kept_as_they_are() -> None:
    documents = jsonb.from_text(pa.array(TEXTS), "c")
    field = pa.field("c", documents.type, metadata={"ARROW:extension:name": "lance.json"})
    (tree,) = schema_from_arrow(pa.schema([field])).fields
    assert stored_array(documents, tree).equals(documents)


def test_json_in_structs_becomes_documents() -> None:
    fields = [pa.field("j", pa.json_()), pa.field("i", pa.int64())]
    array = pa.StructArray.from_arrays(
        [json_of(TEXTS), pa.array([1, 2, 3])], fields=fields, mask=pa.array([False, False, True])
    )
    found = stored(array.slice(1))
    assert found.is_null().to_pylist() == [False, True]
    assert text_of(found.field("j")) == TEXTS[1:]
    assert found.field("i").to_pylist() == [2, 3]


@pytest.mark.parametrize("kind", [pa.ListArray, pa.LargeListArray], ids=["narrow", "wide"])
def test_json_in_lists_becomes_documents(kind: type[pa.ListArray]) -> None:
    array = kind.from_arrays([0, 1, None, 3], json_of(TEXTS))
    found = stored(array.slice(1))
    assert found.is_null().to_pylist() == [not array[1].is_valid, array[2].as_py() is None]
    assert text_of(found.values)[-1] == "2"
    assert len(found) == 2


def test_other_columns_are_not_touched() -> None:
    array = pa.array([{"x": [1, 2]}])
    assert stored(array) is array


def test_a_text_that_is_no_json_is_named() -> None:
    with pytest.raises(InvalidRequestError, match="column 'c', row 1"):
        stored(json_of(["1", "{"]))
