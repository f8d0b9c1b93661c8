"""Scores of text queries by the formulas of the format, over all rows and without any pruning.

It decides where we and pylance find different rows. What an index holds of a token is read by the
library, which other tests hold to the texts.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from lance_core.cache.byte_cache import ByteCache
from lance_core.index.text.parameters import given_parameters
from lance_core.index.text.queries import (
    BooleanQuery,
    BoostQuery,
    CombinedFieldsQuery,
    MatchQuery,
    MultiMatchQuery,
    PhraseQuery,
)
from lance_core.index.text.segment import open_text_segment
from lance_core.index.text.tokenizer import Token, Tokenizer
from lance_core.io.open import open_store
from lance_core.io.scheduler import RangeScheduler
from lance_core.table.snapshot import open_snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from lance_core.index.text.partition import TextPartition
    from lance_core.index.text.queries import TextNode
    from tests.text_asks import Ask
    from tests.text_tables import TextTable

    Scores = NDArray[np.float64]

_K1 = 1.2
_B = 0.75
_CACHE_BYTES = 256 << 20
_NOWHERE = ""
"""What a token stands for that nothing in the index is near."""
_WITHOUT_INDEX = {
    "lower_case": False,
    "stem": False,
    "remove_stop_words": False,
    "ascii_folding": False,
    "max_token_length": None,
}


class Judge:
    """Answers queries over one state of a table; a score is NaN where a row is not found."""

    def __init__(self, table: TextTable) -> None:
        self._live = table.open().to_table()
        self._num_ids = table.num_written
        self._columns = {name: _Column(table, name, self._live) for name in ("t", "s", "p")}

    def scores(self, ask: Ask) -> list[float]:
        """Return the scores of the best rows, best first."""
        rows = self._live["id"].to_numpy()
        passes = np.ones(len(rows), bool)
        if ask.filter is not None:
            passes = self._live["u"].to_numpy() < int(ask.filter.rpartition(" ")[2])
        for column in self._columns.values():
            column.counted = set(rows[passes].tolist()) if ask.prefilter else None
            column.is_all = not ask.fast_search
        found = self._node(ask.query)[rows]
        if ask.prefilter:
            found = np.where(passes, found, np.nan)
        if ask.fast_search:
            found = np.where(self._columns["t"].is_indexed[rows], found, np.nan)
        order = np.argsort(-found)  # NaN come last
        best = order[: int((~np.isnan(found)).sum())][ask.offset :][: ask.k]
        scores: list[float] = found[best[passes[best]]].tolist()
        return scores

    def _node(self, node: TextNode) -> Scores:
        match node:
            case MatchQuery():
                columns = ("t", "s") if node.column is None else (node.column,)
                return _best([self._columns[each].match(node) for each in columns])
            case PhraseQuery():
                return self._columns[str(node.column)].phrase(node)
            case BooleanQuery():
                return self._boolean(node)
            case BoostQuery():
                negative = np.nan_to_num(self._node(node.negative))
                return self._node(node.positive) - node.negative_boost * negative
            case MultiMatchQuery():
                return _best([self._columns[str(each.column)].match(each) for each in node.matches])
            case CombinedFieldsQuery():
                return self._combined(node)

    def _boolean(self, node: BooleanQuery) -> Scores:
        must, should, must_not = (
            np.array([self._node(each) for each in nodes]).reshape(-1, self._num_ids)
            for nodes in (node.must, node.should, node.must_not)
        )
        has = ~np.isnan(must).any(axis=0) if len(must) > 0 else ~np.isnan(should).all(axis=0)
        has &= np.isnan(must_not).all(axis=0)
        total = np.nansum(must, axis=0) + np.nansum(should, axis=0)
        return np.where(has, total, np.nan)

    def _combined(self, node: CombinedFieldsQuery) -> Scores:
        """Score columns taken as one: a token counts once, and filters change no statistics.

        After a deferred compaction pylance 14.0.2 leaves out of some statistics, not of all, what
        was deleted before, except in format 3; it is wrong there.
        """
        boosts = [1.0] * len(node.columns) if node.boosts is None else node.boosts
        fields = [self._columns[name].field(node.text) for name in node.columns]
        weighted = list(zip(boosts, fields, strict=True))
        frequencies = sum(boost * each.frequencies for boost, each in weighted)
        lengths = sum(boost * each.lengths for boost, each in weighted)
        num_docs = max(each.totals.num_docs for each in fields)
        num_tokens = sum(boost * each.totals.num_tokens for boost, each in weighted)
        counts = {
            token: max(each.totals.counts[token] for each in fields)
            for token in fields[0].totals.counts
        }
        totals = _Totals(num_docs, num_tokens, counts)
        has = np.asarray(frequencies) > 0
        kept = has.all(axis=0) if node.operator == "and" else has.any(axis=0)
        scores = sum(
            totals.weight(token, own, lengths)
            for token, own in zip(counts, np.asarray(frequencies), strict=True)
        )
        return np.where(kept & (len(counts) > 0), scores, np.nan)


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """A partition, and the id of the row of each document, -1 where the row is no more."""

    partition: TextPartition
    ids: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class _Field:
    """How often rows have each token ``(m, n)``, and how long they are, by id."""

    frequencies: NDArray[np.float64]
    lengths: NDArray[np.float64]
    totals: _Totals


class _Column:
    """One column with its index, if it has one, and the texts that are in none."""

    def __init__(self, table: TextTable, name: str, live: pa.Table) -> None:
        self._num_ids = table.num_written
        self._parts: list[_Part] = []
        self._tokenizer = Tokenizer(given_parameters(_WITHOUT_INDEX))
        self.counted: set[int] | None = None
        """Rows in no index that statistics take in, by id; None = all of them."""
        self.is_all = True
        """Whether rows in no index are looked at."""
        self.is_indexed = np.zeros(self._num_ids, bool)
        """By id: whether an index covers the row."""
        snapshot = open_snapshot(RangeScheduler(open_store(str(table.path))))
        for each in snapshot.indices:
            if each.name != f"{name}_idx":
                continue
            cache = ByteCache(_CACHE_BYTES)
            segment = open_text_segment(snapshot.index_place(each), each, cache)
            self._tokenizer = Tokenizer(segment.parameters)
            ids_by_row = table.ids_by_segment[str(each.uuid)]
            self.is_indexed[list(ids_by_row.values())] = True
            for partition in segment.partitions:
                rows = partition.documents.row_ids().tolist()
                ids = np.array([ids_by_row.get(row, -1) for row in rows], np.int64)
                self._parts.append(_Part(partition, ids))
        rows = zip(live["id"].to_pylist(), live[name].to_pylist(), strict=True)
        self._unindexed = {
            row: self._tokenizer.tokens(text or "")
            for row, text in rows
            if not self.is_indexed[row]
        }

    def match(self, query: MatchQuery) -> Scores:
        """Return scores by id."""
        tokens = self._tokenizer.tokens(query.text)
        is_all = query.operator == "and"
        scores = self._empty()
        self._match_indexed(self._expanded(query, tokens), scores, is_all=is_all)
        for row, score in self._unindexed_scores(tokens, is_all=is_all):
            scores[row] = score
        return scores * query.boost

    def phrase(self, query: PhraseQuery) -> Scores:
        """Return scores by id."""
        tokens = self._tokenizer.tokens(query.text)
        scores = self._empty()
        self._match_indexed(tokens, scores, is_all=True)
        for part in self._parts:
            positions = [
                (wanted, [_positions(part, token.text) for token in own])
                for wanted, own in _by_position(tokens).items()
            ]
            for row in part.ids[part.ids >= 0].tolist():
                if np.isnan(scores[row]):
                    continue
                relative = [
                    sorted({each - wanted for own in found for each in own.get(row, [])})
                    for wanted, found in positions
                ]
                if not _is_phrase(relative, query.slop):
                    scores[row] = np.nan
        for row, score in self._unindexed_scores(tokens, is_all=True):
            if _chained(self._unindexed[row], tokens, query.slop):
                scores[row] = score
        return scores

    def field(self, text: str) -> _Field:
        """Return what a query over several columns needs of this one."""
        tokens = list(dict.fromkeys(each.text for each in self._tokenizer.tokens(text)))
        frequencies = np.zeros((len(tokens), self._num_ids))
        lengths = np.zeros(self._num_ids)
        num_docs = num_tokens = 0
        for part in self._parts:
            kept = part.ids >= 0
            lengths[part.ids[kept]] = part.partition.documents.lengths()[kept]
            num_docs += part.partition.num_docs
            num_tokens += part.partition.documents.total_tokens()
            for number, token in enumerate(tokens):
                docs, own = _postings(part.partition, token)
                kept = part.ids[docs] >= 0
                frequencies[number, part.ids[docs[kept]]] = own[kept]
        for row, found in self._unindexed.items() if self.is_all else ():
            lengths[row] = len(found)
            num_docs += len(found) > 0
            num_tokens += len(found)
            texts = [each.text for each in found]
            frequencies[:, row] = [texts.count(token) for token in tokens]
        counts = np.count_nonzero(frequencies, axis=1).tolist()
        totals = _Totals(num_docs, num_tokens, dict(zip(tokens, counts, strict=True)))
        return _Field(frequencies, lengths, totals)

    def _match_indexed(self, tokens: Sequence[Token], scores: Scores, *, is_all: bool) -> None:
        """Set the scores of rows that an index covers."""
        totals = self._totals(tokens)
        for part in self._parts:
            stacked = [self._added(part, own, totals) for own in _by_position(tokens).values()]
            if len(stacked) == 0:
                continue
            missing = np.isnan(stacked)
            has = ~(missing.any(axis=0) if is_all else missing.all(axis=0)) & (part.ids >= 0)
            scores[part.ids[has]] = np.nansum(stacked, axis=0)[has]

    def _empty(self) -> Scores:
        return np.full(self._num_ids, np.nan)

    def _expanded(self, query: MatchQuery, tokens: Sequence[Token]) -> list[Token]:
        """Return the tokens of the index that those of a query stand for."""
        if query.fuzziness is None or query.fuzziness == 0:
            return list(tokens)
        expanded: list[Token] = []
        for token in Tokenizer(given_parameters(_WITHOUT_INDEX)).tokens(query.text):
            most = query.max_expansions - sum(each.text != _NOWHERE for each in expanded)
            found: set[str] = set()
            for part in self._parts if most > 0 else []:
                near, _ = part.partition.expand(
                    token.text, query.fuzziness, prefix_length=query.prefix_length, most=most
                )
                found.update(near)
            chosen = sorted(found, key=str.encode)[:most] or [_NOWHERE]
            expanded += [Token(text, token.position) for text in chosen]
        return expanded

    def _totals(self, tokens: Sequence[Token]) -> _Totals:
        parts = [part.partition for part in self._parts]
        counts = {
            text: sum(len(_postings(part, text)[0]) for part in parts)
            for text in {token.text for token in tokens}
        }
        return _Totals(
            sum(part.num_docs for part in parts),
            sum(part.documents.total_tokens() for part in parts),
            counts,
        )

    def _added(self, part: _Part, tokens: Sequence[Token], totals: _Totals) -> Scores:
        """Return what tokens add to the score of each document of a partition."""
        added = np.full(part.partition.num_docs, np.nan)
        lengths = part.partition.scoring_lengths()
        for token in tokens:
            docs, frequencies = _postings(part.partition, token.text)
            weight = totals.weight(token.text, frequencies, lengths[docs])
            added[docs] = np.nan_to_num(added[docs]) + weight
        return added

    def _unindexed_scores(
        self, tokens: Sequence[Token], *, is_all: bool
    ) -> Iterator[tuple[int, float]]:
        index = self._totals(tokens)
        counted = self._unindexed.keys() if self.counted is None else self.counted
        texts = {
            row: [each.text for each in found]
            for row, found in self._unindexed.items()
            if len(found) > 0 and row in counted
        }
        totals = _Totals(
            index.num_docs + len(texts),
            index.num_tokens + sum(map(len, texts.values())),
            {
                token: count + sum(token in own for own in texts.values())
                for token, count in index.counts.items()
            },
        )
        groups = list(_by_position(tokens).values())
        for row, own in texts.items():
            has = [any(token.text in own for token in group) for group in groups]
            if any(has) and (all(has) or not is_all):
                yield (
                    row,
                    sum(
                        float(totals.weight(token.text, own.count(token.text), len(own)))
                        for token in tokens
                        if token.text in own
                    ),
                )


@dataclass(frozen=True, slots=True)
class _Totals:
    """How many documents there are, tokens in them, and documents that have each token."""

    num_docs: int
    num_tokens: float
    counts: dict[str, int]

    def weight(self, token: str, frequencies: object, lengths: object) -> Scores:
        """Return what a token adds to scores; scalar index page, 8.7."""
        count = self.counts[token]
        rarity = np.log((self.num_docs - count + 0.5) / (count + 0.5) + 1)
        average = self.num_tokens / self.num_docs
        often = np.asarray(frequencies, np.float64)
        damping = _K1 * (1 - _B + _B * np.asarray(lengths, np.float64) / average)
        weights: Scores = rarity * (_K1 + 1) * often / (often + damping)
        return weights


def _best(found: list[Scores]) -> Scores:
    best = found[0]
    for each in found[1:]:
        best = np.fmax(best, each)
    return best


def _postings(
    partition: TextPartition, token: str
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return the documents that have a token, and how often."""
    (token_id,) = partition.token_ids([token]).tolist()
    if token_id < 0:
        return np.empty(0, np.uint32), np.empty(0, np.uint32)
    (list_,) = partition.postings([token_id])
    return list_.docs, list_.frequencies


