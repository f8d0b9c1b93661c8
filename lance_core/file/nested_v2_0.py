"""Lists and structs of 2.0 files, where every node of the schema has a column of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.encodings.arrow_arrays import validity_bitmap
from lance_core.encodings.nested import leaf_array
from lance_core.encodings.steps import together
from lance_core.encodings.values import FixedWidth, Packed
from lance_core.schema.arrow import arrow_type

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from lance_core.encodings.levels import PageData
    from lance_core.encodings.page import Pieces
    from lance_core.encodings.place import Place
    from lance_core.encodings.steps import ReadSteps
    from lance_core.file.column import Column
    from lance_core.schema.field import LanceField

    ColumnOf = Callable[[LanceField], Column]


_MAX_NARROW_OFFSET = 2**31 - 1


def read_node(field: LanceField, column_of: ColumnOf, pieces: Pieces) -> ReadSteps[pa.Array]:
    """Read rows of a field with all below it.

    Parameters
    ----------
    field
        A leaf, struct or list.
    column_of
        Finds the column of a field.
    pieces
        Ascending, disjoint ranges of the field's rows: of elements, below a list.

    Notes
    -----
    Nulls of structs cannot be represented in 2.0: a struct is always valid.
    """
    kind = arrow_type(field)
    if field.owns_column:
        column = column_of(field)
        pages = yield from column.read(pieces)
        return leaf_array(pages, kind, column.place)
    if pa.types.is_struct(kind):
        reads = [read_node(child, column_of, pieces) for child in field.children]
        children = yield from together(reads)
        num_rows = sum(stop - start for start, stop in pieces)
        return pa.Array.from_buffers(kind, num_rows, [None], children=children)
    column = column_of(field)
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        raise column.place.unsupported(f"{field.logical_type} in a 2.0 file")
    lists = yield from column.read(pieces)
    starts, ends, validity = _bounds(lists, column.place)
    items = yield from read_node(field.children[0], column_of, _spans(starts, ends))
    if pa.types.is_list(kind) and len(items) > _MAX_NARROW_OFFSET:
        raise column.place.unsupported(f"{len(items)} elements of lists in one piece")
    offsets = np.zeros(len(starts) + 1, np.int64 if pa.types.is_large_list(kind) else np.int32)
    np.cumsum(ends - starts, out=offsets[1:])
    buffers = [validity_bitmap(validity), pa.py_buffer(offsets)]
    return pa.Array.from_buffers(kind, len(starts), buffers, children=[items])


def _bounds(
    lists: Sequence[PageData], place: Place
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Return where lists begin and end among all elements, and which are valid."""
    starts, ends, validity = [np.empty(0, np.int64)], [np.empty(0, np.int64)], []
    for page in lists:
        bounds = page.values
        if not isinstance(bounds, Packed):
            raise place.corrupt("a column of lists has no offsets")
        first, last = bounds.children
        if not (isinstance(first, FixedWidth) and isinstance(last, FixedWidth)):
            raise place.corrupt("a column of lists has no offsets")
        starts.append(first.data.view(np.int64))
        ends.append(last.data.view(np.int64))
        valid = bounds.validity
        validity.append(np.ones(bounds.num_values, np.bool_) if valid is None else valid)
    return (
        np.concatenate(starts),
        np.concatenate(ends),
        np.concatenate([*validity, np.empty(0, np.bool_)]),
    )


def _spans(starts: NDArray[np.int64], ends: NDArray[np.int64]) -> Pieces:
    """Join lists whose elements are neighbours."""
    spans: Pieces = []
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        if start == end:
            continue
        if len(spans) > 0 and spans[-1][1] == start:
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((start, end))
    return spans
