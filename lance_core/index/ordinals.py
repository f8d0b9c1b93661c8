"""Ordinals: rows of some fragments, numbered without gaps, so that bitsets and blocks are small.

A row's ordinal is the number of physical rows of all earlier fragments plus its row offset.
Ordinals ascend with row addresses, so that both order ties alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.errors import UnsupportedFeatureError
from lance_core.kernels.ordinals import addresses_of, ordinals_of
from lance_core.row_set import bitmap_offsets, clear_ordinals, empty_words, set_range

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from numpy.typing import NDArray
    from pyroaring import BitMap

_MAX_ROWS = 0xFFFF_FFFF


class OrdinalSpace:
    """The rows of a set of fragments as ordinals ``0 .. size - 1``.

    Spaces of one segment should be made of the live fragments it covers, not of all fragments of
    the version: then appending rows changes nothing and what is cached stays good.

    Parameters
    ----------
    fragment_ids
        Fragments, each once, in any order.
    physical_rows
        Physical rows of each, deleted ones included.

    Raises
    ------
    UnsupportedFeatureError
        More than ``2**32 - 1`` rows.
    """

    __slots__ = ("_first_ordinals", "_fragment_ids", "key")

    def __init__(self, fragment_ids: Sequence[int], physical_rows: Sequence[int]) -> None:
        rows_of = dict(zip(fragment_ids, physical_rows, strict=True))
        self._fragment_ids = np.array(sorted(rows_of), np.uint32)
        num_rows = [rows_of[fragment_id] for fragment_id in sorted(rows_of)]
        if sum(num_rows) > _MAX_ROWS:
            raise UnsupportedFeatureError(
                f"{sum(num_rows)} rows in one index segment; at most {_MAX_ROWS} are supported"
            )
        self._first_ordinals = np.zeros(len(rows_of) + 1, np.int64)
        np.cumsum(num_rows, out=self._first_ordinals[1:])
        self.key: Hashable = (self._fragment_ids.tobytes(), self._first_ordinals.tobytes())

    @property
    def size(self) -> int:
        """Number of rows; as an ordinal it stands for rows outside the space."""
        return int(self._first_ordinals[-1])

    @property
    def fragment_ids(self) -> NDArray[np.uint32]:
        """Fragments of the space, ascending; shape ``(f,)``, not to be changed."""
        return self._fragment_ids

    @property
    def first_ordinals(self) -> NDArray[np.int64]:
        """Ordinal of each fragment's first row, then ``size``; shape ``(f + 1,)``."""
        return self._first_ordinals

    def to_ordinals(self, row_addresses: NDArray[np.uint64]) -> NDArray[np.uint32]:
        """Return the ordinal of each row address, shape ``(n,)``.

        Rows of other fragments, and offsets behind the end of a fragment, get ``size``: no mask has
        that bit set, so that such rows are never found.
        """
        contiguous = np.ascontiguousarray(row_addresses, np.uint64)
        return ordinals_of(contiguous, self._fragment_ids, self._first_ordinals)

    def to_addresses(self, ordinals: NDArray[np.uint32]) -> NDArray[np.uint64]:
        """Return the row address of each ordinal below ``size``, shape ``(n,)``."""
        return addresses_of(ordinals, self._fragment_ids, self._first_ordinals)


def live_words(space: OrdinalSpace, deleted: Mapping[int, BitMap]) -> NDArray[np.uint64]:
    """Return the dense bitset of the rows of ``space`` that are not deleted.

    Parameters
    ----------
    space
        Numbers the rows.
    deleted
        Deleted offsets by fragment id; fragments without an entry, and entries of other fragments,
        count for nothing.

    Returns
    -------
    NDArray[np.uint64]
        Words for ``space.size + 1`` bits; the last bit, which stands for all other rows, is 0.
    """
    words = empty_words(space.size + 1)
    set_range(words, 0, space.size)
    first_ordinals = space.first_ordinals.tolist()
    for place, fragment_id in enumerate(space.fragment_ids.tolist()):
        offsets = deleted.get(fragment_id)
        if offsets is not None:
            first = first_ordinals[place]
            ordinals = bitmap_offsets(offsets).astype(np.int64) + first
            # An offset behind the end must not delete a row of the next fragment.
            inside = ordinals[ordinals < first_ordinals[place + 1]]
            clear_ordinals(words, inside.astype(np.uint32))
    return words
