"""Whether a search would find in memory all that it needs of an index."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.index.text.positions import go_on
from lance_core.index.text.queries import MatchQuery, PhraseQuery
from lance_core.index.text.query_tokens import looked_for, wanted_tokens
from lance_core.index.text.statistics import CorpusStatistics
from lance_core.index.text.weighted import are_held

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance_core.index.text.parameters import TextParameters
    from lance_core.index.text.partition import TextPartition

_MOST_CHARACTERS = 1024
"""Texts that are longer take long to make tokens of."""

_MOST_NEAR = 64
"""As `_MOST_CHARACTERS` where tokens near those of the text are looked for."""


def is_held(
    partitions: Sequence[TextPartition],
    parameters: TextParameters,
    query: MatchQuery | PhraseQuery,
) -> bool:
    """Tell whether a search reads nothing, and takes few steps to say what it looks for.

    Parameters
    ----------
    partitions
        All of the index.
    parameters
        How the index makes tokens.
    query
        What is looked for.
    """
    if len(query.text) > _MOST_CHARACTERS or _are_many_near(query):
        return False
    if not all(each.holds_dictionary for each in partitions):
        return False
    tokens = looked_for(query, parameters)
    by_partition = wanted_tokens(query, tokens, partitions, go_on)
    texts = {wanted.text for some in by_partition for wanted in some}
    mean_length = CorpusStatistics.of(partitions).mean_length
    distinct = sorted(texts)
    if not all(are_held(each, distinct, mean_length) for each in partitions):
        return False
    return not isinstance(query, PhraseQuery) or all(
        each.holds_positions(_known(each, distinct)) for each in partitions
    )


def _are_many_near(query: MatchQuery | PhraseQuery) -> bool:
    """Tell whether it takes long to find tokens near those of a query."""
    return isinstance(query, MatchQuery) and query.distance > 0 and len(query.text) > _MOST_NEAR


def _known(partition: TextPartition, tokens: Sequence[str]) -> list[int]:
    numbers = partition.token_ids(tokens)
    return [] if (numbers < 0).any() else numbers.tolist()
