from __future__ import annotations

import pytest

from lance_core.ids import FieldId
from lance_core.scan.vector_type import VectorType, vector_type
from lance_core.schema.field import LanceField


def field(logical_type: str, *children: LanceField) -> LanceField:
    return LanceField(FieldId(len(children)), "v", logical_type, nullable=True, children=children)


@pytest.mark.parametrize(
    ("logical_type", "element", "is_searchable", "row_bytes"),
    [
        ("halffloat", "float16", True, 16),
        ("float", "float32", True, 16),
        ("double", "float64", True, 16),
        ("uint8", "uint8", True, 4),
        ("int8", "int8", False, 16),
        ("int64", "int64", False, 16),
        ("lance.bfloat16", "bfloat16", False, 16),
    ],
)
def test_fixed_size_lists_of_numbers_are_vectors(
    logical_type: str, element: str, is_searchable: bool, row_bytes: int
) -> None:
    own = field(f"fixed_size_list:{logical_type}:4")
    alone = VectorType(4, element, is_searchable=is_searchable, is_multi=False)
    listed = VectorType(4, element, is_searchable=is_searchable, is_multi=True)
    assert vector_type(own) == alone
    assert vector_type(field("list", own)) == listed
    assert (alone.vector_bytes, alone.row_bytes) == (row_bytes, row_bytes)
    assert (listed.vector_bytes, listed.row_bytes) == (row_bytes, 16)


@pytest.mark.parametrize(
    "other",
    [
        field("float"),
        field("fixed_size_list:string:4"),
        field("list", field("float")),
        field("list", field("list", field("fixed_size_list:float:4"))),
        field("large_list", field("fixed_size_list:float:4")),
        field("struct", field("fixed_size_list:float:4")),
    ],
    ids=str,
)
def test_other_columns_hold_no_vectors(other: LanceField) -> None:
    assert vector_type(other) is None


@pytest.mark.parametrize(
    ("element", "is_ready"), [("float32", True), ("uint8", True), ("float16", False)]
)
def test_what_is_stored_as_kernels_take_it_can_be_used_in_place(
    element: str, is_ready: bool
) -> None:
    assert VectorType(4, element, is_searchable=True, is_multi=False).is_stored_ready == is_ready
    assert not VectorType(4, element, is_searchable=True, is_multi=True).is_stored_ready
