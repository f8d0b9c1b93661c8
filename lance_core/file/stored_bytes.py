"""How many bytes of a file rows take, estimated for many columns at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lance_core.file.page_list import PageList


class StoredBytes:
    """Estimates the bytes of any rows of several columns; the rows of a page share them evenly.

    Parameters
    ----------
    num_rows
        Rows of the file. Columns below lists have more or fewer: their pages count by the share
        of the column's rows that they hold.
    columns
        The pages of each column.
    """

    def __init__(self, num_rows: int, columns: Iterable[PageList]) -> None:
        filled = [pages for pages in columns if pages.num_rows > 0]
        none = np.empty(0)
        bounds = [pages.first_rows * (num_rows / pages.num_rows) for pages in filled]
        first = np.concatenate([*(each[:-1] for each in bounds), none])
        last = np.concatenate([*(each[1:] for each in bounds), none])
        num_bytes = np.concatenate([*(pages.num_bytes for pages in filled), none])
        # every page adds its bytes per row from its first row on, and takes them back at its end
        rows = last - first  # 0 where a damaged file claims more rows than floats tell apart
        rates = np.divide(num_bytes, rows, out=np.zeros_like(rows), where=rows > 0)
        places = np.concatenate((first, last, [0.0]))
        self._rows, where = np.unique(places, return_inverse=True)
        changes = np.bincount(where, np.concatenate((rates, -rates, [0.0])))
        steps = np.cumsum(changes)[:-1] * np.diff(self._rows)
        self._bytes = np.append(0.0, np.cumsum(steps))

    def __call__(self, start: int, stop: int) -> float:
        """Return the bytes that rows ``[start, stop)`` take."""
        before, end = np.interp((start, stop), self._rows, self._bytes)
        return float(end - before)
