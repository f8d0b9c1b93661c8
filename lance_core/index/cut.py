"""Cutting what is too much for the memory into groups that are not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def cut_groups(lengths: NDArray[np.integer], most: int) -> list[int]:
    """Return where groups of neighbours begin, and the end of the last.

    Parameters
    ----------
    lengths
        Of each item.
    most
        How long a group may be that has more than one item.

    Examples
    --------
    >>> cut_groups(np.array([2, 2, 9, 1, 1]), 4)
    [0, 2, 3, 5]
    """
    ends = np.cumsum(lengths)
    bounds = [0]
    while bounds[-1] < len(lengths):
        before = int(ends[bounds[-1] - 1]) if bounds[-1] > 0 else 0
        stop = int(np.searchsorted(ends, before + most, side="right"))
        bounds.append(max(stop, bounds[-1] + 1))
    return bounds
