"""Bitsets over the ordinals that a search numbers its rows by, cut down to the rows that pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.masks import copy_bits
from lance_core.row_address import OFFSET_BITS, fragment_of, offset_of
from lance_core.row_set import count, to_ordinals

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from lance_core.ids import FragmentId
    from lance_core.index.ordinals import OrdinalSpace
    from lance_core.table.row_id_index import RowIdIndex

_WORD_BITS = 64
_KEPT_BYTES = 512
"""What keeping a bitset in the cache takes beside its words: objects, its key, its places."""


@dataclass(frozen=True, slots=True, eq=False)
class RowMask:
    """Some rows, as a dense bitset over ordinals or row offsets, and how many they are."""

    words: NDArray[np.uint64]
    num_rows: int

    @property
    def nbytes(self) -> int:
        """Memory of the bitset; even thousands of empty ones take some."""
        return int(self.words.nbytes) + _KEPT_BYTES


@dataclass(frozen=True, slots=True, eq=False)
class AddressRuns:
    """Rows whose addresses and ordinals both count up by one, in runs.

    Parameters
    ----------
    addresses
        Shape ``(r,)``, uint64: address of the first row of each run.
    num_rows, first_ordinals
        Shape ``(r,)``, int64: rows of the run, ordinal of the first.
    """

    addresses: NDArray[np.uint64]
    num_rows: NDArray[np.int64]
    first_ordinals: NDArray[np.int64]

    @property
    def nbytes(self) -> int:
        """Memory of the runs."""
        arrays = (self.addresses, self.num_rows, self.first_ordinals)
        return sum(int(each.nbytes) for each in arrays)

    @classmethod
    def of_space(cls, space: OrdinalSpace) -> AddressRuns:
        """Return the rows of whole fragments, in the order of their addresses."""
        first_addresses = space.fragment_ids.astype(np.uint64) << np.uint64(OFFSET_BITS)
        return cls(first_addresses, np.diff(space.first_ordinals), space.first_ordinals[:-1])

    @classmethod
    def of_ids(cls, index: RowIdIndex) -> AddressRuns:
        """Return the live rows of an index, whose ordinals are their ids."""
        return cls(index.addresses, index.lengths, index.first_ids.astype(np.int64))


def mask_passing(
    live: NDArray[np.uint64], runs: AddressRuns, passing: Mapping[FragmentId, RowMask]
) -> RowMask:
    """Keep those rows of a bitset that pass a filter.

    Parameters
    ----------
    live
        The bitset over ordinals.
    runs
        Where all rows with an ordinal lie; inside fragments of ``passing``.
    passing
        The rows that pass, by fragment, over row offsets.
    """
    fragment_ids = np.array(sorted(passing), np.uint32)
    parts = [passing[each] for each in sorted(passing)]
    ends = np.cumsum([0, *(len(part.words) for part in parts)]) * _WORD_BITS
    source = np.concatenate([np.empty(0, np.uint64), *(part.words for part in parts)])
    place = np.searchsorted(fragment_ids, fragment_of(runs.addresses))
    starts = ends[place] + offset_of(runs.addresses).astype(np.int64)
    words = np.zeros_like(live)
    copy_bits(source, starts, runs.num_rows, runs.first_ordinals, words)
    words &= live
    return RowMask(words, count(words))


def passing_addresses(passing: Mapping[FragmentId, RowMask]) -> NDArray[np.uint64]:
    """Return the addresses of all rows that pass, ascending."""
    parts = [np.empty(0, np.uint64)]
    for fragment_id in sorted(passing):
        offsets = to_ordinals(passing[fragment_id].words)
        parts.append(offsets.astype(np.uint64) | np.uint64(fragment_id << OFFSET_BITS))
    return np.concatenate(parts)
