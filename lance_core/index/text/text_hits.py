"""Rows that a search may find, and rows that it has found."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from lance_core.errors import InvalidRequestError
from lance_core.index.text.weighted import num_windows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class DocumentRows:
    """Which rows the documents of a partition are now.

    Parameters
    ----------
    row_ids
        Shape ``(num_docs,)``. Those of documents that may not be found do not matter.
    live
        Bit ``d % 64`` of word ``d // 64`` tells whether document ``d`` may be found; None = all
        may.
    """

    row_ids: NDArray[np.uint64]
    live: NDArray[np.uint64] | None = None

    def __post_init__(self) -> None:
        if self.live is not None and len(self.live) != num_windows(len(self.row_ids)):
            raise InvalidRequestError(
                f"{len(self.live)} words of a bit set for {len(self.row_ids)} documents"
            )


@dataclass(frozen=True, slots=True, eq=False)
class TextHits:
    """Rows by descending score, ties by ascending row id.

    Parameters
    ----------
    row_ids, scores
        Shape ``(n,)`` each.
    num_postings
        Postings of all lists that were asked.
    num_windows
        Windows of 64 documents that were looked at, of `num_all_windows`.
    num_all_windows
        Windows that there are.
    """

    row_ids: NDArray[np.uint64]
    scores: NDArray[np.float32]
    num_postings: int = 0
    num_windows: int = 0
    num_all_windows: int = 0

    def boosted(self, boost: np.float32) -> TextHits:
        """Return the rows with their scores multiplied, in order."""
        more = replace(self, scores=self.scores * boost)
        return merged([more], None)


NO_HITS = TextHits(np.zeros(0, np.uint64), np.zeros(0, np.float32))


def merged(parts: Sequence[TextHits], k: int | None) -> TextHits:
    """Return the best ``k`` rows of all parts, all of them if ``k`` is None.

    Each part has its best ``k`` at least.
    """
    if len(parts) == 0:
        return NO_HITS
    row_ids = np.concatenate([each.row_ids for each in parts])
    scores = np.concatenate([each.scores for each in parts])
    order = np.lexsort((row_ids, -scores))[:k]
    return TextHits(
        row_ids[order],
        scores[order],
        sum(each.num_postings for each in parts),
        sum(each.num_windows for each in parts),
        sum(each.num_all_windows for each in parts),
    )
