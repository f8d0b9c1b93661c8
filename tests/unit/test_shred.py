"""Arrow arrays into levels and values: the worked examples of the format page, and refusals."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_core.encodings.levels import Layer
from lance_core.encodings.shred import shred
from lance_core.encodings.values import AllNull, FixedWidth, Variable
from lance_core.errors import InvalidRequestError, UnsupportedFeatureError
from lance_core.ids import FieldId
from lance_core.schema.field import LanceField

ITEM = LanceField(FieldId(1), "item", "int32", nullable=True)
LISTS = LanceField(FieldId(0), "c", "list", nullable=True, children=(ITEM,))
NUMBER = LanceField(FieldId(0), "c", "int32", nullable=True)
EXAMPLE = [[1, 2], None, [], [3, None], [4], [], [5, 6, 7], [8]]


def numbers(values: object) -> object:
    assert isinstance(values, FixedWidth)
    return values.data.view(np.int32).tolist()


def test_a_column_without_nulls_has_no_levels_and_is_not_copied() -> None:
    array = pa.array([1, 2, 3], pa.int32())
    leaf = dict(shred(NUMBER, array))[FieldId(0)]
    assert leaf.repetition is None
    assert leaf.definition is None
    assert leaf.layers.layers == (Layer.ALL_VALID_ITEM,)
    assert isinstance(leaf.values, FixedWidth)
    assert leaf.values.data.__array_interface__["data"][0] == array.buffers()[1].address


def test_bytes_under_nulls_are_zero() -> None:
    bitmap = pa.py_buffer(np.packbits([True, False, True], bitorder="little"))
    data = pa.py_buffer(np.array([1, 77, 3], np.int32))
    leaf = dict(shred(NUMBER, pa.Array.from_buffers(pa.int32(), 3, [bitmap, data])))[FieldId(0)]
    assert numbers(leaf.values) == [1, 0, 3]
    assert leaf.definition is not None
    assert leaf.definition.tolist() == [0, 1, 0]


def test_lists_become_the_levels_of_the_format_page() -> None:
    leaf = dict(shred(LISTS, pa.array(EXAMPLE, pa.list_(pa.int32()))))[FieldId(1)]
    assert leaf.layers.layers == (Layer.NULLABLE_ITEM, Layer.NULL_AND_EMPTY_LIST)
    assert leaf.repetition is not None
    assert leaf.definition is not None
    assert leaf.repetition.tolist() == [1, 0, 1, 1, 1, 0, 1, 1, 1, 0, 0, 1]
    assert leaf.definition.tolist() == [0, 0, 2, 3, 0, 1, 0, 3, 0, 0, 0, 0]
    assert numbers(leaf.values) == [1, 2, 3, 0, 4, 5, 6, 7, 8]


def test_a_slice_keeps_only_its_elements() -> None:
    leaf = dict(shred(LISTS, pa.array(EXAMPLE, pa.list_(pa.int32())).slice(6)))[FieldId(1)]
    assert leaf.layers.layers == (Layer.ALL_VALID_ITEM, Layer.ALL_VALID_LIST)
    assert leaf.definition is None
    assert numbers(leaf.values) == [5, 6, 7, 8]


def test_elements_under_null_lists_are_left_out() -> None:
    items = pa.array([1, 2, 3, 4], pa.int32())
    lists = pa.ListArray.from_arrays(
        pa.array([0, 1, 3, 4]), items, mask=pa.array([False, True, False])
    )
    leaf = dict(shred(LISTS, lists))[FieldId(1)]
    assert numbers(leaf.values) == [1, 4]


def test_a_null_struct_hides_the_lists_in_it() -> None:
    kind = pa.struct([("l", pa.list_(pa.int32()))])
    items = LanceField(FieldId(2), "item", "int32", nullable=True)
    inner = LanceField(FieldId(1), "l", "list", nullable=True, children=(items,))
    field = LanceField(FieldId(0), "c", "struct", nullable=True, children=(inner,))
    array = pa.StructArray.from_arrays(
        [pa.array([[1], [2], [3]], kind.field(0).type)],
        fields=list(kind),
        mask=pa.array([False, True, False]),
    )
    leaf = dict(shred(field, array))[FieldId(2)]
    assert leaf.layers.layers == (Layer.ALL_VALID_ITEM, Layer.NULLABLE_LIST, Layer.NULLABLE_ITEM)
    assert leaf.definition is not None
    assert leaf.definition.tolist() == [0, 2, 0]
    assert numbers(leaf.values) == [1, 3]


def test_strings_under_null_structs_are_empty() -> None:
    child = LanceField(FieldId(1), "s", "string", nullable=True)
    field = LanceField(FieldId(0), "c", "struct", nullable=True, children=(child,))
    array = pa.StructArray.from_arrays(
        [pa.array(["a", "hidden", "b"])], ["s"], mask=pa.array([False, True, False])
    )
    leaf = dict(shred(field, array))[FieldId(1)]
    assert isinstance(leaf.values, Variable)
    assert leaf.values.data.tobytes() == b"ab"
    assert leaf.values.validity is not None
    assert leaf.values.validity.tolist() == [True, False, True]


def test_a_null_column_has_no_values() -> None:
    field = LanceField(FieldId(0), "c", "null", nullable=True)
    leaf = dict(shred(field, pa.nulls(3)))[FieldId(0)]
    assert isinstance(leaf.values, AllNull)
    assert leaf.layers.layers == (Layer.NULLABLE_ITEM,)


def test_nulls_in_a_field_without_are_refused() -> None:
    field = LanceField(FieldId(0), "c", "int32", nullable=False)
    with pytest.raises(InvalidRequestError, match="'c' holds nulls"):
        list(shred(field, pa.array([1, None], pa.int32())))


def test_fixed_size_lists_of_structs_are_refused() -> None:
    child = LanceField(FieldId(2), "x", "int32", nullable=True)
    item = LanceField(FieldId(1), "item", "struct", nullable=True, children=(child,))
    field = LanceField(FieldId(0), "c", "fixed_size_list:struct:2", nullable=True, children=(item,))
    array = pa.array([[{"x": 1}, {"x": 2}]], pa.list_(pa.struct([("x", pa.int32())]), 2))
    with pytest.raises(UnsupportedFeatureError, match="column 'c'"):
        list(shred(field, array))


def test_nulls_in_a_child_of_a_packed_struct_are_refused() -> None:
    child = LanceField(FieldId(1), "x", "int32", nullable=True)
    packed = {"lance-encoding:packed": "true"}
    field = LanceField(FieldId(0), "c", "struct", nullable=True, metadata=packed, children=(child,))
    with pytest.raises(UnsupportedFeatureError, match=r"'c\.x'"):
        list(shred(field, pa.array([{"x": None}], pa.struct([("x", pa.int32())]))))
