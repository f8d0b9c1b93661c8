"""Arrays of any nesting survive being shredded and built again, and being cut into rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given, strategies as st

from lance_core.encodings.levels import PageData
from lance_core.encodings.nested import leaf_array, nested_array
from lance_core.encodings.place import Place
from lance_core.encodings.shred import Leaf, shred
from lance_core.encodings.split_rows import split_rows
from lance_core.schema.arrow import arrow_type
from lance_core.schema.from_arrow import schema_from_arrow
from tests.lance_strategies import lance_cases
from tests.same_values import assert_same

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from lance_core.ids import FieldId
    from lance_core.schema.field import LanceField
    from tests.lance_cases import LanceCase

PLACE = Place("file.lance", "c")


def built(field: LanceField, pages: dict[FieldId, list[Leaf]]) -> pa.Array:
    """Build the array of a field from its leaves, each in pieces."""
    data = {
        field_id: [
            PageData(
                leaf.values, leaf.repetition, leaf.definition, leaf.layers, leaf.num_rows
            ).checked(PLACE)
            for leaf in leaves
        ]
        for field_id, leaves in pages.items()
    }
    if field.owns_column:
        return leaf_array(data[field.id], arrow_type(field), PLACE)
    return nested_array(field, data, PLACE)


def columns(case: LanceCase) -> Sequence[tuple[LanceField, pa.Array]]:
    """Return fields and arrays of a case."""
    fields = schema_from_arrow(case.table.schema).fields
    arrays = [column.combine_chunks() for column in case.table.columns]
    return list(zip(fields, arrays, strict=True))


@given(lance_cases("2.2"))
def test_shredded_arrays_can_be_built_again(case: LanceCase) -> None:
    for field, array in columns(case):
        leaves = dict(shred(field, array))
        found = built(field, {field_id: [leaf] for field_id, leaf in leaves.items()})
        found.validate(full=True)
        assert_same(found, array)


@given(lance_cases("2.2"), st.integers(1, 1000))
def test_leaves_cut_between_rows_hold_the_same_rows(case: LanceCase, max_levels: int) -> None:
    for field, array in columns(case):
        leaves = {
            field_id: [leaf] if leaf.repetition is None else list(split_rows(leaf, max_levels))
            for field_id, leaf in shred(field, array)
        }
        if len(array) > 0:
            assert_same(built(field, leaves), array)
        for pieces in leaves.values():
            assert sum(piece.num_rows for piece in pieces) == len(array)
            assert all(
                piece.num_levels <= max_levels or piece.num_rows == 1
                for piece in pieces
                if piece.repetition is not None
            )
