"""Levels of leaf columns -> lists, structs and nulls, from the leaves outwards.

The algorithm is that of the file format, section 4.1, over whole pages at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.encodings.arrow_arrays import to_arrow, unified, validity_bitmap
from lance_core.encodings.page_joins import joined_pages
from lance_core.encodings.page_levels import PageLevels
from lance_core.encodings.values import with_validity
from lance_core.schema.arrow import arrow_type

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from lance_core.encodings.levels import PageData
    from lance_core.encodings.place import Place
    from lance_core.encodings.values import Validity
    from lance_core.ids import FieldId
    from lance_core.schema.field import LanceField

_MAX_NARROW_OFFSET = 2**31 - 1
_NO_CHILDREN = pa.struct([])


def leaf_array(pages: Sequence[PageData], kind: pa.DataType, place: Place) -> pa.Array:
    """Build a column that is neither list nor struct.

    It may be one part of a struct, read by itself: a row whose struct is null is null then.
    """
    if any(page.layers.layers[0].is_list for page in pages):
        raise place.corrupt("the layers of a page do not fit the type of its column")
    levels = [PageLevels(page) for page in pages]
    return _within_structs(_leaf(pages, levels, kind, place), levels, place)


def _within_structs(array: pa.Array, levels: Sequence[PageLevels], place: Place) -> pa.Array:
    """Make rows null whose struct is null, for a part of a struct that is read by itself."""
    left = {level.num_left for level in levels}
    if left <= {0}:
        return array
    if len(left) > 1:
        raise place.corrupt("the pages of a column have different numbers of layers")
    valid = np.concatenate([level.rest(place) for level in levels])
    if len(valid) != len(array):
        raise place.corrupt("a struct and its parts have different numbers of rows")
    if bool(valid.all()):
        return array
    return array.take(pa.array(np.arange(len(array)), mask=~valid))


def _leaf(
    pages: Sequence[PageData],
    levels: Sequence[PageLevels],
    kind: pa.DataType,
    place: Place,
) -> pa.Array:
    if kind == _NO_CHILDREN:
        # a struct without children keeps a page of nulls for valid rows (file format, 4.5)
        num_values = sum(page.values.num_values for page in pages)
        _ = [level.item_layer() for level in levels]
        return pa.Array.from_buffers(kind, num_values, [None], children=[])
    arrays = []
    for page, level in zip(pages, levels, strict=True):
        validity = level.item_layer()
        values = page.values
        if page.definition is not None:
            values = with_validity(values, validity)
        arrays.append(to_arrow(values, kind, place))
    return concatenate(arrays, kind)


def concatenate(arrays: Sequence[pa.Array], kind: pa.DataType) -> pa.Array:
    """Join arrays of one type; dictionaries are unified."""
    if len(arrays) == 0:
        return pa.nulls(0, kind)
    if len(arrays) == 1:
        return arrays[0]
    if pa.types.is_dictionary(kind):
        return pa.chunked_array(unified(arrays), kind).combine_chunks()
    return pa.concat_arrays(arrays)


def nested_array(
    field: LanceField, leaves: Mapping[FieldId, Sequence[PageData]], place: Place
) -> pa.Array:
    """Build a column of lists and structs from the pages of all its leaf columns.

    Raises
    ------
    CorruptFileError
        The levels of the leaves contradict one another or the type.
    """
    leaves = {leaf: joined_pages(pages, place) for leaf, pages in leaves.items()}
    levels = {leaf: [PageLevels(page) for page in pages] for leaf, pages in leaves.items()}
    depth = _depths(field)
    for leaf, layers in depth.items():
        if any(level.num_left < layers for level in levels[leaf]):
            raise place.corrupt("the layers of a page do not fit the type of its column")
    array, below = _Builder(leaves, levels, place).build(field)
    return array if len(below) == 0 else _within_structs(array, below[0], place)


def _depths(field: LanceField) -> dict[FieldId, int]:
    """Return the number of layers of each leaf below ``field`` that keeps them all."""
    if field.owns_column:
        # the levels of structs around a struct without children are not kept (file format, 4.5)
        return {} if arrow_type(field) == _NO_CHILDREN else {field.id: 1}
    return {leaf: depth + 1 for child in field.children for leaf, depth in _depths(child).items()}


class _Builder:
    """Builds arrays bottom-up; peels the levels of every leaf on the way."""

    def __init__(
        self,
        leaves: Mapping[FieldId, Sequence[PageData]],
        levels: Mapping[FieldId, Sequence[PageLevels]],
        place: Place,
    ) -> None:
        self._leaves = leaves
        self._levels = levels
        self._place = place

    def build(self, field: LanceField) -> tuple[pa.Array, list[Sequence[PageLevels]]]:
        """Return the array of a field and the levels of all leaves below it."""
        kind = arrow_type(field)
        if field.owns_column:
            levels = self._levels[field.id]
            array = _leaf(self._leaves[field.id], levels, kind, self._place)
            return array, [] if kind == _NO_CHILDREN else [levels]
        children, below = [], []
        for child in field.children:
            array, of_child = self.build(child)
            children.append(array)
            below += of_child
        if pa.types.is_struct(kind):
            return self._struct(kind, children, below), below
        if pa.types.is_fixed_size_list(kind):
            return self._fixed_size_list(kind, children[0], below), below
        return self._list(kind, children[0], below), below

    def _struct(
        self, kind: pa.DataType, children: list[pa.Array], below: list[Sequence[PageLevels]]
    ) -> pa.Array:
        validity = self._item_validity(below, 1)
        if len(below) == 0:  # all children are structs without children: all rows are valid
            validity = np.ones(len(children[0]), np.bool_)
        if any(len(child) != len(validity) for child in children):
            raise self._place.corrupt("the children of a struct have different numbers of rows")
        return pa.Array.from_buffers(kind, len(validity), [_bitmap(validity)], children=children)

    def _fixed_size_list(
        self, kind: pa.DataType, child: pa.Array, below: list[Sequence[PageLevels]]
    ) -> pa.Array:
        validity = self._item_validity(below, kind.list_size)
        if len(child) != len(validity) * kind.list_size:
            raise self._place.corrupt("a fixed-size list has too many or too few elements")
        return pa.Array.from_buffers(kind, len(validity), [_bitmap(validity)], children=[child])

    def _item_validity(
        self, below: list[Sequence[PageLevels]], dimension: int
    ) -> NDArray[np.bool_]:
        all_of = [[level.item_layer(dimension) for level in levels] for levels in below]
        return np.concatenate(all_of[0]) if len(all_of[0]) > 0 else np.empty(0, np.bool_)

    def _list(
        self, kind: pa.DataType, child: pa.Array, below: list[Sequence[PageLevels]]
    ) -> pa.Array:
        if len(below) == 0:
            raise self._place.unsupported("lists of structs without children")
        all_of = [[level.list_layer(self._place) for level in levels] for levels in below]
        offsets, validity = _join_lists(all_of[0])
        if int(offsets[-1]) != len(child):
            raise self._place.corrupt("lists and their elements do not add up")
        is_large = pa.types.is_large_list(kind)
        if not is_large and int(offsets[-1]) > _MAX_NARROW_OFFSET:
            raise self._place.unsupported("more than 2^31 elements in one piece")
        typed = offsets if is_large else offsets.astype(np.int32)
        buffers = [_bitmap(validity), pa.py_buffer(typed)]
        return pa.Array.from_buffers(kind, len(validity), buffers, children=[child])


def _bitmap(validity: NDArray[np.bool_]) -> pa.Buffer | None:
    some: Validity = None if bool(validity.all()) else validity
    return validity_bitmap(some)


def _join_lists(
    parts: Sequence[tuple[NDArray[np.int64], NDArray[np.bool_]]],
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Join the lists of several pages: the offsets of each page begin at 0."""
    offsets = [np.zeros(1, np.int64)]
    end = 0
    for part, _ in parts:
        offsets.append(part[1:] + end)
        end += int(part[-1])
    validity = [valid for _, valid in parts]
    return np.concatenate(offsets), np.concatenate([*validity, np.empty(0, np.bool_)])
