"""From the rows that files of a segment name to those that a new segment is to have in their place.

Rows that are gone, or in fragments that the new segment does not cover, are left out: some readers
look no further than the files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
from pyroaring import BitMap

from lance_core.index.ordinals import OrdinalSpace, live_words
from lance_core.row_address import ROW_ADDRESS_TOMBSTONE
from lance_core.row_set import contains

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numpy.typing import NDArray

    from lance_core.table.reuse_map import AddressMap
    from lance_core.table.row_id_index import RowIdIndex


class RowRoute(Protocol):
    """Leads rows of one segment to a new one."""

    @property
    def fragments(self) -> BitMap:
        """Fragments of the rows that the new segment has of the old one."""

    def follow(self, names: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """Return what rows are called in the new segment, and which of them it has.

        Parameters
        ----------
        names
            Shape ``(n,)``, as files name rows; in any order, repeats allowed.

        Returns
        -------
        tuple
            Shape ``(n,)`` each.
        """

    def within(self, high_half: int, low_halves: BitMap) -> BitMap:
        """Leave out names that no row has, of some with the same upper 32 bits.

        A set in a file may stand for all names that there could be.
        """


class AddressRoute:
    """The route of rows that are named by their addresses.

    Parameters
    ----------
    addresses
        Where rows are that compactions moved.
    old_rows
        How many rows each fragment had that was compacted, by its id.
    covered
        How many rows each fragment has that the new segment covers, by its id.
    deleted
        Deleted rows of these; fragments without an entry have none.

    Raises
    ------
    UnsupportedFeatureError
        There are more than ``2**32 - 1`` rows.
    """

    def __init__(
        self,
        addresses: AddressMap,
        old_rows: Mapping[int, int],
        covered: Mapping[int, int],
        deleted: Mapping[int, BitMap],
    ) -> None:
        self._addresses = addresses
        self.fragments = BitMap(covered)
        self._num_rows = {**covered, **old_rows}
        self._space = OrdinalSpace(list(covered), list(covered.values()))
        self._is_live = live_words(self._space, deleted)

    def follow(self, names: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """Return the new addresses of rows, and which of them are live and covered."""
        moved = self._addresses.map_addresses(names)
        return moved, contains(self._is_live, self._space.to_ordinals(moved))

    def within(self, high_half: int, low_halves: BitMap) -> BitMap:
        """Return the offsets that the fragment has or had; none of one that leads nowhere."""
        num_rows = self._num_rows.get(high_half, 0)
        if len(low_halves) == 0 or low_halves.max() < num_rows:
            return low_halves
        return low_halves & BitMap(range(num_rows))


class RowIdRoute:
    """The route of rows that are named by stable row ids, which do not change.

    Parameters
    ----------
    index
        All live rows of the version.
    covered
        Fragments that the new segment covers.
    """

    def __init__(self, index: RowIdIndex, covered: Collection[int]) -> None:
        self.fragments = BitMap(covered)
        self._index = index.of_fragments(covered)

    def follow(self, names: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """Return the ids, and which are those of live rows of covered fragments."""
        return names, self._index.find(names) != np.uint64(ROW_ADDRESS_TOMBSTONE)

    def within(self, high_half: int, low_halves: BitMap) -> BitMap:
        """Return the lower halves of the ids of live rows."""
        if len(low_halves) <= self._index.num_rows:
            return low_halves
        return low_halves & self._index.live_ids(high_half)
