"""The levels of one page, peeled layer by layer from the inside (file format, section 4.1)."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from lance_core.encodings.values import AllNull
from lance_core.kernels.levels import peel_items, peel_lists

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lance_core.encodings.levels import Layer, Layers, Levels, PageData
    from lance_core.encodings.place import Place


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
