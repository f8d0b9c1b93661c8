"""The columns that a filter may name, and how names are found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from lance_core.errors import UnknownColumnError
from lance_core.expr.tree import Column, Part
from lance_core.schema.arrow import to_arrow_field
from lance_core.schema.blobs import described
from lance_core.schema.field import LanceField
from lance_core.schema.tree import LanceSchema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance_core.expr.tree import Node

ROW_COLUMNS = ("_rowid", "_rowaddr", "_rowoffset")
"""Columns that every table has, uint64, unless one of its own bears the name."""


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type that values are judged as: no extension, dictionary or view."""
    if isinstance(kind, pa.BaseExtensionType):
        return plain_type(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_binary_view(kind):
        return pa.binary()
    return kind


class Names:
    """Finds columns by the names that a filter writes.

    Parameters
    ----------
    schema
        Of the table.
    others
        Columns beside those of the table.
    """

    def __init__(self, schema: LanceSchema | pa.Schema, others: Sequence[pa.Field]) -> None:
        self._schema = schema
        self._others = {each.name: each for each in others}

    @property
    def all(self) -> tuple[str, ...]:
        """Names of the top-level columns."""
        return (*self._schema.names, *self._others)

    def has(self, name: str) -> bool:
        """Whether a column has this name, up to capitals."""
        return self._top(name, is_exact=False) is not None

    def find(self, parts: Sequence[tuple[str, bool]], place: int) -> Node:
        """Find a column, or a part of one.

        Parameters
        ----------
        parts
            Names from the top, and whether each stood between backticks.
        place
            Of the first.

        Raises
        ------
        UnknownColumnError
            There is none.

        Notes
        -----
        A lone name between backticks and the names of parts have to be exact; capitals of other
        names do not matter if no name is exact (as in pylance 14.0.2).
        """
        (first, is_quoted), *below = parts
        top = self._top(first, is_exact=is_quoted and len(below) == 0)
        if top is None:
            raise self._unknown(parts, place)
        field = self._field(top)
        names = [top]
        for name, _ in below:
            at = field.type.get_field_index(name) if pa.types.is_struct(field.type) else -1
            if at < 0:
                raise _unknown_part(names, name, field.type, place)
            field = field.type.field(at)
            names.append(name)
        path = top if len(names) == 1 else ".".join(map(_quoted, names))
        return Column(path, plain_type(field.type), place)

    def part(self, node: Node, name: str, place: int) -> Node:
        """Return a part of a struct: of a column, a column of its own.

        Raises
        ------
        UnknownColumnError
            The struct has no such part, or is none.
        """
        at = node.type.get_field_index(name) if pa.types.is_struct(node.type) else -1
        if at < 0:
            names = [each.name for each in node.type] if pa.types.is_struct(node.type) else []
            raise UnknownColumnError(name, names, where=f"the filter at character {place}")
        kind = plain_type(node.type.field(at).type)
        if isinstance(node, Column):
            is_top = node.path in self.all
            above = _quoted(node.path) if is_top else node.path
            return Column(f"{above}.{_quoted(name)}", kind, place)
        return Part(node, name, kind, place)

    def _top(self, name: str, *, is_exact: bool) -> str | None:
        if self._own(name) is not None:
            return name
        names = (*self.all, *ROW_COLUMNS)
        if name in names:
            return name
        if is_exact:
            return None
        folded = name.lower()
        return next((each for each in names if each.lower() == folded), None)

    def _field(self, top: str) -> pa.Field:
        if top in self._others:
            return self._others[top]
        own = self._own(top)
        if own is None:
            return pa.field(top, pa.uint64())
        return to_arrow_field(described(own)) if isinstance(own, LanceField) else own

    def _own(self, name: str) -> LanceField | pa.Field | None:
        """Return the first column of the table that has exactly this name."""
        if isinstance(self._schema, LanceSchema):
            return self._schema.top(name)
        places = self._schema.get_all_field_indices(name)
        return self._schema.field(places[0]) if len(places) > 0 else None

    def _unknown(self, parts: Sequence[tuple[str, bool]], place: int) -> UnknownColumnError:
        path = ".".join(name for name, _ in parts)
        where = f"the filter at character {place}"
        return UnknownColumnError(path, self.all, where=where)


def _unknown_part(
    above: Sequence[str], name: str, kind: pa.DataType, place: int
) -> UnknownColumnError:
    path = ".".join(map(_quoted, above))
    inside = [f"{path}.{_quoted(each.name)}" for each in kind] if pa.types.is_struct(kind) else []
    where = f"the filter at character {place}, where capitals of parts matter"
    return UnknownColumnError(f"{path}.{name}", inside, where=where)


def _quoted(name: str) -> str:
    is_bare = "." not in name and "`" not in name
    return name if is_bare else f"`{name.replace('`', '``')}`"
