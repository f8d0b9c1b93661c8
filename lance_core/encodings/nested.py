"""Levels of leaf columns -> lists, structs and nulls, from the leaves outwards.

The algorithm is that of the file format, section 4.1, over whole pages at a time.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.encodings.arrow_arrays import to_arrow, unified, validity_bitmap
from lance_core.encodings.page_joins import joined_pages
from lance_core.encodings.values import AllNull, with_validity
from lance_core.kernels.levels import peel_items, peel_lists
from lance_core.schema.arrow import arrow_type

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from lance_core.encodings.levels import Layer, Layers, Levels, PageData
    from lance_core.encodings.place import Place
    from lance_core.encodings.values import Validity
    from lance_core.ids import FieldId
    from lance_core.schema.field import LanceField

_MAX_NARROW_OFFSET = 2**31 - 1
_NO_CHILDREN = pa.struct([])


class PageLevels:
    """The levels of one page, peeled layer by layer from the inside."""

    def __init__(self, data: PageData) -> None:
        self._layers = data.layers
        self._is_all_null = isinstance(data.values, AllNull)
        self._repetition = data.repetition
        self._definition = data.definition
        self._num_slots = data.values.num_values
        self._num_peeled = 0
        self._levels_passed = 0
        self._lists_passed = 0
        self._lists_at_level = _lists_at_level(data.layers)

    @property
    def num_left(self) -> int:
        """Layers not peeled yet."""
        return len(self._layers.layers) - self._num_peeled

    def item_layer(self, dimension: int = 1) -> NDArray[np.bool_]:
        """Peel an item layer and return which of its slots are valid.

        Of ``dimension`` neighbouring entries only the first counts: the slots are fixed-size lists
        of as many slots of the layer below.
        """
        layer = self._next()
        self._keep_every(dimension)
        if layer.null_level is None:
            valid = np.ones(self._num_slots, np.bool_)
        elif self._definition is None:
            valid = np.full(self._num_slots, not self._is_all_null)
        elif self._layers.num_lists == 0:  # every entry is a slot
            valid = self._definition <= self._levels_passed
        else:
            valid = np.empty(len(self._definition), np.bool_)
            slots = peel_items(
                _plain(self._definition),
                self._lists_at_level,
                self._lists_passed,
                self._levels_passed,
                valid,
            )
            valid = valid[:slots]
        self._levels_passed += layer.num_levels
        return valid

    def rest(self, place: Place) -> NDArray[np.bool_]:
        """Peel all layers that are left and return which slots are valid in each of them."""
        if self._lists_passed < self._layers.num_lists:
            raise place.unsupported("a part of a list, read by itself")
        valid = self.item_layer()
        while self.num_left > 0:
            valid &= self.item_layer()
        return valid

    def list_layer(self, place: Place) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Peel a list layer and return offsets, shape ``(n + 1,)``, and which lists are valid."""
        layer = self._next()
        if not layer.is_list or self._repetition is None:
            raise place.corrupt("the layers of a page do not fit the type of its column")
        base = self._levels_passed
        self._levels_passed += layer.num_levels
        highest = self._levels_passed + self._null_levels_around()
        levels = np.empty(0, np.uint16) if self._definition is None else self._definition
        begun = int(np.count_nonzero(self._repetition))
        offsets, valid = np.empty(begun + 1, np.int64), np.empty(begun, np.bool_)
        repetition = np.empty(begun, np.uint16)
        definition = np.empty(0 if self._definition is None else begun, np.uint16)
        lists = peel_lists(
            _plain(self._repetition),
            _plain(levels),
            base,
            highest,
            0 if layer.empty_level is None else base + layer.empty_level,
            offsets,
            valid,
            repetition,
            definition,
        )
        self._repetition = repetition
        if self._definition is not None:
            self._definition = definition
        self._lists_passed += 1
        self._num_slots = lists
        return offsets[: lists + 1], valid[:lists]

    def _next(self) -> Layer:
        layer = self._layers.layers[self._num_peeled]
        self._num_peeled += 1
        return layer

    def _null_levels_around(self) -> int:
        """Count the levels of the item layers up to the next list layer."""
        count = 0
        for layer in self._layers.layers[self._num_peeled :]:
            if layer.is_list:
                break
            count += layer.num_levels
        return count

    def _keep_every(self, dimension: int) -> None:
        if dimension == 1:
            return
        self._num_slots //= dimension
        if self._definition is not None:
            self._definition = self._definition[::dimension]


def _plain(levels: Levels) -> Levels:
    """Return levels as kernels take them: contiguous and writable."""
    flags = levels.flags
    return levels if flags.c_contiguous and flags.writeable else levels.copy()


@cache
def _lists_at_level(layers: Layers) -> NDArray[np.int64]:
    """For each level, the list layers up to and with the layer that hands it out.

    The last entry stands for all higher levels, which no layer hands out.
    """
    lists = 0
    table = [0]
    for layer in layers.layers:
        lists += layer.is_list
        table += [lists] * layer.num_levels
    return np.array([*table, lists + 1], np.int64)


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
