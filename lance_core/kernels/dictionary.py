"""Dictionary indices of several pages: as the items, or as positions among the items of all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.bitpacking import DONE, UNSIGNED
from lance_core.kernels.compile import kernel, warmup

if TYPE_CHECKING:
    from numpy.typing import NDArray


@kernel
def look_up(
    indices: NDArray[np.unsignedinteger],
    pages: NDArray[np.int64],
    bounds: NDArray[np.int64],
    first_items: NDArray[np.int64],
    sizes: NDArray[np.int64],
    definition: NDArray[np.uint16],
    items: NDArray[np.uint64],
    out: NDArray[np.uint64],
) -> int:
    """Replace the indices of pages by the items they stand for, or by their positions.

    Parameters
    ----------
    indices
        Shape ``(n,)``.
    pages, bounds
        Shapes ``(runs,)`` and ``(runs + 1,)``; the rows ``[bounds[i], bounds[i + 1])`` are of page
        ``pages[i]``. The bounds ascend from 0 to ``n``.
    first_items, sizes
        Shape ``(pages,)``; where the items of each page begin, and how many there are.
    definition
        Shape ``(n,)``, or empty where there are no nulls. Under a null, a level that is not 0,
        anything may stand.
    items
        The items of all pages one after another; empty = positions among them are wanted.
    out
        Shape ``(n,)``; 0 for nulls.

    Returns
    -------
    int
        ``DONE``, or the first row whose index is outside the items of its page.
    """
    has_nulls = definition.shape[0] > 0
    has_items = items.shape[0] > 0
    for run in range(pages.shape[0]):
        first, size = first_items[pages[run]], sizes[pages[run]]
        for row in range(bounds[run], bounds[run + 1]):
            if has_nulls and definition[row] != 0:
                out[row] = 0
                continue
            index = np.int64(indices[row])
            if index < 0 or index >= size:
                return row
            out[row] = items[first + index] if has_items else np.uint64(first + index)
    return DONE


@warmup
def _warm() -> None:
    none = np.empty(0, np.int64)
    levels, items = np.empty(0, np.uint16), np.empty(0, np.uint64)
    for element in UNSIGNED.values():
        look_up(np.empty(0, element), none, none, none, none, levels, items, items)
