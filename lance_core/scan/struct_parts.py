"""Nested columns whose parts lie in several data files, put together again."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from lance_core.errors import UnsupportedFeatureError
from lance_core.schema.arrow import arrow_type, to_arrow_field

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance_core.schema.field import LanceField


@dataclass(frozen=True, slots=True)
class Part:
    """What one data file holds of a column: its values, and which of its children they have.

    ``field`` is the schema's own object where the file holds all of it.
    """

    field: LanceField
    array: pa.Array


def join_parts(field: LanceField, parts: Sequence[Part], num_rows: int) -> pa.Array:
    """Return the values of ``field`` from all files that hold a part of it.

    Parameters
    ----------
    field
        The field as the schema has it.
    parts
        What the files hold, in the order of the manifest; none = the column is null everywhere.
    num_rows
        Length of every array.

    Raises
    ------
    UnsupportedFeatureError
        Parts of a list or map lie in several files.

    Notes
    -----
    Lance table format, section "Schema, fragments and data files"; observed with pylance 14.0.2: a
    struct is valid in a row when any file that holds one of its parts has it valid there, and the
    parts of a file in which it is null are null.
    """
    if not parts:
        return pa.nulls(num_rows, arrow_type(field))
    if len(parts) == 1 and parts[0].field is field:
        return parts[0].array
    if field.logical_type != "struct":
        raise UnsupportedFeatureError(f"column {field.name}: its parts lie in several data files")
    # flatten() makes a child null where its struct is
    flattened = [
        {child.name: Part(child, array) for child, array in _children(part)} for part in parts
    ]
    children = [
        join_parts(child, [held[child.name] for held in flattened if child.name in held], num_rows)
        for child in field.children
    ]
    is_valid = reduce(pc.or_, [part.array.is_valid() for part in parts])
    return pa.StructArray.from_arrays(
        children,
        fields=[to_arrow_field(child) for child in field.children],
        mask=pc.invert(is_valid),
    )


def _children(part: Part) -> list[tuple[LanceField, pa.Array]]:
    return list(zip(part.field.children, part.array.flatten(), strict=True))
