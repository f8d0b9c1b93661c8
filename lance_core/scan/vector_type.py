"""What kind of vectors a column holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.schema.arrow import arrow_type

if TYPE_CHECKING:
    from lance_core.schema.field import LanceField

_SEARCHABLE = {
    pa.float16(): "float16",
    pa.float32(): "float32",
    pa.float64(): "float64",
    pa.uint8(): "uint8",
}
_BFLOAT16 = "lance.bfloat16"
LIST_BYTES = 16
"""Size of what stands for a list of vectors in memory: where the first lies, and their number."""


@dataclass(frozen=True, slots=True)
class VectorType:
    """The vectors of a column.

    Parameters
    ----------
    dimension
        Numbers of a vector.
    element
        Type of the numbers by name, such as ``float32`` or ``uint8``.
    is_searchable
        Whether search supports that type.
    is_multi
        Whether a row holds a list of vectors rather than one.
    """

    dimension: int
    element: str
    is_searchable: bool
    is_multi: bool

    @property
    def are_bytes(self) -> bool:
        """Whether the numbers are bytes, whose bits are compared; others are floats."""
        return self.element == "uint8"

    @property
    def memory_type(self) -> np.dtype[np.generic]:
        """What vectors in memory are made of: bytes, or float32 for all floats."""
        return np.dtype(np.uint8 if self.are_bytes else np.float32)

    @property
    def vector_bytes(self) -> int:
        """Size of a vector in memory."""
        return self.dimension * self.memory_type.itemsize

    @property
    def row_bytes(self) -> int:
        """Size of a row in memory, see `lance_core.scan.vector_arrays`."""
        return LIST_BYTES if self.is_multi else self.vector_bytes

    @property
    def is_stored_ready(self) -> bool:
        """Whether stored rows have the form that they have in memory."""
        return not self.is_multi and self.element in {"float32", "uint8"}


def vector_type(field: LanceField) -> VectorType | None:
    """Return what vectors a column holds, None when it holds none.

    Vectors are fixed size lists of numbers, or lists of such lists.

    Notes
    -----
    Vector index page, 7.5. Numbers of other types than floats and uint8 are refused by pylance
    14.0.2 too, bfloat16 among them.
    """
    column_type = arrow_type(field)
    is_multi = pa.types.is_list(column_type)
    if is_multi:
        (field,) = field.children
        column_type = column_type.value_type
    if not pa.types.is_fixed_size_list(column_type):
        return None
    value_type = column_type.value_type
    is_bfloat16 = _BFLOAT16 in field.logical_type
    if not (is_bfloat16 or pa.types.is_floating(value_type) or pa.types.is_integer(value_type)):
        return None
    return VectorType(
        dimension=column_type.list_size,
        element="bfloat16" if is_bfloat16 else _SEARCHABLE.get(value_type, str(value_type)),
        is_searchable=value_type in _SEARCHABLE,
        is_multi=is_multi,
    )
