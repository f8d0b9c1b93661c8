"""States of pages that reads of long ranges leave behind: only so many bytes of them are kept.

A scan comes to every page once. What it loads of them would grow with the file, so the pages
that it has passed are forgotten, the first loaded first. What takes load stays: they come back.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


MAX_PASSED_BYTES = 1 << 20
"""States that are kept per column: those of some 64 MB of it. Repeated scans of longer ones load
them again, a ninth of their time (263 MB of prose); with 4 MiB peaks grew by half with the file."""
MIN_PAGES = 4
"""Pages that are kept whatever they take: two threads are in neighbouring pages."""
LONG_PIECES = 64
"""Rows per piece from which it is cheaper to think in chunks than in rows."""
_LONG_BYTES = 32 << 10
"""Bytes per piece that make it long, however few its rows are: some chunks."""


class PageStates(Protocol):
    """What holds the states of pages, by the pages' numbers."""

    def forget(self, numbers: Sequence[int]) -> None:
        """Drop the states of pages; whoever reads with them still has them."""


class PassedPages:
    """The pages of a column that passing reads have loaded, the oldest first; safe to share.

    A page that is forgotten is loaded anew when a row of it is wanted again.

    Parameters
    ----------
    row_bytes
        What a row takes in the file, on average.
    """

    def __init__(self, row_bytes: float) -> None:
        self._long_rows = min(LONG_PIECES, _LONG_BYTES / max(row_bytes, 1.0))
        self._sizes: dict[tuple[PageStates, int], int] = {}
        self._total = 0
        self._lock = threading.Lock()

    def note(
        self, states: PageStates, sizes: Mapping[int, int], wanted: Sequence[tuple[int, int]]
    ) -> None:
        """Note the bytes of pages that were loaded, and forget what is too much.

        ``wanted`` is all that is read of the column at once. If its pieces are short, rows are
        taken, and the pages stay.
        """
        if sum(stop - start for start, stop in wanted) <= self._long_rows * len(wanted):
            return
        passed: dict[PageStates, list[int]] = {}
        with self._lock:
            for number, nbytes in sizes.items():
                self._total += nbytes - self._sizes.pop((states, number), 0)
                self._sizes[states, number] = nbytes
            while self._total > MAX_PASSED_BYTES and len(self._sizes) > MIN_PAGES:
                holder, number = oldest = next(iter(self._sizes))
                self._total -= self._sizes.pop(oldest)
                passed.setdefault(holder, []).append(number)
        for holder, numbers in passed.items():
            holder.forget(numbers)
