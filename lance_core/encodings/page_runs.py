"""Which page each of many rows came from, as runs of neighbours from one page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class PageRuns:
    """Run ``i`` holds the rows ``[bounds[i], bounds[i + 1])`` and is of page ``numbers[i]``.

    ``numbers`` has shape ``(k,)`` and ``bounds`` shape ``(k + 1,)``; ``bounds`` begins with 0.
    """

    numbers: NDArray[np.int64]
    bounds: NDArray[np.int64]

    @classmethod
    def of_chunks(cls, pages: NDArray[np.int64], counts: NDArray[np.int64]) -> Self:
        """Return the runs of rows in chunks that hold ``counts`` rows of the pages ``pages`` each.

        Examples
        --------
        >>> runs = PageRuns.of_chunks(np.array([3, 3, 5]), np.array([10, 20, 1]))
        >>> runs.numbers.tolist(), runs.bounds.tolist()
        ([3, 5], [0, 30, 31])
        """
        firsts = np.flatnonzero(np.append(True, pages[1:] != pages[:-1])[: len(pages)])
        starts = (np.cumsum(counts) - counts)[firsts]
        return cls(pages[firsts], np.append(starts, counts.sum()))

    @classmethod
    def of_rows(cls, pages: NDArray[np.int64]) -> Self:
        """Return the runs of rows whose pages are given one by one."""
        return cls.of_chunks(pages, np.ones(len(pages), np.int64))

    def slice(self, start: int, stop: int) -> PageRuns:
        """Return the runs of the rows ``[start, stop)``.

        Examples
        --------
        >>> runs = PageRuns(np.array([3, 5, 6]), np.array([0, 30, 31, 40])).slice(4, 31)
        >>> runs.numbers.tolist(), runs.bounds.tolist()
        ([3, 5], [0, 26, 27])
        """
        first = int(np.searchsorted(self.bounds, start, side="right")) - 1
        last = int(np.searchsorted(self.bounds, stop, side="left"))
        bounds = np.clip(self.bounds[first : last + 1], start, stop) - start
        return PageRuns(self.numbers[first:last], bounds)

    def run_of_rows(self) -> NDArray[np.int64]:
        """Return the number of the run that each row is in."""
        return np.repeat(np.arange(len(self.numbers)), np.diff(self.bounds))
