"""Texts whose words have the frequencies of natural language.

Word number ``r`` of the vocabulary is drawn with a probability proportional to ``r ** -1.07``
(Zipf's law), each word by itself: what matters to an inverted index is how long its lists are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from numpy.typing import NDArray

EXPONENT = 1.07

_SEED = 8
_LENGTHS = (10, 60)
_LONG_LENGTHS = (200, 2_000)
_LONG_SHARE = 0.001
_CONSONANTS = "bdfghjklmnprtv"
_VOWELS = "aeiou"


@dataclass(frozen=True, slots=True, eq=False)
class Vocabulary:
    """Words, the most frequent first, and float64 upper ends of the shares that each has of 1."""

    words: list[str]
    bounds: NDArray[np.float64]

    @classmethod
    def of(cls, num_words: int) -> Vocabulary:
        """Make words of two to four syllables, none of them twice, always the same ones."""
        chances = np.arange(1, num_words + 1) ** -EXPONENT
        return cls(_words(num_words), np.cumsum(chances / chances.sum()))

    def draw(self, lengths: NDArray[np.int64], generator: np.random.Generator) -> DrawnTexts:
        """Draw texts of so many words."""
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        drawn = np.searchsorted(self.bounds, generator.random(offsets[-1]), side="right")
        return DrawnTexts(self, np.minimum(drawn, len(self.words) - 1), offsets)


@dataclass(frozen=True, slots=True, eq=False)
class DrawnTexts:
    """Texts as numbers of words: those of text ``i`` begin at ``offsets[i]``, up to the next."""

    vocabulary: Vocabulary
    numbers: NDArray[np.int64]
    offsets: NDArray[np.int64]

    def to_arrow(self) -> pa.StringArray:
        """Return the texts, blanks between the words."""
        words = pa.array(self.vocabulary.words).take(self.numbers)
        lists = pa.ListArray.from_arrays(pa.array(self.offsets, pa.int32()), words)
        return pc.binary_join(lists, " ")

    def document_counts(self) -> NDArray[np.int64]:
        """Return how many texts have each word."""
        num_words = len(self.vocabulary.words)
        texts = np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))
        distinct = np.unique(texts * num_words + self.numbers) % num_words
        return np.bincount(distinct, minlength=num_words)

    def neighbours(self, count: int, generator: np.random.Generator) -> NDArray[np.int64]:
        """Return pairs of words that stand beside each other, shape ``(count, 2)``."""
        texts = generator.integers(len(self.offsets) - 1, size=count)
        lengths = np.diff(self.offsets)[texts]
        firsts = self.offsets[texts] + generator.integers(lengths - 1)
        return np.stack([self.numbers[firsts], self.numbers[firsts + 1]], axis=1)


def draw_lengths(num: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """Return numbers of words, a few of which are far above the others."""
    lengths = generator.integers(_LENGTHS[0], _LENGTHS[1] + 1, size=num)
    is_long = generator.random(num) < _LONG_SHARE
    lengths[is_long] = generator.integers(*_LONG_LENGTHS, size=int(is_long.sum()))
    return lengths


def _words(num_words: int) -> list[str]:
    generator = np.random.default_rng(_SEED)
    syllables = [consonant + vowel for consonant in _CONSONANTS for vowel in _VOWELS]
    base = len(syllables)
    short = generator.permutation(base**2)[: num_words // 50]
    middle = generator.permutation(base**3)[: num_words // 2]
    long = generator.choice(base**4, num_words - len(short) - len(middle), replace=False)
    words = []
    for codes, num_syllables in ((short, 2), (middle, 3), (long, 4)):
        digits = codes[:, np.newaxis] // base ** np.arange(num_syllables) % base
        words += ["".join(syllables[digit] for digit in word) for word in digits.tolist()]
    return words
