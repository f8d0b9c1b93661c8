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
        Files that hold parts of a list or map disagree about where its elements are, or several
        hold the same column.

    Notes
    -----
    Lance table format, section "Schema, fragments and data files"; observed with pylance 14.0.2: a
    struct is valid in a row when any file that holds one of its parts has it valid there, and the
    parts of a file in which it is null are null. A list may get another part after its fragment was
    written: the elements that are there already have it as null.
    """
    if not parts:
        return pa.nulls(num_rows, arrow_type(field))
    if len(parts) == 1 and parts[0].field is field:
        return parts[0].array
    if field.owns_column:
        raise UnsupportedFeatureError(f"column {field.name} lies in several data files")
    if field.logical_type != "struct":
        return _join_lists(field, parts)
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


def _join_lists(field: LanceField, parts: Sequence[Part]) -> pa.Array:
    """Join lists, maps or fixed-size lists of structs: the same elements, other parts of them."""
    arrays = [_without_offset(part.array) for part in parts]
    first = arrays[0]
    own = first.type.num_buffers  # validity, and offsets where there are some
    for other in arrays[1:]:
        if not _same_elements(first, other):
            raise UnsupportedFeatureError(
                f"column {field.name}: data files that hold parts of it disagree about its elements"
            )
    items = [
        Part(part.field.children[0], array.values)
        for part, array in zip(parts, arrays, strict=True)
    ]
    child = join_parts(field.children[0], items, len(first.values))
    return pa.Array.from_buffers(
        arrow_type(field), len(first), first.buffers()[:own], children=[child]
    )


def _without_offset(array: pa.Array) -> pa.Array:
    return array if array.offset == 0 else pa.concat_arrays([array, array.slice(0, 0)])


def _same_elements(first: pa.Array, other: pa.Array) -> bool:
    if not first.is_valid().equals(other.is_valid()):
        return False
    is_fixed = pa.types.is_fixed_size_list(first.type)
    return bool(is_fixed or first.offsets.equals(other.offsets))


def _children(part: Part) -> list[tuple[LanceField, pa.Array]]:
    return list(zip(part.field.children, part.array.flatten(), strict=True))
