"""Partitions that a search holds: addresses for kernels, and what keeps them good."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from lance_core.index.vector.blocks import PartitionBlock

NUM_ROWS_COLUMN = 2


@dataclass(frozen=True, slots=True, eq=False)
class HeldPartitions:
    """Partitions that stay in memory as long as this exists.

    Parameters
    ----------
    partitions
        Shape ``(n,)``, int64: their ids, in the order of the search.
    rows
        Shape ``(n, w)``, int64: of each partition the address of its first array, that of its
        ordinals, its number of rows, and the addresses of its other arrays; as kernels take them.
    blocks
        What keeps the addresses good.
    """

    partitions: NDArray[np.int64]
    rows: NDArray[np.int64]
    blocks: Sequence[PartitionBlock]

    @property
    def num_rows(self) -> int:
        """Rows that a search of all of them looks at, dead ones included."""
        return int(self.rows[:, NUM_ROWS_COLUMN].sum())

    def pick(self, places: NDArray[np.int64]) -> HeldPartitions:
        """Return some of them, shape ``(m,)``: their places among these, in any order."""
        blocks = [self.blocks[each] for each in places.tolist()]
        return HeldPartitions(self.partitions[places], self.rows[places], blocks)

    def pieces(self, max_rows: int) -> Iterator[HeldPartitions]:
        """Cut into parts of about ``max_rows`` rows, at least one partition each.

        For work that is split over threads or looks at a deadline in between.
        """
        ends = np.cumsum(self.rows[:, NUM_ROWS_COLUMN])
        start = 0
        while start < len(ends):
            before = int(ends[start - 1]) if start > 0 else 0
            stop = max(int(np.searchsorted(ends, before + max_rows, side="right")), start + 1)
            yield HeldPartitions(
                self.partitions[start:stop], self.rows[start:stop], self.blocks[start:stop]
            )
            start = stop
