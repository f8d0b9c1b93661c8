"""Search of one logical index: the best documents of all partitions of its segments.

Weights of postings are worked out once and kept, block by block of documents what is best in them:
a query adds up numbers where they can matter, and each partition is one call of a kernel, or some.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lance_core.errors import InvalidRequestError
from lance_core.index.text.part_search import PartSearch
from lance_core.index.text.positions import NEEDS_POSITIONS
from lance_core.index.text.query_tokens import (
    WantedToken,
    looked_for,
    query_positions,
    wanted_tokens,
)
from lance_core.index.text.statistics import NO_MORE, CorpusStatistics
from lance_core.index.text.text_hits import NO_HITS, DocumentRows, TextHits, merged
from lance_core.index.text.weighted import weighted_postings
from lance_core.kernels.memory import address_of
from lance_core.kernels.text_phrase import NUM_PHRASE_COLUMNS, Phrase
from lance_core.kernels.text_windows import Lists

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lance_core.index.text.parameters import TextParameters
    from lance_core.index.text.partition import TextPartition
    from lance_core.index.text.positions import PositionList
    from lance_core.index.text.queries import MatchQuery, PhraseQuery
    from lance_core.index.text.statistics import MoreTexts
    from lance_core.index.text.weighted import WeightedPostings

Part = tuple["TextPartition", DocumentRows]
"""A partition and the rows of its documents."""

_MOST_KEPT = 10_000
"""More than so many best documents are sorted out of all that match."""

_ANYWHERE = Phrase(np.zeros((0, NUM_PHRASE_COLUMNS), np.int64), np.zeros(1, np.int64), 0)


def search_match(
    parts: Sequence[Part],
    parameters: TextParameters,
    query: MatchQuery,
    k: int | None,
    check: Callable[[], object],
    more: MoreTexts = NO_MORE,
) -> TextHits:
    """Find the best rows for a match query.

    Parameters
    ----------
    parts
        All partitions of all segments of the index; statistics are those of all of them.
    parameters
        How the index makes tokens.
    query
        What is looked for; its column does not matter.
    k
        Rows wanted, None = all that match.
    check
        Called between pieces of work of some milliseconds; raises when the work has to stop.
    more
        Texts beside those of the index that count for the statistics.

    Raises
    ------
    InvalidRequestError
        The text has too many tokens, or tokens near one of it cannot be looked for.
    CorruptFileError
        A file of the index is damaged.

    Notes
    -----
    Scalar index page, 8.7 and 8.8. Of rows with the same score at the end of the list, those of
    earlier partitions and lower document numbers are taken.
    """
    tokens = looked_for(query, parameters)
    wanted = wanted_tokens(query, tokens, [partition for partition, _ in parts], check)
    num_groups = len(query_positions(tokens)) if query.operator == "and" else 0
    hits = _search(parts, wanted, num_groups, None, k, check, more)
    if query.boost == 1:
        return hits
    return hits.boosted(np.float32(query.boost))


def search_phrase(
    parts: Sequence[Part],
    parameters: TextParameters,
    query: PhraseQuery,
    k: int | None,
    check: Callable[[], object],
    more: MoreTexts = NO_MORE,
) -> TextHits:
    """Find the best rows that have a phrase; as `search_match`.

    Raises
    ------
    InvalidRequestError
        The index has no positions, or the text has too many tokens.
    CorruptFileError
        A file of the index is damaged.
    """
    if not all(partition.has_positions for partition, _ in parts):
        raise InvalidRequestError(NEEDS_POSITIONS)
    tokens = looked_for(query, parameters)
    wanted = wanted_tokens(query, tokens, [partition for partition, _ in parts], check)
    phrase = _WantedPhrase(query_positions(tokens), query.slop)
    return _search(parts, wanted, len(phrase.positions), phrase, k, check, more)


@dataclass(frozen=True, slots=True)
class _WantedPhrase:
    """Positions of the query, one for each group of tokens, that have to be near one another."""

    positions: Sequence[int]
    slop: int

    def of_lists(self, wanted: Sequence[WantedToken], held: Sequence[PositionList]) -> Phrase:
        """Return the phrase for the kernel; ``held`` are the positions of ``wanted``."""
        rows = [
            (address_of(each.starts), address_of(each.positions), self.positions[token.group])
            for each, token in zip(held, wanted, strict=True)
        ]
        groups = [token.group for token in wanted]
        firsts = np.searchsorted(groups, np.arange(len(self.positions) + 1))
        return Phrase(np.array(rows, np.int64), firsts.astype(np.int64), self.slop)


def _search(
    parts: Sequence[Part],
    wanted: Sequence[Sequence[WantedToken]],
    num_groups: int,
    phrase: _WantedPhrase | None,
    k: int | None,
    check: Callable[[], object],
    more: MoreTexts,
) -> TextHits:
    """Search all partitions; ``wanted`` says what to look for in each of them."""
    indexed = CorpusStatistics.of([partition for partition, _ in parts])
    statistics = indexed.extended(more.statistics.num_docs, more.statistics.total_tokens)
    distinct = list(dict.fromkeys(each.text for some in wanted for each in some))
    found = [
        _found(partition, distinct, statistics.mean_length, check, has_phrase=phrase is not None)
        for partition, _ in parts
    ]
    rarities = {
        token: statistics.rarity(
            sum(len(each[token]) for each in found) + more.document_frequencies.get(token, 0)
        )
        for token in distinct
    }
    hits = NO_HITS
    for (partition, rows), some, lists in zip(parts, wanted, found, strict=True):
        check()
        search = _part_search(partition, rows, some, lists, rarities, num_groups, phrase, check)
        if search is not None:
            hits = merged([hits, _hits_of(search, k, hits, check)], k)
    return hits


def _hits_of(
    search: PartSearch, k: int | None, before: TextHits, check: Callable[[], object]
) -> TextHits:
    """Return the best rows of one partition; those that earlier ones outdo are left out."""
    if k is None or k > _MOST_KEPT:
        return search.all(check)
    least = before.scores[-1] if len(before.scores) == k > 0 else np.float32(0)
    return search.best(k, least, check)


def _found(
    partition: TextPartition,
    tokens: Sequence[str],
    mean_length: np.float32,
    check: Callable[[], object],
    *,
    has_phrase: bool,
) -> dict[str, WeightedPostings]:
    check()
    lists = weighted_postings(partition, tokens, mean_length, check, keep_frequencies=has_phrase)
    return dict(zip(tokens, lists, strict=True))


def _part_search(
    partition: TextPartition,
    rows: DocumentRows,
    wanted: Sequence[WantedToken],
    found: dict[str, WeightedPostings],
    rarities: dict[str, np.float32],
    num_groups: int,
    phrase: _WantedPhrase | None,
    check: Callable[[], object],
) -> PartSearch | None:
    """Return the search of one partition, None if no document of it can match."""
    used = [each for each in wanted if len(found[each.text]) > 0]
    if len(used) == 0 or num_groups > len({each.group for each in used}):
        return None
    table = np.array([(*found[each.text].row, each.group) for each in used], np.int64)
    lists = Lists(table, np.array([rarities[each.text] for each in used], np.float32), num_groups)
    kept = [found[each.text] for each in used]
    if phrase is None:
        return PartSearch(rows, lists, _ANYWHERE, 0, tuple(kept))
    numbers = partition.token_ids([each.text for each in used])
    held = partition.positions(numbers.tolist(), check)
    num_positions = sum(len(each.positions) for each in held)
    return PartSearch(rows, lists, phrase.of_lists(used, held), num_positions, (*kept, *held))
