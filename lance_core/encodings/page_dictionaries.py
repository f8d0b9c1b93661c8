"""The dictionaries of neighbouring pages: joined to one, or kept apart."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from lance_core.encodings.values import FixedWidth, Indexed, concat_values
from lance_core.kernels.bitpacking import DONE, UNSIGNED
from lance_core.kernels.dictionary import look_up

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.encodings.levels import PageData
    from lance_core.encodings.page_runs import PageRuns
    from lance_core.encodings.place import Place
    from lance_core.encodings.values import Values

_LOOKED_UP_BITS = 64
"""Width of the only numbers that writers put into dictionaries by themselves."""


class JoinedDictionaries:
    """The items of several pages one after another.

    ``first_items`` and ``sizes`` say, by page, where a page's items begin and how many there are;
    pages that are not loaded have none.
    """

    def __init__(self, dictionaries: Sequence[Values | None], place: Place) -> None:
        loaded = [items for items in dictionaries if items is not None]
        self._items = concat_values(loaded, place)
        self._sizes = np.array(
            [0 if items is None else items.num_values for items in dictionaries], np.int64
        )
        self._first_items = np.cumsum(self._sizes) - self._sizes

    def apply(self, data: PageData, runs: PageRuns, place: Place) -> PageData:
        """Turn the indices of rows into items, or into positions among all items."""
        indices = _integers(data.values, place)
        levels = np.empty(0, np.uint16) if data.definition is None else data.definition
        items = self._items
        numbers = np.empty(0, np.uint64)
        if isinstance(items, FixedWidth) and items.bits == _LOOKED_UP_BITS:
            numbers = items.integers()
        where = (runs.numbers, runs.bounds, self._first_items, self._sizes, levels)
        found = np.empty(len(indices), np.uint64)
        bad = look_up(indices, *where, numbers, found)
        if bad != DONE:
            raise place.corrupt("a dictionary index is outside the items of its page")
        if len(numbers) > 0:
            values: Values = FixedWidth(found.view(np.uint8), _LOOKED_UP_BITS, len(found))
        else:
            values = Indexed(found.view(np.int64), items)
        return replace(data, values=values)


def apply_one_by_one(
    data: PageData,
    runs: PageRuns,
    dictionaries: Sequence[Values | None],
    place: Place,
) -> list[PageData]:
    """Cut rows at page boundaries, so that each part has the dictionary of its page."""
    indices = indices_of(data.values, place)
    parts = []
    for number, (start, stop) in zip(
        runs.numbers.tolist(), pairwise(runs.bounds.tolist()), strict=True
    ):
        items = dictionaries[number]
        if items is None:
            continue
        definition = None if data.definition is None else data.definition[start:stop]
        values = Indexed(indices[start:stop], items)
        parts.append(replace(data, values=values, definition=definition, num_rows=stop - start))
    return parts


def indices_of(values: Values, place: Place) -> NDArray[np.int64]:
    """Return decoded values as positions in a dictionary."""
    return _integers(values, place).astype(np.int64)


def _integers(values: Values, place: Place) -> NDArray[np.unsignedinteger]:
    if not isinstance(values, FixedWidth) or values.bits not in UNSIGNED:
        raise place.corrupt("dictionary indices are not numbers")
    return values.integers()
