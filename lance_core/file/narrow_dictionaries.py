"""Refusing rows whose dictionaries together have more items than their index type can count.

Each page has a dictionary of its own, but whoever reads the column gets one for all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from lance_core.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Iterator

_NARROW_BITS = 16
"""Wider indices count more items than a column is given."""


class NarrowDictionaries:
    """Collects the items of one column, those that no row uses included: pages keep them too."""

    def __init__(self, column: str) -> None:
        self._column = column
        self._items: dict[tuple[int, ...], pa.Array] = {}

    def check(self, array: pa.Array) -> None:
        """Add the rows of a batch.

        Raises
        ------
        InvalidRequestError
            They use more distinct items than the index type counts; names a wider one.
        """
        for place, found in _dictionaries(array, ()):
            given = pc.drop_null(found.dictionary)
            seen = self._items.get(place)
            items = pc.unique(given if seen is None else pa.concat_arrays([seen, given]))
            index = found.type.index_type
            most = 1 << (index.bit_width - pa.types.is_signed_integer(index))
            if len(items) > most:
                raise InvalidRequestError(
                    f"column {self._column!r}: its dictionaries have more than {most} items"
                    f" together, too many for {index} indices; cast them to int32"
                )
            self._items[place] = items


def _dictionaries(
    array: pa.Array, place: tuple[int, ...]
) -> Iterator[tuple[tuple[int, ...], pa.DictionaryArray]]:
    """Yield the dictionary arrays of narrow indices in an array, and where in its type they are."""
    if isinstance(array, pa.DictionaryArray):
        if array.type.index_type.bit_width <= _NARROW_BITS:
            yield place, array
    elif isinstance(array, pa.StructArray):
        for position, child in enumerate(array.flatten()):
            yield from _dictionaries(child, (*place, position))
    elif isinstance(array, pa.MapArray):
        first, last = array.offsets[0].as_py(), array.offsets[len(array)].as_py()
        for position, child in enumerate((array.keys, array.items)):
            yield from _dictionaries(child[first:last], (*place, position))
    elif isinstance(array, pa.ListArray | pa.LargeListArray):
        yield from _dictionaries(array.flatten(), (*place, 0))
