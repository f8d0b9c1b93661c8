"""How often rows have tokens, told only of those that they have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TOKEN_SHIFT = 32


@dataclass(frozen=True, slots=True, eq=False)
class TokenCounts:
    """How often rows, which are numbered from 0, have some tokens.

    A table of all rows and tokens could be larger than memory: a query has up to thousands.

    Parameters
    ----------
    starts
        Shape ``(m + 1,)``: where the rows of each token begin, and their number at the end.
    rows, frequencies
        Shape ``(n,)``: rows that have a token, ascending for each, and how often.
    """

    starts: NDArray[np.int64]
    rows: NDArray[np.uint32]
    frequencies: NDArray[np.uint32]

    @classmethod
    def of_occurrences(
        cls, rows: NDArray[np.integer], tokens: NDArray[np.integer], num_tokens: int
    ) -> TokenCounts:
        """Count occurrences, each told by its row and the number of its token; ``(n,)`` both."""
        keys = tokens.astype(np.int64) << _TOKEN_SHIFT | rows.astype(np.int64)
        cells, frequencies = np.unique(keys, return_counts=True)
        starts = np.searchsorted(cells >> _TOKEN_SHIFT, np.arange(num_tokens + 1))
        return cls(starts.astype(np.int64), cells.astype(np.uint32), frequencies.astype(np.uint32))

    @property
    def document_frequencies(self) -> NDArray[np.int64]:
        """How many rows have each token, shape ``(m,)``."""
        return np.diff(self.starts)

    def of_token(self, number: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """Return the rows that have a token, and how often."""
        part = slice(int(self.starts[number]), int(self.starts[number + 1]))
        return self.rows[part], self.frequencies[part]

    def of_rows(self, kept: NDArray[np.bool_]) -> TokenCounts:
        """Return the counts of some rows, which are numbered anew from 0."""
        numbers = np.cumsum(kept) - 1
        are_kept = kept[self.rows]
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(are_kept)])
        rows = numbers[self.rows[are_kept]].astype(np.uint32)
        return TokenCounts(before[self.starts], rows, self.frequencies[are_kept])
