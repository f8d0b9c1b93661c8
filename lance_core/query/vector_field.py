"""Which column a query vector is meant for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.errors import InvalidRequestError, TypeMismatchError
from lance_core.scan.vector_type import vector_type
from lance_core.schema.arrow import arrow_type

if TYPE_CHECKING:
    from lance_core.schema.field import LanceField
    from lance_core.schema.tree import LanceSchema


def find_vector_field(schema: LanceSchema, column: str | None, dimension: int | None) -> LanceField:
    """Return the field of a vector column.

    Parameters
    ----------
    schema
        Schema of the table.
    column
        Path of the column; None = the only vector column of that dimension.
    dimension
        Length of the query vector; None where it is a stored one, which fits by itself.

    Raises
    ------
    UnknownColumnError
        The table has no such column.
    TypeMismatchError
        The column is no vector column or has another dimension, or no column has this one.
    InvalidRequestError
        No column is named and several have the dimension.
    """
    if column is None:
        return _only_field(schema, dimension)
    field = schema.field(column)
    found = vector_type(field)
    if found is None:
        raise TypeMismatchError(
            f'column "{column}" has type {arrow_type(field)}, which holds no vectors'
        )
    if dimension not in {None, found.dimension}:
        raise TypeMismatchError(
            f'column "{column}" has {found.dimension} dimensions, the query vector {dimension};'
            f" give {found.dimension} numbers"
        )
    return field


def _only_field(schema: LanceSchema, dimension: int | None) -> LanceField:
    typed = [(field, vector_type(field)) for field in schema.fields]
    known = [(field, found) for field, found in typed if found is not None]
    # Columns that can be searched decide; others only if there is nothing else.
    known = [(field, found) for field, found in known if found.is_searchable] or known
    if not known:
        raise InvalidRequestError(
            "the table has no vector column (a fixed size list of numbers, or a list of these)"
        )
    fitting = [field for field, found in known if dimension in {None, found.dimension}]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        names = ", ".join(field.name for field in fitting)
        which = "" if dimension is None else f" have {dimension} dimensions"
        raise InvalidRequestError(f"several vector columns{which}; name one: {names}")
    columns = ", ".join(f"{field.name} ({found.dimension})" for field, found in known)
    raise TypeMismatchError(
        f"no vector column has {dimension} dimensions as the query vector has; vector columns are:"
        f" {columns}"
    )
