"""Cutting the rows of a leaf where levels would be too many for a chunk."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from lance_core.encodings.shred import Leaf


def split_rows(leaf: Leaf, max_levels: int) -> Iterator[Leaf]:
    """Cut a leaf of lists into pieces of at most ``max_levels`` levels, or of one row.

    Parameters
    ----------
    leaf
        With a repetition stream.
    max_levels
        At least 1.

    Returns
    -------
    Iterator[Leaf]
        Views in the order of the rows; layers stay as they are.
    """
    starts = np.append(np.flatnonzero(leaf.repetition == leaf.layers.num_lists), leaf.num_levels)
    values = _values_before(leaf, starts)
    first = 0
    while first < leaf.num_rows:
        fitting = int(np.searchsorted(starts, starts[first] + max_levels, "right")) - 1
        stop = max(fitting, first + 1)
        levels = slice(int(starts[first]), int(starts[stop]))
        yield replace(
            leaf,
            values=leaf.values.slice(int(values[first]), int(values[stop])),
            repetition=None if leaf.repetition is None else leaf.repetition[levels],
            definition=None if leaf.definition is None else leaf.definition[levels],
            num_rows=stop - first,
        )
        first = stop


def _values_before(leaf: Leaf, levels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Count the values before each of these positions among the levels."""
    if leaf.definition is None:
        return levels
    visible = np.flatnonzero(leaf.definition <= leaf.layers.max_visible)
    return np.searchsorted(visible, levels)
