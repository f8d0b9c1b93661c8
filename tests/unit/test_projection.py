from __future__ import annotations

import pyarrow as pa
import pytest

from lance_core.errors import InvalidRequestError, UnknownColumnError
from lance_core.ids import FieldId
from lance_core.scan.projection import Projection, PseudoColumn, resolve_projection
from lance_core.schema.field import LanceField
from lance_core.schema.tree import LanceSchema


def leaf(number: int, name: str, kind: str, **metadata: str) -> LanceField:
    return LanceField(FieldId(number), name, kind, True, metadata)


SCHEMA = LanceSchema(
    (
        leaf(0, "id", "int64", unit="m"),
        LanceField(FieldId(1), "point", "struct", True, children=(leaf(2, "x", "double"),)),
        leaf(3, "a.b", "string"),
    )
)


def names(projection: Projection) -> list[str]:
    return [column.name for column in projection.columns]


def test_no_list_means_all_columns() -> None:
    assert names(resolve_projection(SCHEMA)) == ["id", "point", "a.b"]


def test_an_empty_list_means_no_column() -> None:
    assert resolve_projection(SCHEMA, []).schema == pa.schema([])


def test_the_order_of_the_request_is_kept() -> None:
    assert names(resolve_projection(SCHEMA, ["a.b", "id"])) == ["a.b", "id"]


def test_types_nullability_and_metadata_come_from_the_table() -> None:
    (field,) = resolve_projection(SCHEMA, ["id"]).schema
    assert field.equals(pa.field("id", pa.int64(), metadata={"unit": "m"}), check_metadata=True)


def test_a_part_of_a_nested_column_is_named_by_its_path() -> None:
    projection = resolve_projection(SCHEMA, ["point.x"])
    assert projection.schema == pa.schema([pa.field("point.x", pa.float64())])
    assert projection.fields[0].id == 2


def test_a_dot_in_a_top_level_name_is_no_path() -> None:
    assert resolve_projection(SCHEMA, ["a.b"]).fields[0].id == 3


@pytest.mark.parametrize("column", list(PseudoColumn))
def test_pseudo_columns_are_uint64_and_never_null(column: PseudoColumn) -> None:
    projection = resolve_projection(SCHEMA, ["id", column.value])
    assert projection.schema.field(column.value).type == pa.uint64()
    assert projection.pseudo_columns == {column}
    assert [field.name for field in projection.fields] == ["id"]


def test_the_row_id_comes_last_when_it_is_asked_for_on_the_side() -> None:
    assert names(resolve_projection(SCHEMA, ["id"], with_row_id=True)) == ["id", "_rowid"]


def test_the_row_id_stays_where_it_is_listed() -> None:
    projection = resolve_projection(SCHEMA, ["_rowid", "id"], with_row_id=True)
    assert names(projection) == ["_rowid", "id"]


def test_a_stored_column_hides_a_pseudo_column_of_its_name() -> None:
    schema = LanceSchema((leaf(0, "_rowid", "string"),))
    assert resolve_projection(schema, ["_rowid"]).schema.field("_rowid").type == pa.string()


@pytest.mark.parametrize("name", ["ID", "point.y", "id.x", "", "_distance"])
def test_an_unknown_column_is_refused_with_the_names_that_exist(name: str) -> None:
    with pytest.raises(UnknownColumnError, match=r"columns are: id, point, a\.b"):
        resolve_projection(SCHEMA, [name])


def test_a_column_named_twice_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match='"id" is asked for twice'):
        resolve_projection(SCHEMA, ["id", "point", "id"])
