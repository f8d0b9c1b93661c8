"""What scores depend on beside the document: how many there are, how long, how rare a token is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.text_weights import rarity_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lance_core.index.text.partition import TextPartition

_LEAST_MEAN = np.float32(1e-30)
"""Files that tell of no tokens at all must not make scores that are no numbers."""


@dataclass(frozen=True, slots=True)
class CorpusStatistics:
    """Sums over all documents that are scored alike, deleted ones among them.

    Parameters
    ----------
    num_docs
        Documents with a token at least.
    total_tokens
        Their lengths added up.
    """

    num_docs: int
    total_tokens: int

    @classmethod
    def of(cls, partitions: Iterable[TextPartition]) -> CorpusStatistics:
        """Add up those of partitions; old files have to be read for it."""
        num_docs = total_tokens = 0
        for each in partitions:
            num_docs += each.num_docs
            total_tokens += each.documents.total_tokens()
        return cls(num_docs, total_tokens)

    def extended(self, num_docs: int, total_tokens: int) -> CorpusStatistics:
        """Return the sums with those of more documents."""
        return CorpusStatistics(self.num_docs + num_docs, self.total_tokens + total_tokens)

    @property
    def mean_length(self) -> np.float32:
        """How many tokens a document has, always above 0."""
        mean = np.float32(self.total_tokens) / np.float32(max(self.num_docs, 1))
        return max(mean, _LEAST_MEAN)

    def rarity(self, document_frequency: int) -> np.float32:
        """Return what weights are multiplied with of a token that so many documents have."""
        return np.float32(rarity_of(self.num_docs, document_frequency))


@dataclass(frozen=True, slots=True)
class MoreTexts:
    """What texts beside those of an index add to its statistics.

    Parameters
    ----------
    statistics
        Their sums.
    document_frequencies
        In how many of them each token is; those that are absent are in none.
    """

    statistics: CorpusStatistics
    document_frequencies: Mapping[str, int]


NO_MORE = MoreTexts(CorpusStatistics(0, 0), {})
