"""Scores of texts that no index covers: read once, scored when all of them are known."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.index.text.json_tokens import token_stream
from lance_core.index.text.list_texts import texts_of_lists
from lance_core.index.text.piece_tokens import Occurrences
from lance_core.index.text.positions import go_on
from lance_core.index.text.queries import MatchQuery, PhraseQuery
from lance_core.index.text.query_tokens import query_tokens
from lance_core.index.text.statistics import CorpusStatistics, MoreTexts
from lance_core.index.text.text_hits import NO_HITS, TextHits, merged
from lance_core.index.text.token_counts import TokenCounts
from lance_core.index.text.tokenizer import Tokenizer
from lance_core.index.text.weighted import weighted_postings
from lance_core.kernels.text_chain import have_chain
from lance_core.kernels.text_weights import weigh

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from lance_core.index.text.parameters import TextParameters
    from lance_core.index.text.partition import TextPartition

_NO_STATISTICS = CorpusStatistics(0, 0)


@dataclass(frozen=True, slots=True, eq=False)
class _Matching:
    """Texts of one array that match.

    Parameters
    ----------
    row_ids, lengths
        Shape ``(n,)`` each.
    counts
        How often they have each distinct token of the query.
    """

    row_ids: NDArray[np.uint64]
    lengths: NDArray[np.uint32]
    counts: TokenCounts


class FlatScorer:
    """Scores texts without an index; belongs to one thread.

    Parameters
    ----------
    parameters
        How tokens are made: those of the index that covers other rows.
    query
        What is looked for. Tokens have to be the same, whatever its fuzziness says (scalar index
        page, 8.8); with slop phrases are found that a search of an index misses (8.9).
    counts_empty
        Whether texts without a token count as documents, as they do where each element of a list
        is one.
    """

    def __init__(
        self,
        parameters: TextParameters,
        query: MatchQuery | PhraseQuery,
        *,
        counts_empty: bool = False,
    ) -> None:
        self._query = query
        self._counts_empty = counts_empty
        tokens = query_tokens(query.text, parameters)
        self._distinct = list(dict.fromkeys(token.text for token in tokens))
        numbers = {text: number for number, text in enumerate(self._distinct)}
        self._tokens = np.array([numbers[token.text] for token in tokens], np.int64)
        self._groups = [
            [numbers[token.text] for token in group]
            for _, group in groupby(tokens, key=lambda token: token.position)
        ]
        self._offsets = np.array([token.position for token in tokens], np.int64)
        self._stream = token_stream(Tokenizer(parameters))
        self._stream.ids_of(self._distinct)  # so that a token's id is its number here
        self._statistics = _NO_STATISTICS
        self._document_frequencies = np.zeros(len(self._distinct), np.int64)
        self._matching: list[_Matching] = []

    def add(self, texts: pa.Array, row_ids: NDArray[np.uint64]) -> None:
        """Look at more texts.

        Parameters
        ----------
        texts
            Strings of any width, or lists of such. They count for the statistics, as in pylance:
            leave out rows that a prefilter does not pass.
        row_ids
            Shape ``(n,)``.
        """
        if pa.types.is_list(texts.type) or pa.types.is_large_list(texts.type):
            texts = texts_of_lists(texts)
        found = self._stream.add(texts)
        lengths = np.bincount(found.texts, minlength=len(texts))
        num_docs = len(texts) if self._counts_empty else int(np.count_nonzero(lengths))
        self._statistics = self._statistics.extended(num_docs, len(found.texts))
        if len(self._distinct) > 0:
            self._keep(found, lengths.astype(np.uint32), row_ids)

    @property
    def counts(self) -> MoreTexts:
        """What the texts that were added add to the statistics of an index."""
        of_tokens = dict(zip(self._distinct, self._document_frequencies.tolist(), strict=True))
        return MoreTexts(self._statistics, of_tokens)

    def hits(
        self,
        partitions: Sequence[TextPartition],
        k: int | None,
        check: Callable[[], object] = go_on,
    ) -> TextHits:
        """Return the best rows of all that were added.

        Parameters
        ----------
        partitions
            Of the index that covers other rows, which count for the statistics; none where there
            is no index.
        k
            Rows wanted, None = all that match.
        check
            Called between pieces of work; raises when it has to stop.

        Raises
        ------
        CorruptFileError
            A file of the index is damaged.
        """
        if len(self._matching) == 0:
            return NO_HITS
        indexed = CorpusStatistics.of(partitions)
        statistics = indexed.extended(self._statistics.num_docs, self._statistics.total_tokens)
        in_all = self._document_frequencies.copy()
        for partition in partitions:
            lists = weighted_postings(partition, self._distinct, indexed.mean_length, check)
            in_all += [len(each) for each in lists]
        rarities = [statistics.rarity(each) for each in in_all.tolist()]
        scored = []
        for each in self._matching:
            check()
            scores = self._scores(each, rarities, statistics.mean_length)
            scored.append(TextHits(each.row_ids, scores))
        return merged(scored, k)

    def _keep(
        self, found: Occurrences, lengths: NDArray[np.uint32], row_ids: NDArray[np.uint64]
    ) -> None:
        """Keep what scores need of the texts that match, and count documents by token."""
        (wanted,) = np.nonzero(found.token_ids < len(self._distinct))
        texts, within = np.unique(found.texts[wanted], return_inverse=True)
        owners = Occurrences(
            within.astype(np.int32), found.token_ids[wanted], found.positions[wanted]
        )
        counts = TokenCounts.of_occurrences(within, owners.token_ids, len(self._distinct))
        self._document_frequencies += counts.document_frequencies
        matches = self._match(counts, owners, len(texts))
        kept = texts[matches]
        if len(kept) > 0:
            own = counts.of_rows(matches)
            self._matching.append(_Matching(row_ids[kept], lengths[kept], own))

    def _match(
        self, counts: TokenCounts, occurrences: Occurrences, num_texts: int
    ) -> NDArray[np.bool_]:
        """Tell which texts match, all of which have one of the tokens that occur in them."""
        matches = np.ones(num_texts, np.bool_)
        if isinstance(self._query, MatchQuery) and self._query.operator == "or":
            return matches
        if isinstance(self._query, PhraseQuery):
            return self._have_phrase(counts, occurrences, num_texts, self._query.slop)
        for group in self._groups:
            have = np.zeros(num_texts, np.bool_)
            for number in group:
                have[counts.of_token(number)[0]] = True
            matches &= have
        return matches

    def _have_phrase(
        self, counts: TokenCounts, found: Occurrences, num_texts: int, slop: int
    ) -> NDArray[np.bool_]:
        """Tell which texts have the phrase: every token, those of one position too.

        A search of an index is content with one of these (observed with pylance 14.0.2).
        """
        num_tokens = len(self._distinct)
        have: NDArray[np.bool_] = np.bincount(counts.rows, minlength=num_texts) == num_tokens
        inside = have[found.texts]
        texts, tokens = (np.cumsum(have) - 1)[found.texts[inside]], found.token_ids[inside]
        shape = (int(np.count_nonzero(have)), num_tokens)
        frequencies = np.bincount(texts * num_tokens + tokens, minlength=shape[0] * shape[1])
        ends = np.cumsum(frequencies).reshape(shape)
        first = frequencies.reshape(shape)[:, :1]
        starts = np.ascontiguousarray(np.column_stack([ends[:, :1] - first, ends]))
        positions = found.positions[inside][np.lexsort((tokens, texts))].astype(np.int64)
        found_there = np.zeros(shape[0], np.bool_)
        have_chain(starts, positions, self._tokens, self._offsets, slop, found_there)
        have[have] = found_there
        return have

    def _scores(
        self, matching: _Matching, rarities: Sequence[np.float32], mean_length: np.float32
    ) -> NDArray[np.float32]:
        """Add up scores as `score_window` does, in the order of the query."""
        counts = matching.counts
        weights = np.empty(len(counts.rows), np.float32)
        weigh(counts.rows, counts.frequencies, matching.lengths, mean_length, weights)
        scores = np.zeros(len(matching.row_ids), np.float32)
        for number in self._tokens.tolist():
            part = slice(int(counts.starts[number]), int(counts.starts[number + 1]))
            scores[counts.rows[part]] += rarities[number] * weights[part]
        boost = 1.0 if isinstance(self._query, PhraseQuery) else self._query.boost
        return scores * np.float32(boost)
