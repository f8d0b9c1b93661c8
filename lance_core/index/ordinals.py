"""Ordinals: rows of some fragments, numbered without gaps, so that bitsets and blocks are small.

A row's ordinal is the number of physical rows of all earlier fragments plus its row offset.
Ordinals ascend with row addresses, so that both order ties alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from lance_core.errors import CorruptFileError, UnsupportedFeatureError
from lance_core.kernels.ordinals import addresses_of, ordinals_of
from lance_core.row_set import (
    bitmap_offsets,
    clear_ordinals,
    empty_words,
    num_words,
    set_range,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from numpy.typing import NDArray
    from pyroaring import BitMap

_MAX_ROWS = 0xFFFF_FFFF
_FREE_IDS = 1 << 26
_IDS_PER_ROW = 256


class RowSpace(Protocol):
    """Numbers the rows that a segment may return, by what its files call them."""

    @property
    def size(self) -> int:
        """Bound of the ordinals; as an ordinal it stands for rows outside the space."""

    @property
    def key(self) -> Hashable:
        """Equal for spaces that number alike."""

    def to_ordinals(self, stored: NDArray[np.uint64]) -> NDArray[np.uint32]:
        """Return the ordinal of each row as files name it, shape ``(n,)``."""

    def to_row_ids(self, ordinals: NDArray[np.uint32]) -> NDArray[np.uint64]:
        """Return the row id of each ordinal below ``size``, shape ``(n,)``."""


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

    __slots__ = ("_first_ordinals", "_fragment_ids", "_key")

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
        self._key: Hashable = (self._fragment_ids.tobytes(), self._first_ordinals.tobytes())

    @property
    def key(self) -> Hashable:
        """Fragments and their numbers of rows."""
        return self._key

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

    def to_row_ids(self, ordinals: NDArray[np.uint32]) -> NDArray[np.uint64]:
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


class RowIdSpace:
    """The rows of a table with stable row ids: the id itself is the ordinal.

    So rows keep their ordinals when they move, and what is cached stays good. The size is a power
    of two, that it changes seldom.

    Parameters
    ----------
    next_row_id
        No row has this id or a larger one.
    num_rows
        How many rows it is about.

    Raises
    ------
    UnsupportedFeatureError
        There are ``2**32`` ids or more, or so few rows have one that a bitset over the ids would be
        a waste.
    """

    __slots__ = ("_size",)

    def __init__(self, next_row_id: int, num_rows: int) -> None:
        self._size = min(1 << next_row_id.bit_length(), _MAX_ROWS)
        if next_row_id > self._size:
            raise UnsupportedFeatureError(
                f"row ids go up to {next_row_id}; at most {_MAX_ROWS} are supported in an index"
            )
        if self._size > max(_FREE_IDS, _IDS_PER_ROW * num_rows):
            raise UnsupportedFeatureError(
                f"row ids go up to {next_row_id}, but only {num_rows} rows have one"
            )

    @property
    def size(self) -> int:
        """A bound of all ids; as an ordinal it stands for rows outside the space."""
        return self._size

    @property
    def key(self) -> Hashable:
        """The bound of the ids."""
        return "row ids", self._size

    def to_ordinals(self, row_ids: NDArray[np.uint64]) -> NDArray[np.uint32]:
        """Return the ordinal of each row id, shape ``(n,)``; ids outside the space get ``size``."""
        return np.minimum(row_ids, np.uint64(self._size)).astype(np.uint32)

    def to_row_ids(self, ordinals: NDArray[np.uint32]) -> NDArray[np.uint64]:
        """Return the row id of each ordinal, shape ``(n,)``."""
        return ordinals.astype(np.uint64)


def live_id_words(
    space: RowIdSpace, first_ids: NDArray[np.uint64], lengths: NDArray[np.int64], path: str
) -> NDArray[np.uint64]:
    """Return the dense bitset of runs of row ids.

    Parameters
    ----------
    space
        Numbers the rows.
    first_ids, lengths
        Shape ``(r,)``: runs of ids that do not overlap.
    path
        The manifest, for the error.

    Returns
    -------
    NDArray[np.uint64]
        Words for ``space.size + 1`` bits; the last bit, which stands for all other rows, is 0.

    Raises
    ------
    CorruptFileError
        An id lies outside the space.
    """
    ends = first_ids + lengths.astype(np.uint64)
    if len(ends) > 0 and ends.max() > space.size:
        raise CorruptFileError(path, f"row id {ends.max() - 1} was never given out")
    edges = np.zeros(num_words(space.size + 1) * 64 + 1, np.int8)
    np.add.at(edges, first_ids.astype(np.int64), np.int8(1))
    np.subtract.at(edges, ends.astype(np.int64), np.int8(1))
    is_live = np.cumsum(edges[:-1], dtype=np.int8).astype(np.bool_)
    return np.packbits(is_live, bitorder="little").view(np.uint64)
