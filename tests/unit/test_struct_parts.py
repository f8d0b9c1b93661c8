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
LIST = LanceField(FieldId(5), "items", "list", True, children=(replace(POINT, name="item"),))

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


def points(*lists: list[dict[str, object] | None] | None) -> pa.Array:
    """Return lists of structs of ``x`` or ``y``, whichever the first element has."""
    first = next(each[0] for each in lists if each)
    name = "x" if first is not None and "x" in first else "y"
    kind = pa.int64() if name == "x" else pa.string()
    return pa.array(lists, pa.list_(pa.field("item", pa.struct([pa.field(name, kind)]))))


def lists_of(point: LanceField, array: pa.Array) -> Part:
    return Part(replace(LIST, children=(replace(point, name="item"),)), array)


def test_lists_whose_elements_lie_in_several_files_are_joined() -> None:
    xs = points([{"x": 1}, None], None, [], [{"x": 4}])
    ys = points([{"y": "a"}, {"y": "b"}], None, [], [{"y": None}])
    joined = join_parts(LIST, [lists_of(ONLY_X, xs), lists_of(ONLY_Y, ys)], 4)
    joined.validate(full=True)
    assert joined.to_pylist() == [
        [{"x": 1, "y": "a"}, {"x": None, "y": "b"}],
        None,
        [],
        [{"x": 4, "y": None}],
    ]


def test_elements_of_lists_have_parts_that_no_file_holds_as_null() -> None:
    xs = points([{"x": 1}], [{"x": 2}, {"x": 3}], None).slice(1)
    joined = join_parts(LIST, [lists_of(ONLY_X, xs)], 2)
    assert joined.to_pylist() == [[{"x": 2, "y": None}, {"x": 3, "y": None}], None]


def test_lists_that_disagree_about_their_elements_are_refused() -> None:
    xs, ys = points([{"x": 1}], []), points([], [{"y": "a"}])
    with pytest.raises(UnsupportedFeatureError, match="items"):
        join_parts(LIST, [lists_of(ONLY_X, xs), lists_of(ONLY_Y, ys)], 2)


def test_a_column_in_several_files_is_refused() -> None:
    part = Part(X, pa.array([1]))
    with pytest.raises(UnsupportedFeatureError, match="several"):
        join_parts(X, [part, part], 1)
