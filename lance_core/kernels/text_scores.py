"""Scores of documents: the best, or those of all that match."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.rq_heap import push
from lance_core.kernels.text_phrase import NUM_PHRASE_COLUMNS, Phrase, stands_in
from lance_core.kernels.text_weights import WINDOW_SHIFT
from lance_core.kernels.text_window_scores import (
    WIDTH,
    any_at_least,
    ask_for_postings,
    ask_for_starts,
    can_matter,
    score_window,
)
from lance_core.kernels.text_windows import (
    NUM_COLUMNS,
    NUM_POSTINGS,
    Lists,
    add_lists,
    bucket_of,
    end_bounds,
    have_company,
    order_windows,
    write_bounds,
)
from lance_core.kernels.topk import distance_of, pack_key

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ALL = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
_STARTS_AHEAD = 12
_POSTINGS_AHEAD = 5


@kernel(ordered=True)
def find_best(
    lists: Lists,
    phrase: Phrase,
    live: NDArray[np.uint64],
    bounds: NDArray[np.float32],
    keys: NDArray[np.uint64],
    state: NDArray[np.uint64],
    k: int,
    most: int,
) -> tuple[NDArray[np.uint32], np.float32, int, int]:
    """Find the best documents of one partition, or begin to.

    Parameters
    ----------
    lists
        Of the query.
    phrase
        What positions have to be like.
    live
        Bit set of documents that may be found, a word for each window; empty = all may be.
    bounds
        Written, a number for each window of documents.
    keys, state, k
        Of a `TopRows`: distances are scores below 0, ordinals numbers of documents.
    most
        Windows that are looked at, at most.

    Returns
    -------
    tuple[NDArray[np.uint32], np.float32, int, int]
        What `order_windows` returns, then what `look_at_windows` does.
    """
    write_bounds(lists, live, bounds)
    order, scale = order_windows(bounds, least_of(state))
    turn, seen = look_at_windows(lists, phrase, live, bounds, order, scale, keys, state, k, 0, most)
    return order, scale, turn, seen


@kernel(ordered=True)
def least_of(state: NDArray[np.uint64]) -> np.float32:
    """Return a score that a document needs at least, from the state of a `TopRows`."""
    return np.float32(max(-distance_of(state[1]), np.float32(0)))


@kernel(ordered=True)
def look_at_windows(
    lists: Lists,
    phrase: Phrase,
    live: NDArray[np.uint64],
    bounds: NDArray[np.float32],
    order: NDArray[np.uint32],
    scale: np.float32,
    keys: NDArray[np.uint64],
    state: NDArray[np.uint64],
    k: int,
    turn: int,
    most: int,
) -> tuple[int, int]:
    """Look at windows in order, from number ``turn`` of it on and at ``most`` of them.

    The other parameters are those of `find_best`, ``bounds`` as it has written them.

    Returns
    -------
    tuple[int, int]
        The next turn, ``len(order)`` if nothing is left to do, and how many were looked at.
    """
    table, rarities, num_groups = lists
    tokens, firsts, slop = phrase
    sums = np.empty(WIDTH, np.float32)
    of_group = np.empty(WIDTH if have_company(table) else 0, np.float32)
    places = np.empty((WIDTH, tokens.shape[0]), np.int64)
    now, ends = np.empty(tokens.shape[0], np.int64), np.empty(tokens.shape[0], np.int64)
    by_size = np.argsort(table[:, NUM_POSTINGS])
    seen = 0
    while turn < order.shape[0] and seen < most:
        if turn + _STARTS_AHEAD < order.shape[0]:
            ask_for_starts(table, int(order[turn + _STARTS_AHEAD]))
            ask_for_postings(table, int(order[turn + _POSTINGS_AHEAD]))
        window = order[turn]
        turn += 1
        first_doc = int(np.int64(window)) << WINDOW_SHIFT
        bound = bounds[window]
        if pack_key(-bound, np.uint32(first_doc)) >= state[1]:
            if bucket_of(bound, scale) < bucket_of(-distance_of(state[1]), scale):
                return order.shape[0], seen
            continue
        seen += 1
        worst = -distance_of(state[1])
        may_be_found = live[window] if live.shape[0] > 0 else _ALL
        if not can_matter(table, rarities, by_size, int(window), may_be_found, worst, sums):
            continue
        matching = score_window(table, rarities, num_groups, first_doc, sums, of_group, places)
        matching &= may_be_found
        if matching == np.uint64(0) or not any_at_least(sums, worst):
            continue
        for doc in range(WIDTH):
            key = pack_key(-sums[doc], np.uint32(first_doc + doc))
            is_matching = matching >> np.uint64(doc) & np.uint64(1) != np.uint64(0)
            if (
                is_matching
                and key < state[1]
                and (
                    tokens.shape[0] == 0 or stands_in(tokens, firsts, slop, places[doc], now, ends)
                )
            ):
                push(keys, state, k, key)
    return turn, seen


@kernel(ordered=True)
def score_all(
    lists: Lists,
    phrase: Phrase,
    live: NDArray[np.uint64],
    bounds: NDArray[np.float32],
    docs: NDArray[np.uint32],
    scores: NDArray[np.float32],
    most: int,
) -> tuple[int, int]:
    """Write all documents of one partition that match, ascending, and their scores, or begin to.

    ``docs`` and ``scores`` have room for them; the other parameters are those of `find_best`.
    Returns what `score_windows` does.
    """
    write_bounds(lists, live, bounds)
    return score_windows(lists, phrase, live, bounds, docs, scores, 0, 0, most)


@kernel(ordered=True)
def score_windows(
    lists: Lists,
    phrase: Phrase,
    live: NDArray[np.uint64],
    bounds: NDArray[np.float32],
    docs: NDArray[np.uint32],
    scores: NDArray[np.float32],
    found: int,
    window: int,
    most: int,
) -> tuple[int, int]:
    """Go on with `score_all`: ``found`` documents are written, those before ``window``.

    Returns
    -------
    tuple[int, int]
        How many documents are written, and the next window; ``len(bounds)`` after the last.
    """
    table, rarities, num_groups = lists
    tokens, firsts, slop = phrase
    sums = np.empty(WIDTH, np.float32)
    of_group = np.empty(WIDTH if have_company(table) else 0, np.float32)
    places = np.empty((WIDTH, tokens.shape[0]), np.int64)
    now, ends = np.empty(tokens.shape[0], np.int64), np.empty(tokens.shape[0], np.int64)
    seen = 0
    while window < bounds.shape[0] and seen < most:
        first_doc = window << WINDOW_SHIFT
        bound = bounds[window]
        window += 1
        if bound < np.float32(0):
            continue
        seen += 1
        matching = score_window(table, rarities, num_groups, first_doc, sums, of_group, places)
        matching &= live[first_doc >> WINDOW_SHIFT] if live.shape[0] > 0 else _ALL
        for doc in range(WIDTH):
            if matching >> np.uint64(doc) & np.uint64(1) != np.uint64(0) and (
                tokens.shape[0] == 0 or stands_in(tokens, firsts, slop, places[doc], now, ends)
            ):
                docs[found], scores[found] = first_doc + doc, sums[doc]
                found += 1
    return found, window


@warmup
def _warm() -> None:
    lists = Lists(np.zeros((0, NUM_COLUMNS), np.int64), np.zeros(0, np.float32), 0)
    phrase = Phrase(np.zeros((0, NUM_PHRASE_COLUMNS), np.int64), np.zeros(1, np.int64), 0)
    live, bounds, two = np.zeros(0, np.uint64), np.zeros(1, np.float32), np.zeros(2, np.uint64)
    keys, docs, scores = two.copy(), np.zeros(1, np.uint32), bounds.copy()
    find_best(lists, phrase, live, bounds, two, keys, 1, 1)
    score_all(lists, phrase, live, bounds, docs, scores, 1)
    reached = np.zeros(1, np.int32)
    add_lists(lists, 0, 0, bounds, reached, bounds.copy())
    end_bounds(0, reached, live, bounds)
    have_company(lists.table)
    order, scale = order_windows(bounds, least_of(keys))
    look_at_windows(lists, phrase, live, bounds, order, scale, two, keys, 1, 0, 1)
    score_windows(lists, phrase, live, bounds, docs, scores, 0, 0, 1)
