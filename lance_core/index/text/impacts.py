"""Impacts: what the documents of a block can have at best, whatever the statistics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.text_impacts import UNREADABLE, count_pairs, read_impacts

if TYPE_CHECKING:
    from numpy.typing import NDArray

GROUP_BLOCKS = 32
"""Behind the entries of all blocks there is one for every 32 of them."""

_EXACT_BITS = 4


@dataclass(frozen=True, slots=True, eq=False)
class Impacts:
    """Pairs of a frequency and a document length for each block, and then for each group of blocks.

    No document of a block weighs more than the best of the block's pairs.

    Parameters
    ----------
    bounds
        Entry ``i`` has the pairs from ``bounds[i]`` to ``bounds[i + 1]``; shape ``(n + 1,)``.
    frequencies, lengths
        The pairs; lengths are rounded down.
    """

    bounds: NDArray[np.int64]
    frequencies: NDArray[np.uint32]
    lengths: NDArray[np.uint32]

    @property
    def num_entries(self) -> int:
        """Blocks and groups; 0 where nothing is known."""
        return len(self.bounds) - 1

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return int(self.bounds.nbytes + self.frequencies.nbytes + self.lengths.nbytes)


NO_IMPACTS = Impacts(np.zeros(1, np.int64), np.zeros(0, np.uint32), np.zeros(0, np.uint32))
"""Nothing is known of any block."""


def decode_impacts(base: int, offsets: NDArray[np.int64], num_blocks: int) -> Impacts:
    """Decode the entries of one token.

    Parameters
    ----------
    base, offsets
        Entry ``i`` is the bytes ``[offsets[i], offsets[i + 1])`` from the address ``base``.
    num_blocks
        Blocks of its posting list.

    Returns
    -------
    Impacts
        `NO_IMPACTS` where an entry is missing or of another form (scalar index page, 8.5): impacts
        only save work.
    """
    num_entries = len(offsets) - 1
    if num_entries != num_blocks + -(-num_blocks // GROUP_BLOCKS):
        return NO_IMPACTS
    num_pairs = count_pairs(base, offsets)
    if num_pairs == UNREADABLE:
        return NO_IMPACTS
    bounds = np.empty(num_entries + 1, np.int64)
    frequencies, lengths = np.empty(num_pairs, np.uint32), np.empty(num_pairs, np.uint32)
    is_whole = read_impacts(base, offsets, bounds, frequencies, lengths)
    return Impacts(bounds, frequencies, lengths) if is_whole else NO_IMPACTS


def rounded_lengths(lengths: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Round document lengths down to their four leading bits, as impacts keep them."""
    bits = np.frexp(lengths.astype(np.float64))[1]
    shifts = np.maximum(bits - _EXACT_BITS, 0).astype(np.uint32)
    rounded: NDArray[np.uint32] = lengths >> shifts << shifts
    return rounded