def _positions(part: _Part, token: str) -> dict[int, list[int]]:
    """Return the positions of a token by the ids of rows."""
    docs, _ = _postings(part.partition, token)
    if len(docs) == 0:
        return {}
    (listed,) = part.partition.positions(part.partition.token_ids([token]).tolist())
    split = np.split(listed.positions, listed.starts[1:-1])
    return {row: each.tolist() for row, each in zip(part.ids[docs].tolist(), split, strict=True)}


def _by_position(tokens: Sequence[Token]) -> dict[int, list[Token]]:
    """Return tokens by their positions: those at one stand for each other, and count once."""
    groups: dict[int, list[Token]] = {}
    for token in tokens:
        group = groups.setdefault(token.position, [])
        if token not in group:
            group.append(token)
    return groups


def _is_phrase(relative: list[list[int]], slop: int) -> bool:
    if slop > 0:
        return _greedy(relative, slop)
    return len(set.intersection(*map(set, relative))) > 0


def _greedy(relative: list[list[int]], slop: int) -> bool:
    """Return whether cursors that only move on meet a phrase; scalar index page, 8.9."""
    at = [0] * len(relative)
    while all(cursor < len(own) for cursor, own in zip(at, relative, strict=True)):
        now = [own[cursor] for cursor, own in zip(at, relative, strict=True)]
        furthest = now[0] if len(now) == 1 else None
        fits = True
        for a, b in pairwise(now):
            move = a if a > b else max(a + 1, b - slop)
            furthest = move if furthest is None else max(furthest, move)
            if not a <= b <= a + slop:
                fits = False
                break
        if fits:
            return True
        assert furthest is not None
        for number, own in enumerate(relative):
            while at[number] < len(own) and own[at[number]] < furthest:
                at[number] += 1
    return False


def _chained(document: Sequence[Token], tokens: Sequence[Token], slop: int) -> bool:
    """Return whether there are positions each of which is near that before."""
    reached: set[int] | None = None
    for token in tokens:
        relative = {each.position - token.position for each in document if each.text == token.text}
        if reached is None:
            reached = relative
        else:
            before = reached
            reached = {r for r in relative if any(r - gap in before for gap in range(slop + 1))}
    return reached is not None and len(reached) > 0
