from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from lance_core.errors import UnsupportedFeatureError
from lance_core.ids import FieldId
from lance_core.scan.struct_parts import Part, join_parts
from lance_core.schema.field import LanceField

X = LanceField(FieldId(1), "x", "int64", True)
Y = LanceField(FieldId(2), "y", "string", True)
POINT = LanceField(FieldId(0), "point", "struct", True, children=(X, Y))
OUTER = LanceField(FieldId(9), "outer", "struct", True, children=(POINT,))
LIST = LanceField(FieldId(5), "items", "list", True, children=(replace(X, name="item"),))

ONLY_X = replace(POINT, children=(X,))
ONLY_Y = replace(POINT, children=(Y,))


def structs(values: list[dict[str, object] | None], *fields: pa.Field) -> pa.Array:
    return pa.array(values, pa.struct(fields))


XS = structs([{"x": 1}, None, None, {"x": None}], pa.field("x", pa.int64()))
YS = structs([{"y": "a"}, {"y": "b"}, None, None], pa.field("y", pa.string()))


def test_a_column_that_no_file_holds_is_null() -> None:
    assert join_parts(X, [], 3).equals(pa.nulls(3, pa.int64()))


def test_a_column_that_one_file_holds_is_passed_on() -> None:
    array = pa.array([1, 2])
    assert join_parts(X, [Part(X, array)], 2) is array


def test_a_struct_is_valid_where_any_of_its_files_has_it_valid() -> None:
    joined = join_parts(POINT, [Part(ONLY_X, XS), Part(ONLY_Y, YS)], 4)
    assert joined.to_pylist() == [
        {"x": 1, "y": "a"},
        {"x": None, "y": "b"},
        None,
        {"x": None, "y": None},
    ]


def test_the_order_of_the_children_is_that_of_the_schema() -> None:
    joined = join_parts(POINT, [Part(ONLY_Y, YS), Part(ONLY_X, XS)], 4)
    assert [field.name for field in joined.type] == ["x", "y"]


def test_a_child_that_no_file_holds_is_null() -> None:
    joined = join_parts(POINT, [Part(ONLY_X, XS)], 4)
    assert joined.to_pylist() == [{"x": 1, "y": None}, None, None, {"x": None, "y": None}]


def test_structs_inside_structs_are_joined_too() -> None:
    def wrapped(point: LanceField, array: pa.Array) -> Part:
        return Part(
            replace(OUTER, children=(point,)),
            pa.StructArray.from_arrays([array], names=["point"]),
        )

    joined = join_parts(OUTER, [wrapped(ONLY_X, XS), wrapped(ONLY_Y, YS)], 4)
    assert joined.to_pylist()[1] == {"point": {"x": None, "y": "b"}}
    assert joined.to_pylist()[2] == {"point": None}


def test_lists_in_several_files_are_refused() -> None:
    part = Part(replace(LIST), pa.array([[1]]))
    with pytest.raises(UnsupportedFeatureError, match="items"):
        join_parts(LIST, [part, part], 1)
