"""Rows that a search found, with their distances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Rows found by a search, nearest first, ties by row id.

    ``distances`` has shape ``(n,)`` and dtype float32, ``row_ids`` shape ``(n,)`` and uint64. On
    tables without stable row ids the ids are row addresses.
    """

    distances: NDArray[np.float32]
    row_ids: NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.distances)

    def first(self, count: int) -> Candidates:
        """Return the nearest ``count`` rows."""
        return self if count >= len(self.distances) else self.slice(0, count)

    def slice(self, start: int, stop: int) -> Candidates:
        """Return the rows at places ``[start, stop)``."""
        return Candidates(self.distances[start:stop], self.row_ids[start:stop])
