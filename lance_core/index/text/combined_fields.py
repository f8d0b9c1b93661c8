"""Several columns taken as one text: how often a row has each token, how long it is, its score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from lance_core.index.text.json_tokens import token_stream
from lance_core.index.text.list_texts import texts_of_lists
from lance_core.index.text.positions import go_on
from lance_core.index.text.query_tokens import query_tokens
from lance_core.index.text.statistics import CorpusStatistics
from lance_core.index.text.text_hits import NO_HITS, TextHits, merged
from lance_core.index.text.token_counts import TokenCounts
from lance_core.index.text.tokenizer import Tokenizer
from lance_core.row_set import contains, to_ordinals

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from lance_core.index.text.parameters import TextParameters
    from lance_core.index.text.search import Part

_SATURATION = np.float32(1.2)
_BY_LENGTH = np.float32(0.75)
_ONE = np.float32(1)


@dataclass(frozen=True, slots=True, eq=False)
class CountedRows:
    """Rows that have some of the tokens.

    Parameters
    ----------
    row_ids
        Shape ``(n,)``, each once.
    counts
        How often they have each token.
    """

    row_ids: NDArray[np.uint64]
    counts: TokenCounts


class FieldTexts(Protocol):
    """Some texts of one column: those that an index holds, or those that were read."""

    @property
    def statistics(self) -> CorpusStatistics:
        """Sums over the texts, those of deleted rows among them that an index holds."""

    @property
    def document_frequencies(self) -> NDArray[np.int64]:
        """In how many of them each token is, shape ``(m,)``."""

    def counts(self) -> Sequence[CountedRows]:
        """Return the live rows that have some of the tokens; no row is in two parts."""

    def lengths_of(self, row_ids: NDArray[np.uint64]) -> NDArray[np.uint32]:
        """Return how many tokens rows have, shape ``(n,)``; 0 of those that are not here."""


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """One column: what it counts, and its texts."""

    boost: float
    texts: Sequence[FieldTexts]


def distinct_tokens(text: str, parameters: TextParameters) -> list[str]:
    """Return the tokens of a text, each once: here those that occur twice do not count twice.

    Notes
    -----
    Observed with pylance 14.0.2.
    """
    return list(dict.fromkeys(token.text for token in query_tokens(text, parameters)))


def score_fields(
    fields: Sequence[Field], *, needs_all: bool, check: Callable[[], object] = go_on
) -> TextHits:
    """Return all rows that have one of the tokens in one of the columns, or all tokens.

    Parameters
    ----------
    fields
        The columns. All look for equally many tokens.
    needs_all
        Whether a row needs all tokens, each in any column.
    check
        Called between pieces of work; raises when it has to stop.

    Notes
    -----
    Scalar index page, 8.8: columns count by their boosts, in frequencies and lengths; a token is as
    rare as in the column where it is most frequent, among as many documents as the column has that
    has most. All rows go by the same statistics, whether an index holds them or not (observed with
    pylance 14.0.2).
    """
    counts = [[each for texts in field.texts for each in texts.counts()] for field in fields]
    none = np.zeros(0, np.uint64)  # no column may have a document
    row_ids = np.unique(np.concatenate([none, *(c.row_ids for some in counts for c in some)]))
    if len(row_ids) == 0:
        return NO_HITS
    parts = [
        (np.float32(field.boost), np.searchsorted(row_ids, each.row_ids), each.counts)
        for field, some in zip(fields, counts, strict=True)
        for each in some
    ]
    rarities, damping = _weighing(fields, row_ids)
    scores = np.zeros(len(row_ids), np.float32)
    num_found = np.zeros(len(row_ids), np.int64)
    for number, rarity in enumerate(rarities):
        check()
        frequency = np.zeros(len(row_ids), np.float32)
        for boost, places, own in parts:
            rows, frequencies = own.of_token(number)
            frequency[places[rows]] += boost * frequencies.astype(np.float32)
        num_found += frequency > 0
        scores += rarity * ((_SATURATION + _ONE) * frequency / (frequency + damping))
    kept = num_found >= (len(rarities) if needs_all else 1)
    return merged([TextHits(row_ids[kept], scores[kept])], None)


def _weighing(
    fields: Sequence[Field], row_ids: NDArray[np.uint64]
) -> tuple[list[np.float32], NDArray[np.float32]]:
    """Return how rare each token is, and what damps the frequencies in each row."""
    num_tokens = len(fields[0].texts[0].document_frequencies)
    lengths = np.zeros(len(row_ids), np.float32)
    num_docs, total = 0, np.float32(0)
    in_all = np.zeros(num_tokens, np.int64)
    for field in fields:
        boost, statistics = np.float32(field.boost), CorpusStatistics(0, 0)
        document_frequencies = np.zeros(num_tokens, np.int64)
        for texts in field.texts:
            lengths += boost * texts.lengths_of(row_ids).astype(np.float32)
            more = texts.statistics
            statistics = statistics.extended(more.num_docs, more.total_tokens)
            document_frequencies += texts.document_frequencies
        total += boost * np.float32(statistics.total_tokens)
        num_docs = max(num_docs, statistics.num_docs)
        in_all = np.maximum(in_all, document_frequencies)
    mean = max(total / np.float32(max(num_docs, 1)), np.float32(1e-30))
    damping = _SATURATION * ((_ONE - _BY_LENGTH) + _BY_LENGTH * lengths / mean)
    of_all = CorpusStatistics(num_docs, 0)
    return [of_all.rarity(each) for each in in_all.tolist()], damping


class IndexedTexts:
    """The texts of a column that an index holds; see `FieldTexts`.

    Parameters
    ----------
    parts
        Its partitions, and the rows of their documents.
    tokens
        Distinct.
    check
        Called between pieces of work; raises when it has to stop.
    """

    def __init__(
        self,
        parts: Sequence[Part],
        tokens: Sequence[str],
        check: Callable[[], object] = go_on,
    ) -> None:
        self._parts = parts
        self._check = check
        self._counts: list[CountedRows] = []
        self.statistics = CorpusStatistics.of([partition for partition, _ in parts])
        self.document_frequencies = np.zeros(len(tokens), np.int64)
        for part in parts:
            self._counts.append(self._count(part, tokens))

    def counts(self) -> Sequence[CountedRows]:
        """Return the live rows that have some of the tokens, by partition."""
        return self._counts

    def lengths_of(self, row_ids: NDArray[np.uint64]) -> NDArray[np.uint32]:
        """Return how many tokens rows have, shape ``(n,)``.

        Notes
        -----
        Observed with pylance 14.0.2: here they are not rounded where blocks have 256 postings.
        """
        lengths = np.zeros(len(row_ids), np.uint32)
        for partition, rows in self._parts:
            of_docs = partition.documents.lengths()
            if rows.live is None:
                _look_up(row_ids, rows.row_ids, of_docs, lengths)
            else:
                docs = to_ordinals(rows.live)
                _look_up(row_ids, rows.row_ids[docs], of_docs[docs], lengths)
        return lengths

    def _count(self, part: Part, tokens: Sequence[str]) -> CountedRows:
        partition, rows = part
        numbers = partition.token_ids(tokens)
        (known,) = np.nonzero(numbers >= 0)
        lists = partition.postings(numbers[known].tolist(), self._check)
        self.document_frequencies[known] += np.array([len(each) for each in lists], np.int64)
        every = [np.empty(0, np.uint32), *(each.docs for each in lists)]
        docs = np.unique(np.concatenate(every))
        if rows.live is not None:
            docs = docs[contains(rows.live, docs)]
        none, sizes = np.zeros(0, np.uint32), np.zeros(len(tokens), np.int64)
        own_rows, frequencies = [none], [none]
        for number, each in zip(known.tolist(), lists, strict=True):
            at = _places(each.docs, docs)
            own_rows.append(at[at >= 0].astype(np.uint32))
            frequencies.append(each.frequencies[at >= 0])
            sizes[number] = len(own_rows[-1])
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        counts = TokenCounts(starts, np.concatenate(own_rows), np.concatenate(frequencies))
        return CountedRows(rows.row_ids[docs], counts)


class ReadTexts:
    """The texts of a column that were read; see `FieldTexts`.

    Parameters
    ----------
    parameters
        How tokens are made.
    tokens
        Distinct.
    """

    def __init__(self, parameters: TextParameters, tokens: Sequence[str]) -> None:
        self._stream = token_stream(Tokenizer(parameters))
        self._stream.ids_of(list(tokens))  # so that a token's id is its number here
        self._counts: list[CountedRows] = []
        self._row_ids: list[NDArray[np.uint64]] = [np.empty(0, np.uint64)]
        self._lengths: list[NDArray[np.uint32]] = [np.empty(0, np.uint32)]
        self.statistics = CorpusStatistics(0, 0)
        self.document_frequencies = np.zeros(len(tokens), np.int64)

    def add(self, texts: pa.Array, row_ids: NDArray[np.uint64]) -> None:
        """Look at texts, or lists of such, of live rows, whose ids are ``row_ids``, ``(n,)``."""
        if pa.types.is_list(texts.type) or pa.types.is_large_list(texts.type):
            texts = texts_of_lists(texts)
        found = self._stream.add(texts)
        lengths = np.bincount(found.texts, minlength=len(texts)).astype(np.uint32)
        self._row_ids.append(row_ids)
        self._lengths.append(lengths)
        self.statistics = self.statistics.extended(int(np.count_nonzero(lengths)), len(found.texts))
        num_tokens = len(self.document_frequencies)
        (wanted,) = np.nonzero(found.token_ids < num_tokens)
        rows, within = np.unique(found.texts[wanted], return_inverse=True)
        counts = TokenCounts.of_occurrences(within, found.token_ids[wanted], num_tokens)
        self.document_frequencies += counts.document_frequencies
        self._counts.append(CountedRows(row_ids[rows], counts))

    def counts(self) -> Sequence[CountedRows]:
        """Return the rows that have some of the tokens, by what was added."""
        return self._counts

    def lengths_of(self, row_ids: NDArray[np.uint64]) -> NDArray[np.uint32]:
        """Return how many tokens rows have, shape ``(n,)``."""
        found = np.zeros(len(row_ids), np.uint32)
        _look_up(row_ids, np.concatenate(self._row_ids), np.concatenate(self._lengths), found)
        return found


def _look_up(
    wanted: NDArray[np.uint64],
    row_ids: NDArray[np.uint64],
    lengths: NDArray[np.uint32],
    found: NDArray[np.uint32],
) -> None:
    """Write the lengths of those of the wanted rows that are among others."""
    places = _places(wanted, row_ids)
    found[places >= 0] = lengths[places[places >= 0]]


def _places(wanted: NDArray[np.integer], among: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return where each is among others, shape ``(n,)``; -1 if it is not there."""
    if len(among) == 0:
        return np.full(len(wanted), -1, np.int64)
    order = None
    if not bool((among[1:] > among[:-1]).all()):
        order = np.argsort(among, kind="stable")
        among = among[order]
    at = np.minimum(np.searchsorted(among, wanted), len(among) - 1)
    found = among[at] == wanted
    return np.where(found, at if order is None else order[at], -1)
