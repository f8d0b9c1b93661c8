"""Which columns a read returns: names given by a user, resolved against a schema."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_core.errors import InvalidRequestError, UnknownColumnError
from lance_core.schema.arrow import to_arrow_field
from lance_core.schema.blobs import described
from lance_core.schema.field import LanceField

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance_core.schema.tree import LanceSchema


class PseudoColumn(enum.Enum):
    """Columns, all uint64, that no file stores; the value is their name.

    ``ROW_ID`` equals ``ROW_ADDRESS`` on tables without stable row ids. ``ROW_OFFSET`` is the rank
    of a row among the live rows of the table, in scan order. The two versions are 1 for every row
    of a table without stable row ids (observed with pylance 14.0.2).
    """

    ROW_ID = "_rowid"
    ROW_ADDRESS = "_rowaddr"
    ROW_OFFSET = "_rowoffset"
    ROW_CREATED_AT_VERSION = "_row_created_at_version"
    ROW_LAST_UPDATED_AT_VERSION = "_row_last_updated_at_version"


PSEUDO_COLUMNS = {column.value: column for column in PseudoColumn}
"""Pseudo columns by name."""

OWN_ADDRESS = ""
"""Column of row addresses for our own use; nobody can ask for a column without a name."""


@dataclass(frozen=True)
class ProjectedColumn:
    """One column of the result: its name, and the field or pseudo column it shows.

    ``way`` leads from the field to the part that is shown, if that has no column of its own.
    """

    name: str
    source: LanceField | PseudoColumn
    way: tuple[str, ...] = ()

    @property
    def arrow_field(self) -> pa.Field:
        """Name, type, nullability and metadata in the result."""
        if isinstance(self.source, PseudoColumn):
            return pa.field(self.name, pa.uint64())
        return to_arrow_field(self.source.below(self.way)).with_name(self.name)


@dataclass(frozen=True)
class Projection:
    """The columns of a result, in order."""

    columns: tuple[ProjectedColumn, ...]

    @cached_property
    def schema(self) -> pa.Schema:
        """Arrow schema of the result."""
        return pa.schema([column.arrow_field for column in self.columns])

    @cached_property
    def fields(self) -> tuple[LanceField, ...]:
        """Fields to read from files, in the order of the result."""
        return tuple(
            column.source for column in self.columns if isinstance(column.source, LanceField)
        )

    @cached_property
    def pseudo_columns(self) -> frozenset[PseudoColumn]:
        """Pseudo columns of the result."""
        return frozenset(
            column.source for column in self.columns if isinstance(column.source, PseudoColumn)
        )


def resolve_projection(
    schema: LanceSchema, columns: Sequence[str] | None = None, *, with_row_id: bool = False
) -> Projection:
    """Resolve the column names of a request.

    Parameters
    ----------
    schema
        Schema of the table.
    columns
        Names of columns, of parts of nested ones (``point.x``) and of pseudo columns; None = all
        columns of the table. Order is kept.
    with_row_id
        Add ``_rowid`` at the end unless it is among ``columns``.

    Raises
    ------
    UnknownColumnError
        The table has no such column; names are case-sensitive.
    InvalidRequestError
        A column is named twice.

    Notes
    -----
    A table column that bears the name of a pseudo column hides it.
    """
    names = list(schema.names if columns is None else columns)
    if with_row_id and PseudoColumn.ROW_ID.value not in names:
        names.append(PseudoColumn.ROW_ID.value)
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidRequestError(f'column "{twice}" is asked for twice')
    return Projection(tuple(_find(schema, name) for name in names))


def with_address(projection: Projection) -> Projection:
    """Return a projection with the addresses of the rows behind its columns, as ``OWN_ADDRESS``.

    A table may have columns of any other name, so of those of the pseudo columns too.
    """
    address = ProjectedColumn(OWN_ADDRESS, PseudoColumn.ROW_ADDRESS)
    return Projection((*projection.columns, address))


def _find(schema: LanceSchema, name: str) -> ProjectedColumn:
    try:
        field, way = schema.stored_field(name)
        return ProjectedColumn(name, described(field), way)
    except UnknownColumnError:
        pseudo = PSEUDO_COLUMNS.get(name)
        if pseudo is not None:
            return ProjectedColumn(name, pseudo)
        raise UnknownColumnError(name, schema.names) from None
