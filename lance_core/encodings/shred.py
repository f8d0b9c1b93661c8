"""Arrow arrays -> one leaf per column of the file: values and levels (file format, section 4.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from lance_core.encodings.levels import Layers, Levels
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
        What the levels mean; only what occurs in these rows takes definition levels.
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


def shred(field: LanceField, array: pa.Array) -> Mapping[FieldId, Leaf]:
    """Take an array apart into the leaves below its field.

    Parameters
    ----------
    field
        The top-level field; its leaves are those with a column of their own.
    array
        Rows of the field; may be a slice. Values under null structs and lists are left out.

    Returns
    -------
    Mapping[FieldId, Leaf]
        By the id of the field that owns the column, in the order of the schema.

    Raises
    ------
    UnsupportedFeatureError
        The type has no form in a file: the error names the column.
    InvalidRequestError
        Nulls where the field allows none.
    """
    raise NotImplementedError
