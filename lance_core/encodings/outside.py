"""What is around a field: the layers of all structs and lists, and their levels so far."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.encodings.from_arrow import offsets_of, validity_of
from lance_core.encodings.levels import Layer, Layers
from lance_core.kernels.shred import expand_lists, mark_nulls, measure_lists, visible_elements

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lance_core.encodings.levels import Levels
    from lance_core.encodings.values import Validity

    _Lists = tuple[Levels, NDArray[np.bool_], NDArray[np.int64], NDArray[np.bool_]]
    """Codes, which of them have slots, offsets and validity, as kernels take them."""

_LISTS = {
    (False, False): Layer.ALL_VALID_LIST,
    (True, False): Layer.NULLABLE_LIST,
    (False, True): Layer.EMPTYABLE_LIST,
    (True, True): Layer.NULL_AND_EMPTY_LIST,
}


def _nullable_if(layer: Layer, may_be_null: bool) -> Layer:
    return Layer.NULLABLE_ITEM if may_be_null else layer


def _visible(values: pa.Array, num_elements: int, lists: _Lists) -> pa.Array:
    """Return the elements of lists that are valid and below nothing null."""
    offsets = lists[2]
    if num_elements == int(offsets[-1] - offsets[0]):
        return values.slice(int(offsets[0]), num_elements)
    visible = np.empty(num_elements, np.int64)
    visible_elements(*lists, visible)
    return values.take(pa.array(visible))


@dataclass(frozen=True, slots=True, eq=False)
class Outside:
    """The levels of all that is around a field, numbered from the outside.

    Attributes
    ----------
    layers
        Outermost first. Each says what occurs in it, whether it comes from there or from a null
        struct outside, and `with_lists` adds what pylance needs.
    repetition
        Shape ``(levels,)`` or None without lists; 0 begins a row, ``k`` continues the ``k``-th
        list from the outside.
    definition
        Shape ``(levels,)`` or None where all are 0; codes as in ``kernels.shred``: the layer at
        position ``i`` has ``2 * i + 1`` for null and ``2 * i + 2`` for empty.
    num_levels, num_rows
        Entries and rows.
    has_own_nulls
        Whether the innermost layer has nulls that nothing around it made.
    may_be_null
        Of each layer, whether it is a struct that is declared nullable, or in such a struct.
    """

    layers: tuple[Layer, ...]
    repetition: Levels | None
    definition: Levels | None
    num_levels: int
    num_rows: int
    has_own_nulls: bool = False
    may_be_null: tuple[bool, ...] = ()

    @classmethod
    def of_rows(cls, num_rows: int) -> Outside:
        """Return the outside of a top-level field: nothing."""
        return cls((), None, None, num_rows, num_rows)

    def with_items(self, validity: Validity, *, nullable: bool) -> tuple[Outside, Validity]:
        """Go into a struct or a leaf.

        Parameters
        ----------
        validity
            Shape ``(slots,)``; which of its slots are valid.
        nullable
            Whether its field allows nulls.

        Returns
        -------
        tuple[Outside, Validity]
            What is around the fields of the struct, and which slots are valid all the way from the
            outside.
        """
        has_slot = self._has_slot()
        nothing_hidden = self.definition is None or not bool(has_slot[1:].any())
        if validity is None and nothing_hidden:
            return self._inside(Layer.ALL_VALID_ITEM, self.definition, nullable, 0), None
        definition = self._codes().copy()
        if validity is None:
            valid = np.ones(int(np.count_nonzero(has_slot[definition])), np.bool_)
        else:
            valid = validity.copy()
        num_nulls = mark_nulls(definition, has_slot, valid, self._null_code)
        layer = Layer.ALL_VALID_ITEM if bool(valid.all()) else Layer.NULLABLE_ITEM
        return self._inside(layer, definition, nullable, num_nulls), valid

    def with_lists(self, array: pa.ListArray | pa.LargeListArray) -> tuple[Outside, pa.Array]:
        """Go into lists or maps.

        Returns
        -------
        tuple[Outside, pa.Array]
            What is around the elements, and those of lists that are valid all the way from the
            outside: a slice, or a copy where other elements lie in between.
        """
        offsets, validity = offsets_of(array), validity_of(array)
        valid = np.ones(len(array), np.bool_) if validity is None else validity
        lists = (self._codes(), self._has_slot(), offsets, valid)
        counts = np.zeros(5, np.int64)
        measure_lists(*lists, counts)
        num_levels, num_elements, num_nulls, num_empties, num_hidden = counts.tolist()
        continues = np.uint16(1 + sum(around.is_list for around in self.layers))
        repetition = np.full(num_levels, continues)
        definition = np.zeros(num_levels, np.uint16)
        before = self.repetition
        if before is None:
            before = np.zeros(self.num_levels, np.uint16)
        expand_lists(before, *lists, self._null_code, repetition, definition)
        # Structs around lists have to be nullable in all pages or in none, and lists in nullable
        # structs have to be nullable: pylance loses count otherwise.
        layer = _LISTS[num_nulls + num_hidden > 0 or self._in_nullable_struct(), num_empties > 0]
        layers = tuple(map(_nullable_if, self.layers, self.may_be_null))
        has_codes = any(around.num_levels > 0 for around in (*layers, layer))
        inside = Outside(
            (*layers, layer),
            repetition,
            definition if has_codes else None,
            num_levels,
            self.num_rows,
            num_nulls > 0,
            (*self.may_be_null, False),
        )
        return inside, _visible(array.values, num_elements, lists)

    def levels(self) -> tuple[Levels | None, Levels | None, Layers]:
        """Return repetition, definition and layers numbered from the inside, as files have them."""
        repetition = None
        if self.repetition is not None:
            num_lists = sum(layer.is_list for layer in self.layers)
            repetition = np.uint16(num_lists) - self.repetition
        layers = Layers(self.layers[::-1])
        if self.definition is None:
            return repetition, None, layers
        numbers = np.zeros(self._null_code, np.uint16)
        handed_out = 0
        for index in range(len(self.layers) - 1, -1, -1):
            layer = self.layers[index]
            if layer.null_level is not None:
                numbers[2 * index + 1] = handed_out + layer.null_level
            if layer.empty_level is not None:
                numbers[2 * index + 2] = handed_out + layer.empty_level
            handed_out += layer.num_levels
        if handed_out == 0:
            return repetition, None, layers
        are_codes = bool(((numbers == 0) | (numbers == np.arange(self._null_code))).all())
        definition = self.definition if are_codes else numbers.take(self.definition)
        return repetition, definition, layers

    @property
    def _null_code(self) -> int:
        """The code for nulls of the next layer."""
        return 2 * len(self.layers) + 1

    def _codes(self) -> Levels:
        if self.definition is None:
            return np.zeros(self.num_levels, np.uint16)
        return self.definition

    def _has_slot(self) -> NDArray[np.bool_]:
        """Say by code which entries have a slot in the arrays inside.

        Those that a null struct cuts off have one, unless a list is in between or no struct is
        null there.
        """
        slots = np.zeros(self._null_code, np.bool_)
        slots[0] = True
        for index in range(len(self.layers) - 1, -1, -1):
            if self.layers[index].is_list:
                break
            slots[2 * index + 1] = self.layers[index].null_level is not None
        return slots

    def _in_nullable_struct(self) -> bool:
        """Whether a struct that may be null is around, with no list in between."""
        return len(self.layers) > 0 and self.may_be_null[-1]

    def _inside(
        self, layer: Layer, definition: Levels | None, nullable: bool, num_nulls: int
    ) -> Outside:
        return replace(
            self,
            layers=(*self.layers, layer),
            definition=definition,
            has_own_nulls=num_nulls > 0,
            may_be_null=(*self.may_be_null, nullable or self._in_nullable_struct()),
        )
