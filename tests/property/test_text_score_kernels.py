"""Scores of random posting lists, against adding them up document by document."""

from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st

from lance_core.kernels.memory import address_of
from lance_core.kernels.text_chain import have_chain
from lance_core.kernels.text_phrase import NUM_PHRASE_COLUMNS, Phrase
from lance_core.kernels.text_scores import (
    find_best,
    look_at_windows,
    score_all,
    score_windows,
)
from lance_core.kernels.text_weights import NO_POSTING, rarity_of, weigh, write_best, write_starts
from lance_core.kernels.text_windows import (
    Lists,
    add_lists,
    end_bounds,
    have_company,
    write_bounds,
)
from lance_core.kernels.topk import TopRows

ANYWHERE = Phrase(np.zeros((0, NUM_PHRASE_COLUMNS), np.int64), np.zeros(1, np.int64), 0)


class RandomLists:
    """Posting lists over some documents, and what keeps their memory alive."""

    def __init__(self, seed: int, num_docs: int, num_lists: int, num_groups: int) -> None:
        rng = np.random.default_rng(seed)
        self.num_docs, self.num_groups = num_docs, num_groups
        self.rarities = rng.choice(np.array([0.25, 1, 1.7], np.float32), num_lists)
        self.groups = np.sort(rng.integers(0, max(num_groups, 1), num_lists))
        self.held: list[tuple[np.ndarray, ...]] = []
        rows = [self._row(rng, group) for group in self.groups.tolist()]
        self.lists = Lists(np.array(rows, np.int64).reshape(-1, 7), self.rarities, num_groups)
        self.windows = -(-num_docs // 64)
        self.is_live = rng.random(num_docs) < rng.choice([0.05, 0.5, 1.0])
        padded = np.zeros(64 * self.windows, np.bool_)
        padded[:num_docs] = self.is_live
        self.live = np.packbits(padded, bitorder="little").view(np.uint64)

    def _row(self, rng: np.random.Generator, group: int) -> tuple[int, ...]:
        share = rng.choice([0.002, 0.05, 0.6])
        docs = np.flatnonzero(rng.random(self.num_docs) < share).astype(np.uint32)
        weights = rng.choice(np.array([0, 0.3, 0.7, 1.1, 2.1], np.float32), len(docs))
        shift = int(rng.integers(6, 9))
        starts = np.empty(-(-self.num_docs >> shift) + 1, np.uint32)
        write_starts(docs, shift, starts)
        best = np.empty(-(-self.num_docs // 64), np.float32)
        write_best(docs, weights, best)
        self.held.append((docs, weights, starts, best))
        of_best = address_of(best) if rng.random() < 0.5 else 0
        addresses = [address_of(each) for each in (docs, weights, starts)]
        return (*addresses, of_best, len(docs), shift, group)

    def scores(self) -> dict[int, np.float32]:
        """Return the scores of live documents that match."""
        shape = (max(self.num_groups, 1), self.num_docs)
        of_groups, groups = np.zeros(shape, np.float32), np.zeros(shape, np.bool_)
        for (docs, weights, _, _), rarity, group in zip(
            self.held, self.rarities, self.groups, strict=True
        ):
            of_groups[group, docs] += rarity * weights
            groups[group, docs] = True
        sums = np.zeros(self.num_docs, np.float32)
        for of_group in of_groups:
            sums += of_group
        matching = np.flatnonzero(groups.all(axis=0) & self.is_live)
        return {int(doc): sums[doc] for doc in matching}


RANDOM_LISTS = st.builds(
    RandomLists, st.integers(0, 2**32), st.integers(1, 700), st.integers(1, 6), st.integers(0, 3)
)


@given(RANDOM_LISTS, st.sampled_from([1, 3, 10**6]))
def test_all_documents_that_match_get_the_sum_of_their_weights(
    made: RandomLists, most: int
) -> None:
    docs, scores = np.empty(made.num_docs, np.uint32), np.empty(made.num_docs, np.float32)
    bounds = np.empty(made.windows, np.float32)
    lists, live = made.lists, made.live
    count, window = score_all(lists, ANYWHERE, live, bounds, docs, scores, most)
    while window < made.windows:
        before = window
        count, window = score_windows(
            lists, ANYWHERE, live, bounds, docs, scores, count, window, most
        )
        assert window > before
    assert dict(zip(docs[:count].tolist(), scores[:count], strict=True)) == made.scores()


@given(RANDOM_LISTS, st.integers(1, 80), st.sampled_from([1, 3, 10**6]))
def test_the_best_documents_come_by_score_and_then_by_number(
    made: RandomLists, k: int, most: int
) -> None:
    expected = sorted(made.scores().items(), key=lambda item: (-item[1], item[0]))[:k]
    top = TopRows(k, made.num_docs)
    bounds = np.empty(made.windows, np.float32)
    lists, live, keys, state = made.lists, made.live, top.keys, top.state
    order, scale, turn, seen = find_best(lists, ANYWHERE, live, bounds, keys, state, top.k, most)
    while turn < len(order):
        turn, more = look_at_windows(
            lists, ANYWHERE, live, bounds, order, scale, keys, state, top.k, turn, most
        )
        assert more <= most
        seen += more
    distances, docs = top.nearest()
    assert docs.tolist() == [doc for doc, _ in expected]
    assert (-distances).tolist() == [score for _, score in expected]
    assert seen <= made.windows


@given(RANDOM_LISTS, st.integers(1, 3))
def test_bounds_are_the_same_whether_lists_are_added_in_one_go(
    made: RandomLists, at_once: int
) -> None:
    table, _, num_groups = made.lists
    whole, pieces = np.empty((2, made.windows), np.float32)
    write_bounds(made.lists, made.live, whole)
    pieces[:] = NO_POSTING
    reached = np.zeros(made.windows if num_groups > 0 else 0, np.int32)
    of_group = np.full(made.windows if have_company(table) else 0, NO_POSTING, np.float32)
    for first in range(0, len(table), at_once):
        stop = min(first + at_once, len(table))
        add_lists(made.lists, first, stop, pieces, reached, of_group)
    end_bounds(num_groups, reached, made.live, pieces)
    assert np.array_equal(pieces, whole)


@given(st.integers(1, 2**31), st.integers(0, 2**31), st.integers(1, 500), st.integers(0, 10**6))
def test_weights_and_rarities_are_near_those_of_the_formula(
    frequency: int, length: int, mean: int, num_docs: int
) -> None:
    weights = np.empty(1, np.float32)
    one = np.zeros(1, np.uint32)
    weigh(
        one,
        np.array([frequency], np.uint32),
        np.array([length], np.uint32),
        np.float32(mean),
        weights,
    )
    expected = 2.2 * frequency / (frequency + 1.2 * (0.25 + 0.75 * length / mean))
    assert np.isclose(weights[0], expected, rtol=1e-5)
    having = num_docs // 3
    exact = np.log((num_docs - having + 0.5) / (having + 0.5) + 1)
    assert np.isclose(rarity_of(num_docs, having), exact, rtol=1e-5)
    assert rarity_of(having, num_docs) >= 0


@given(st.integers(0, 2**32), st.integers(1, 4), st.integers(0, 3))
def test_a_chain_is_any_way_from_token_to_token(seed: int, num_tokens: int, slop: int) -> None:
    rng = np.random.default_rng(seed)
    held = [
        [np.flatnonzero(rng.random(8) < 0.5) for _ in range(num_tokens)]
        for _ in range(int(rng.integers(1, 5)))
    ]
    sizes = np.cumsum([0, *(len(each) for text in held for each in text)])
    rows = np.arange(len(held))[:, None] * num_tokens + np.arange(num_tokens + 1)
    tokens = rng.integers(0, num_tokens, int(rng.integers(1, 5)))
    offsets = np.cumsum(rng.integers(1, 3, len(tokens)))
    found = np.empty(len(held), np.bool_)
    positions = np.concatenate([each for text in held for each in text]).astype(np.int64)
    have_chain(sizes[rows].astype(np.int64), positions, tokens, offsets, slop, found)
    assert found.tolist() == [_has_chain(text, tokens, offsets, slop) for text in held]


def _has_chain(text: list[np.ndarray], tokens: np.ndarray, offsets: np.ndarray, slop: int) -> bool:
    reached = {int(place) - int(offsets[0]) for place in text[tokens[0]]}
    for token, offset in zip(tokens[1:], offsets[1:], strict=True):
        places = {int(place) - int(offset) for place in text[token]}
        reached = {p for p in places if any(0 <= p - before <= slop for before in reached)}
    return len(reached) > 0
