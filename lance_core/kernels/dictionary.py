"""Dictionary indices of several pages, as positions among the items of all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.bitpacking import DONE, UNSIGNED
from lance_core.kernels.compile import kernel, warmup

if TYPE_CHECKING:
    from numpy.typing import NDArray


@kernel
def rebase_indices(
    indices: NDArray[np.unsignedinteger],
    pages: NDArray[np.int64],
    first_items: NDArray[np.int64],
    sizes: NDArray[np.int64],
    definition: NDArray[np.uint16],
    out: NDArray[np.int64],
) -> int:
    """Turn the indices of pages into positions among the items of all pages.

    Parameters
    ----------
    indices, pages
        Shape ``(n,)``; each index and the page it belongs to.
    first_items, sizes
        Shape ``(pages,)``; where the items of each page begin, and how many there are.
    definition
        Shape ``(n,)``, or empty where there are no nulls. Under a null, a level that is not 0,
        anything may stand.
    out
        Shape ``(n,)``; 0 for nulls.

    Returns
    -------
    int
        ``DONE``, or the first row whose index is outside the items of its page.
    """
    has_nulls = definition.shape[0] > 0
    for row in range(indices.shape[0]):
        if has_nulls and definition[row] != 0:
            out[row] = 0
            continue
        page = pages[row]
        index = np.int64(indices[row])
        if index < 0 or index >= sizes[page]:
            return row
        out[row] = first_items[page] + index
    return DONE


@warmup
def _warm() -> None:
    none = np.empty(0, np.int64)
    levels = np.empty(0, np.uint16)
    for element in UNSIGNED.values():
        rebase_indices(np.empty(0, element), none, none, none, levels, none)
