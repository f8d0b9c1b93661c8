"""Tokens of a query, and those near them, as an index looks them up."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from lance_core.errors import InvalidRequestError
from lance_core.index.text.json_tokens import json_query_tokens
from lance_core.index.text.parameters import JSON, TextParameters
from lance_core.index.text.queries import MatchQuery
from lance_core.index.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lance_core.index.text.partition import TextPartition
    from lance_core.index.text.queries import PhraseQuery
    from lance_core.index.text.tokenizer import Token

MOST_TOKENS = 4096
"""Tokens of one query."""

_MOST_KEPT = 16
_MOST_PIECES = 4096
_ONLY_CUT = TextParameters(
    max_token_length=None,
    lower_case=False,
    stem=False,
    remove_stop_words=False,
    ascii_folding=False,
)
_of_thread = threading.local()


@dataclass(frozen=True, slots=True)
class WantedToken:
    """A token that is looked for, and for which token of the query, counted from 0."""

    text: str
    group: int


def query_tokens(text: str, parameters: TextParameters) -> list[Token]:
    """Return the tokens of a query, by position; those that occur twice are there twice.

    Raises
    ------
    InvalidRequestError
        They are too many, or do not say where in JSON documents they are.
    """
    tokenizer = _tokenizer(parameters)
    is_json = parameters.lance_tokenizer == JSON
    found = json_query_tokens(text, tokenizer) if is_json else tokenizer.each_token(text)
    tokens = list(islice(found, MOST_TOKENS + 1))  # each may take long to make
    if len(tokens) > MOST_TOKENS:
        raise InvalidRequestError(
            f"a text query has more than {MOST_TOKENS} tokens, which is as many as are looked for"
        )
    return tokens


def looked_for(query: MatchQuery | PhraseQuery, parameters: TextParameters) -> list[Token]:
    """Return the tokens of a query; what near tokens are looked for is only cut into words.

    Errors as `query_tokens`.
    """
    is_fuzzy = isinstance(query, MatchQuery) and query.distance > 0
    only_cut = replace(_ONLY_CUT, lance_tokenizer=parameters.lance_tokenizer)
    return query_tokens(query.text, only_cut if is_fuzzy else parameters)


def wanted_tokens(
    query: MatchQuery | PhraseQuery,
    tokens: Sequence[Token],
    partitions: Sequence[TextPartition],
    check: Callable[[], object],
) -> list[list[WantedToken]]:
    """Return what each partition has to be asked for: the query's tokens, or those near them.

    Those of one position are one group, any of which will do. They come in the order of their
    numbers in the partition, and none twice (observed with pylance 14.0.2). ``check`` is called
    between pieces of work; it raises when the work has to stop.

    Raises
    ------
    CorruptFileError
        A dictionary is damaged.
    InvalidRequestError
        A token or the distance is too long to compare.
    """
    if isinstance(query, MatchQuery) and query.distance > 0:
        return _by_number(_near_tokens(query, tokens, partitions, check), partitions)
    positions = query_positions(tokens)
    groups = {position: group for group, position in enumerate(positions)}
    wanted = [WantedToken(each.text, groups[each.position]) for each in tokens]
    if len(positions) == len(tokens):
        return [wanted] * len(partitions)
    return _by_number(wanted, partitions)


def query_positions(tokens: Sequence[Token]) -> list[int]:
    """Return the positions that have tokens, ascending, one for each group."""
    return list(dict.fromkeys(token.position for token in tokens))


def _near_tokens(
    query: MatchQuery,
    tokens: Sequence[Token],
    partitions: Sequence[TextPartition],
    check: Callable[[], object],
) -> list[WantedToken]:
    """Return tokens near those of a query, each of which has a position of its own.

    All of them share ``max_expansions``, the first ones first, and of one those are taken that are
    first by their bytes in all partitions (observed with pylance 14.0.2).
    """
    found: list[WantedToken] = []
    for group, token in enumerate(tokens):
        most = query.max_expansions - len(found)
        if most > 0:
            fixed = token.num_fixed + query.prefix_length
            near: set[str] = set()
            for partition in partitions:
                check()
                texts, _ = partition.expand(
                    token.text, query.distance, prefix_length=fixed, most=most
                )
                near.update(texts)
            first = sorted(near, key=str.encode)[:most]
            found.extend(WantedToken(text, group) for text in first)
    return found


def _by_number(
    wanted: Sequence[WantedToken], partitions: Sequence[TextPartition]
) -> list[list[WantedToken]]:
    """Return tokens by group and by number in each partition, without those that repeat."""
    distinct = list(dict.fromkeys(wanted))
    texts = [each.text for each in distinct]
    groups = np.array([each.group for each in distinct], np.int64)
    return [
        [distinct[place] for place in np.lexsort((partition.token_ids(texts), groups))]
        for partition in partitions
    ]


class _QueryTokenizer(Tokenizer):
    """A tokenizer that remembers pieces: stemming one takes ten microseconds."""

    def __init__(self, parameters: TextParameters) -> None:
        super().__init__(parameters)
        self._known = lru_cache(_MOST_PIECES)(super().tokens_of_piece)

    def tokens_of_piece(self, piece: str) -> tuple[list[Token], int]:
        """Return the tokens of one piece; shared, do not change them."""
        return self._known(piece)


def _tokenizer(parameters: TextParameters) -> Tokenizer:
    """Return a tokenizer of this thread; making one takes a millisecond."""
    known: dict[TextParameters, Tokenizer] = _of_thread.__dict__.setdefault("known", {})
    found = known.get(parameters)
    if found is None:
        if len(known) >= _MOST_KEPT:
            known.clear()
        found = known[parameters] = _QueryTokenizer(parameters)
    return found
