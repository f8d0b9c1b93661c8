"""A column of texts opened by us and by pylance, and random queries for both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import lance
import numpy as np
from lance.query import FullTextOperator, MatchQuery as TheirMatch, PhraseQuery as TheirPhrase

from lance_core.index.text.parameters import TextParameters
from lance_core.index.text.queries import MatchQuery, PhraseQuery
from lance_core.index.text.search import search_match, search_phrase
from lance_core.index.text.text_hits import DocumentRows
from tests.text_indices import open_text_segments

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from lance_core.index.text.search import Part
    from lance_core.index.text.text_hits import TextHits

OPERATORS: tuple[Literal["or", "and"], ...] = ("or", "and")


class OpenedTexts:
    """A dataset with texts in column ``t``, and the index on it, all of whose rows are live."""

    def __init__(self, path: Path) -> None:
        self.theirs = lance.dataset(str(path))
        self.segments = open_text_segments(path)
        self.parameters = self.segments[0].parameters
        self.parts: list[Part] = [
            (partition, DocumentRows(partition.documents.row_ids()))
            for segment in self.segments
            for partition in segment.partitions
        ]
        self.texts = _filled_texts(self.theirs)

    @classmethod
    def without_index(cls, theirs: lance.LanceDataset) -> OpenedTexts:
        """Return a dataset without an index."""
        opened = cls.__new__(cls)
        opened.theirs, opened.segments, opened.parts = theirs, [], []
        opened.parameters = TextParameters()
        opened.texts = _filled_texts(theirs)
        return opened

    def ours(
        self, query: MatchQuery | PhraseQuery, k: int | None, parts: list[Part] | None = None
    ) -> TextHits:
        """Search all partitions, or some with other rows."""
        searched = self.parts if parts is None else parts
        if isinstance(query, MatchQuery):
            return search_match(searched, self.parameters, query, k, go_on)
        return search_phrase(searched, self.parameters, query, k, go_on)


def go_on() -> None:
    """Let a search go on."""


def sorted_scores(
    both: OpenedTexts, query: MatchQuery | PhraseQuery, k: int | None, **more: Any
) -> NDArray[np.float32]:
    """Return the scores of pylance, the best first."""
    table = both.theirs.to_table(
        columns=["_score"], full_text_query=_theirs(query), limit=k, **more
    )
    return np.sort(table["_score"].to_numpy())[::-1]


def random_words(both: OpenedTexts, rng: np.random.Generator, most: int) -> str:
    """Return some words of a text, the same one perhaps twice, or of several texts."""
    size = int(rng.integers(1, most + 1))
    if rng.random() < 0.5:
        return " ".join(rng.choice(rng.choice(both.texts).split(), size))
    return " ".join(rng.choice(rng.choice(both.texts).split()) for _ in range(size))


def random_phrase(both: OpenedTexts, rng: np.random.Generator) -> str:
    """Return some words of a text as they follow each other, or every second one."""
    words = str(rng.choice(both.texts)).split()
    start, size = int(rng.integers(len(words))), int(rng.integers(1, 5))
    step = int(rng.integers(1, 3))
    return " ".join(words[start : start + step * size : step])


def _filled_texts(theirs: lance.LanceDataset) -> list[str]:
    return [text for text in theirs.to_table(columns=["t"])["t"].to_pylist() if text]


def _theirs(query: MatchQuery | PhraseQuery) -> TheirMatch | TheirPhrase:
    if isinstance(query, PhraseQuery):
        return TheirPhrase(query.text, "t", slop=query.slop)
    return TheirMatch(
        query.text,
        "t",
        boost=query.boost,
        fuzziness=query.fuzziness or 0,
        max_expansions=query.max_expansions,
        operator=FullTextOperator.AND if query.operator == "and" else FullTextOperator.OR,
        prefix_length=query.prefix_length,
    )
