"""Arrow arrays -> one leaf per column of the file: values and levels (file format, section 4.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.encodings.blanks import blanked
from lance_core.encodings.from_arrow import from_arrow, validity_of
from lance_core.encodings.levels import Layer, Layers
from lance_core.encodings.outside import Outside
from lance_core.encodings.values import AllNull
from lance_core.errors import InvalidRequestError, UnsupportedFeatureError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lance_core.encodings.levels import Levels
    from lance_core.encodings.values import Values
    from lance_core.ids import FieldId
    from lance_core.schema.field import LanceField


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """Rows of one column before they are encoded.

    Attributes
    ----------
    values
        One per visible level: an entry whose list is null or empty has none, a null has one.
        ``values.validity`` says which of them are null, for whatever reason; the bytes under a
        null are zero and its string is empty, so that they do not depend on what the array held.
    repetition
        Shape ``(levels,)`` uint16, or None for a column without lists.
    definition
        Shape ``(levels,)`` uint16, or None where nothing is null or empty.
    layers
        What the levels mean; see `Outside`.
    num_rows
        Rows of the table.
    """

    values: Values
    repetition: Levels | None
    definition: Levels | None
    layers: Layers
    num_rows: int

    @property
    def num_levels(self) -> int:
        """Entries of the level streams, or values where there are none."""
        streams = [s for s in (self.repetition, self.definition) if s is not None]
        return len(streams[0]) if len(streams) > 0 else self.values.num_values


def shred(field: LanceField, array: pa.Array) -> Iterator[tuple[FieldId, Leaf]]:
    """Take an array apart into the leaves below its field, one at a time: each is large.

    Parameters
    ----------
    field
        The top-level field; its leaves are those with a column of their own.
    array
        Rows of the field; may be a slice. Values under null structs and lists are left out.

    Yields
    ------
    tuple[FieldId, Leaf]
        With the id of the field that owns the column, in the order of the schema.

    Raises
    ------
    UnsupportedFeatureError
        The type has no form in a file: the error names the column.
    InvalidRequestError
        Nulls where the field allows none.
    """
    return _Walker(field.name).walk(field, array, Outside.of_rows(len(array)))


class _Walker:
    """Goes down from a field to its leaves, with the levels of all that is around."""

    def __init__(self, column: str) -> None:
        self._column = column

    def walk(
        self, field: LanceField, array: pa.Array, outside: Outside
    ) -> Iterator[tuple[FieldId, Leaf]]:
        """Yield the leaves of a field."""
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        kind = array.type
        if field.owns_column:
            yield field.id, self._leaf(field, array, outside)
        elif pa.types.is_struct(kind):
            inside, _ = outside.with_items(validity_of(array), nullable=field.nullable)
            self._check_nullable(field, inside)
            for index, child in enumerate(field.children):
                yield from self.walk(child, array.field(index), inside)
        elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_map(kind):
            inside, elements = outside.with_lists(array)
            self._check_nullable(field, inside)
            yield from self.walk(field.children[0], elements, inside)
        else:
            raise UnsupportedFeatureError(
                f"column {self._column!r}: {kind} cannot be written; store it as lists, or as one "
                "column per part"
            )

    def _leaf(self, field: LanceField, array: pa.Array, outside: Outside) -> Leaf:
        if array.type == pa.struct([]):
            return self._empty_structs(array, outside)
        values = from_arrow(array, self._column)
        inside, valid = outside.with_items(values.validity, nullable=field.nullable)
        self._check_nullable(field, inside)
        own = values.validity
        if valid is not None and (own is None or not np.array_equal(valid, own)):
            values = blanked(values, valid)
        return Leaf(values, *inside.levels(), outside.num_rows)

    def _empty_structs(self, array: pa.StructArray, outside: Outside) -> Leaf:
        """Structs without children keep nothing but their number (file format, section 4.5)."""
        has_levels = outside.repetition is not None or outside.definition is not None
        if has_levels or array.null_count > 0:
            raise UnsupportedFeatureError(
                f"column {self._column!r}: structs without children are not stored in lists, nor "
                "with nulls in or around them; give them a field"
            )
        layers = Layers((Layer.NULLABLE_ITEM,))
        return Leaf(AllNull(outside.num_rows), None, None, layers, outside.num_rows)

    def _check_nullable(self, field: LanceField, inside: Outside) -> None:
        if not field.nullable and inside.has_own_nulls:
            raise InvalidRequestError(
                f"field {field.name!r} of column {self._column!r} holds nulls but is declared "
                "without; declare it nullable or fill them"
            )
