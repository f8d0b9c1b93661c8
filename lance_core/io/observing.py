"""Who wants to know of the reads of stores, without the library knowing who that is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

GetRange = Callable[[str, int, int], memoryview]
"""Reads bytes ``[start, end)`` of an object by its path."""


class ReadObserver(Protocol):
    """Told of reads that wait; slices of mapped files are none. Safe to share between threads."""

    def watch(self, get_range: GetRange) -> GetRange:
        """Return what reads in the same way, and tells.

        Called on the thread of the query; what is returned may be called on any, several times.
        """
