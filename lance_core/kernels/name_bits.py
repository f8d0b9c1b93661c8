"""Row names (addresses or ids) put into one bitset per fragment, without sorting them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel, warmup

if TYPE_CHECKING:
    from numpy.typing import NDArray

_OFFSET_BITS = np.uint64(32)
_OFFSET_MASK = np.uint64(0xFFFF_FFFF)
_WORD_SHIFT = np.uint64(6)
_BIT_MASK = np.uint64(63)


@kernel
def note_highest(names: NDArray[np.uint64], highest: NDArray[np.int64]) -> bool:
    """Raise ``highest[id]`` to the highest offset of each fragment; false if an id is too high."""
    for index in range(names.shape[0]):
        fragment_id = np.int64(names[index] >> _OFFSET_BITS)
        if fragment_id >= highest.shape[0]:
            return False
        offset = np.int64(names[index] & _OFFSET_MASK)
        highest[fragment_id] = max(highest[fragment_id], offset)
    return True


@kernel
def set_names(
    names: NDArray[np.uint64], starts: NDArray[np.int64], words: NDArray[np.uint64]
) -> None:
    """Set the bit of each name.

    Parameters
    ----------
    names
        Names whose fragments have a place.
    starts
        The word of each fragment, by id, that the bits of its offsets begin at.
    words
        The bits of all fragments.
    """
    for index in range(names.shape[0]):
        start = starts[names[index] >> _OFFSET_BITS]
        offset = names[index] & _OFFSET_MASK
        words[start + np.int64(offset >> _WORD_SHIFT)] |= np.uint64(1) << (offset & _BIT_MASK)


@warmup
def warm() -> None:
    """Compile or load the kernels of this module."""
    names, ones = np.zeros(1, np.uint64), np.zeros(1, np.int64)
    note_highest(names, ones)
    set_names(names, ones, np.zeros(1, np.uint64))
