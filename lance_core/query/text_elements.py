"""Documents that are elements of lists: numbers for searches, and which element of which row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from numpy.typing import NDArray


class ListElements:
    """Gives each element of lists a number that searches take for the id of a row.

    Belongs to one run of a query.
    """

    def __init__(self) -> None:
        self._row_ids: list[NDArray[np.uint64]] = [np.empty(0, np.uint64)]
        self._elements: list[NDArray[np.uint32]] = [np.empty(0, np.uint32)]
        self._num_known = 0

    def numbered(
        self, row_ids: NDArray[np.uint64], elements: NDArray[np.uint32]
    ) -> NDArray[np.uint64]:
        """Return new numbers, shape ``(n,)``, ascending, for elements of the lists of rows."""
        first, self._num_known = self._num_known, self._num_known + len(row_ids)
        self._row_ids.append(row_ids)
        self._elements.append(elements)
        return np.arange(first, self._num_known, dtype=np.uint64)

    def of_numbers(
        self, numbers: NDArray[np.uint64]
    ) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
        """Return the rows, and which elements of their lists, shape ``(n,)`` each."""
        places = numbers.astype(np.int64)
        return np.concatenate(self._row_ids)[places], np.concatenate(self._elements)[places]


def elements_of(
    lists: pa.Array, row_ids: NDArray[np.uint64]
) -> tuple[pa.Array, NDArray[np.uint64], NDArray[np.uint32]]:
    """Return the elements of lists, the rows that they are in, and where they stand there.

    Examples
    --------
    >>> texts, rows, places = elements_of(pa.array([["a", None], None, ["b"]]), np.arange(3))
    >>> texts.to_pylist(), rows.tolist(), places.tolist()
    (['a', None, 'b'], [0, 0, 2], [0, 1, 0])
    """
    owners = pc.list_parent_indices(lists).to_numpy()
    places = np.arange(len(owners)) - np.searchsorted(owners, owners)
    return lists.flatten(), row_ids[owners], places.astype(np.uint32)
