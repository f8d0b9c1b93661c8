"""Repetition and definition levels: where lists begin, and what is null or empty.

Layers are listed innermost first. Definition levels are handed out from the inside: 0 is a valid
value, then each layer takes the next 0, 1 or 2 numbers (file format, section 4.1; the reverse of
Parquet). A repetition level equal to the number of list layers begins a row.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from lance_core.encodings.rows import expand_ranges

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from lance_core.encodings.place import Place
    from lance_core.encodings.values import Values

    Levels = NDArray[np.uint16]

_MAX_LAYERS = 128


class Layer(IntEnum):
    """Meaning of one layer, by its number in the format."""

    ALL_VALID_ITEM = 1
    ALL_VALID_LIST = 2
    NULLABLE_ITEM = 3
    NULLABLE_LIST = 4
    EMPTYABLE_LIST = 5
    NULL_AND_EMPTY_LIST = 6

    @property
    def is_list(self) -> bool:
        """Whether the layer is a list or map, not an item."""
        return self not in {Layer.ALL_VALID_ITEM, Layer.NULLABLE_ITEM}

    @property
    def num_levels(self) -> int:
        """Definition levels that the layer takes."""
        return _NUM_LEVELS[self]

    @property
    def null_level(self) -> int | None:
        """Which of its levels, from 1, marks a null."""
        takes_null = {Layer.NULLABLE_ITEM, Layer.NULLABLE_LIST, Layer.NULL_AND_EMPTY_LIST}
        return 1 if self in takes_null else None

    @property
    def empty_level(self) -> int | None:
        """Which of its levels, from 1, marks an empty list."""
        return {Layer.EMPTYABLE_LIST: 1, Layer.NULL_AND_EMPTY_LIST: 2}.get(self)


_NUM_LEVELS = {
    Layer.ALL_VALID_ITEM: 0,
    Layer.ALL_VALID_LIST: 0,
    Layer.NULLABLE_ITEM: 1,
    Layer.NULLABLE_LIST: 1,
    Layer.EMPTYABLE_LIST: 1,
    Layer.NULL_AND_EMPTY_LIST: 2,
}


_KNOWN = frozenset(_NUM_LEVELS)


@dataclass(frozen=True, slots=True)
class Layers:
    """The layers of a page, innermost first."""

    layers: tuple[Layer, ...]
    num_lists: int = field(init=False)
    max_visible: int = field(init=False)
    """Entries with a higher definition level have no value slot."""

    def __post_init__(self) -> None:
        lists = [index for index, layer in enumerate(self.layers) if layer.is_list]
        inside = self.layers[: lists[0]] if len(lists) > 0 else self.layers
        object.__setattr__(self, "num_lists", len(lists))
        object.__setattr__(self, "max_visible", sum(layer.num_levels for layer in inside))

    @classmethod
    def of(cls, numbers: Iterable[int], place: Place) -> Layers:
        """Check the numbers of a message and return the layers."""
        found = tuple(numbers)
        if not 0 < len(found) <= _MAX_LAYERS or not _KNOWN.issuperset(found):
            raise place.corrupt(f"layers {found[:_MAX_LAYERS]}")
        return cls(tuple(Layer(number) for number in found))


@dataclass(frozen=True, slots=True, eq=False)
class PageData:
    """Decoded rows of one page, before lists and structs are built from the levels.

    ``repetition`` and ``definition`` have one entry per level, or are None where the page has no
    such stream; ``values`` has one entry per visible level.
    """

    values: Values
    repetition: Levels | None
    definition: Levels | None
    layers: Layers
    num_rows: int

    def checked(self, place: Place) -> PageData:
        """Return the page, once it is sure that levels and values fit together."""
        levels = self.values.num_values
        if self.definition is not None:
            levels = int(np.count_nonzero(self.definition <= self.layers.max_visible))
            if self.repetition is not None and len(self.repetition) != len(self.definition):
                raise place.corrupt("as many repetition as definition levels were expected")
        elif self.repetition is not None:
            levels = len(self.repetition)
        if levels != self.values.num_values:
            raise place.corrupt(f"{levels} levels for {self.values.num_values} values")
        return self


def row_starts(repetition: Levels, layers: Layers) -> NDArray[np.int64]:
    """Return where rows begin in a stream of repetition levels."""
    return np.flatnonzero(repetition == layers.num_lists)


def slice_levels(data: PageData, begin: int, end: int, num_rows: int) -> PageData:
    """Cut level entries ``[begin, end)``, which make up ``num_rows`` rows, and their values."""
    first_value, stop_value = begin, end
    definition = data.definition
    if definition is not None:
        visible = definition[:end] <= data.layers.max_visible
        first_value = int(np.count_nonzero(visible[:begin]))
        stop_value = int(np.count_nonzero(visible))
        definition = definition[begin:end]
    return PageData(
        data.values.slice(first_value, stop_value),
        None if data.repetition is None else data.repetition[begin:end],
        definition,
        data.layers,
        num_rows,
    )


def take_levels(
    data: PageData, begins: NDArray[np.int64], ends: NDArray[np.int64], num_rows: int
) -> PageData:
    """Cut several stretches of level entries, ``num_rows`` rows in all, and their values."""
    entries = expand_ranges(begins, ends)
    definition = data.definition
    if definition is None:
        values = data.values.take(entries)
    else:
        visible = definition <= data.layers.max_visible
        before: NDArray[np.int64] = np.cumsum(visible) - visible
        definition = definition[entries]
        values = data.values.take(before[entries[definition <= data.layers.max_visible]])
    repetition = None if data.repetition is None else data.repetition[entries]
    return PageData(values, repetition, definition, data.layers, num_rows)


def slice_rows(data: PageData, start: int, stop: int) -> PageData:
    """Cut rows ``[start, stop)`` of a page without lists: row, level and value are the same."""
    definition = None if data.definition is None else data.definition[start:stop]
    values = data.values.slice(start, stop)
    return PageData(values, None, definition, data.layers, stop - start)


def take_rows(data: PageData, rows: NDArray[np.int64]) -> PageData:
    """Select rows of a page without lists."""
    definition = None if data.definition is None else data.definition[rows]
    return PageData(data.values.take(rows), None, definition, data.layers, len(rows))
