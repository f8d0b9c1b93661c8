"""Posting lists as searches take them: weights instead of frequencies, and means to skip."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from lance_core.index.text.positions import go_on
from lance_core.kernels.memory import address_of
from lance_core.kernels.text_weights import WINDOW_SHIFT, weigh, write_best, write_starts

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from numpy.typing import NDArray

    from lance_core.cache.keys import CacheKey
    from lance_core.index.text.partition import TextPartition
    from lance_core.index.text.postings import PostingList

_POSTINGS_OF_CELL = 8
_DENSE = 1
"""Lists of at least so many postings for each window know their best weight in each."""

_READ_AT_ONCE = 256
"""Tokens whose lists are read, decoded and kept together."""

_ENTRY_BYTES = 512
"""Of objects and names, so that tokens that no document has fill no cache unseen."""


@dataclass(frozen=True, slots=True, eq=False)
class WeightedPostings:
    """The documents that have one token, and what it weighs in each; shared, do not change it.

    Parameters
    ----------
    docs
        Shape ``(n,)``, ascending.
    weights
        Shape ``(n,)``: what the token weighs before its rarity comes in.
    starts
        By cell of ``2 ** shift`` documents: its first posting; one entry more.
    best
        The best weight in each window of 64 documents; empty where postings are few.
    row
        A row of the table of ``Lists`` without the group.
    """

    docs: NDArray[np.uint32]
    weights: NDArray[np.float32]
    starts: NDArray[np.uint32]
    best: NDArray[np.float32]
    row: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.docs)

    @property
    def nbytes(self) -> int:
        """Memory held."""
        arrays = (self.docs, self.weights, self.starts, self.best)
        return _ENTRY_BYTES + sum(each.nbytes for each in arrays)


def weighted_postings(
    partition: TextPartition,
    tokens: Sequence[str],
    mean_length: np.float32,
    check: Callable[[], object] = go_on,
    *,
    keep_frequencies: bool = False,
) -> list[WeightedPostings]:
    """Return the posting lists of tokens, empty ones of those that do not occur.

    What is not in the cache is read in one go, or some tokens at a time if they are many: what was
    read before ``check`` ended it is kept.

    Parameters
    ----------
    partition
        Where.
    tokens
        Distinct.
    mean_length
        Of all documents that are searched; lists are kept for each by themselves.
    check
        Called before the list of each token is decoded; raises when the work has to stop.
    keep_frequencies
        Whether what is read is kept as it is too, as ``TextPartition.positions`` is asked next.

    Raises
    ------
    CorruptFileError
        The dictionary or a posting list is damaged.
    """
    by_key: dict[Hashable, str] = {_key(partition, token, mean_length): token for token in tokens}
    keys, cache = list(by_key), partition.source.cache
    read = partition.postings if keep_frequencies else partition.postings_file.read
    found: list[WeightedPostings] = []
    for start in range(0, len(keys), _READ_AT_ONCE):
        found += cache.get_or_load_many(
            keys[start : start + _READ_AT_ONCE],
            lambda missing: _load(
                partition,
                [by_key[key] for key in missing],
                mean_length,
                check,
                partial(read, check=check),
            ),
        )
    return found


def are_held(partition: TextPartition, tokens: Sequence[str], mean_length: np.float32) -> bool:
    """Tell whether `weighted_postings` would read nothing."""
    cache = partition.source.cache
    return all(_key(partition, token, mean_length) in cache for token in tokens)


def _key(partition: TextPartition, token: str, mean_length: np.float32) -> CacheKey:
    return partition.source.key("text weights", partition.partition_id, token, float(mean_length))


def num_windows(num_docs: int) -> int:
    """Return how many windows documents are in."""
    return -(-num_docs >> WINDOW_SHIFT)


def _load(
    partition: TextPartition,
    tokens: Sequence[str],
    mean_length: np.float32,
    check: Callable[[], object],
    read: Callable[[Sequence[int]], list[PostingList]],
) -> list[WeightedPostings]:
    numbers = partition.token_ids(tokens)
    known = numbers >= 0
    found = iter(read(numbers[known].tolist()) if known.any() else ())
    lists = []
    for is_known in known:
        check()
        lists.append(_weighted(next(found), partition, mean_length) if is_known else _NONE)
    return lists


def _weighted(
    postings: PostingList, partition: TextPartition, mean_length: np.float32
) -> WeightedPostings:
    docs, num_docs = postings.docs, partition.num_docs
    weights = np.empty(len(docs), np.float32)
    weigh(docs, postings.frequencies, partition.scoring_lengths(), mean_length, weights)
    shift = _cell_shift(len(docs), num_docs)
    starts = np.empty((-(-num_docs >> shift)) + 1, np.uint32)
    write_starts(docs, shift, starts)
    windows = num_windows(num_docs)
    best = np.empty(windows if len(docs) >= _DENSE * windows else 0, np.float32)
    if len(best) > 0:
        write_best(docs, weights, best)
    return _of_arrays(docs, weights, starts, best, shift)


def _of_arrays(
    docs: NDArray[np.uint32],
    weights: NDArray[np.float32],
    starts: NDArray[np.uint32],
    best: NDArray[np.float32],
    shift: int,
) -> WeightedPostings:
    addresses = [address_of(each) for each in (docs, weights, starts)]
    of_best = address_of(best) if len(best) > 0 else 0
    return WeightedPostings(docs, weights, starts, best, (*addresses, of_best, len(docs), shift))


def _cell_shift(num_postings: int, num_docs: int) -> int:
    """Return how large cells are that have about ``_POSTINGS_OF_CELL`` postings."""
    docs_of_cell = _POSTINGS_OF_CELL * num_docs // max(num_postings, 1)
    return max(docs_of_cell.bit_length() - 1, WINDOW_SHIFT)


_NONE = _of_arrays(
    np.zeros(0, np.uint32),
    np.zeros(0, np.float32),
    np.zeros(2, np.uint32),
    np.zeros(0, np.float32),
    32,
)
"""The list of a token that does not occur; it is in no table."""
