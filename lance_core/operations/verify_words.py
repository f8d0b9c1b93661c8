"""Checking a segment of an inverted index: whether its dictionary, lists and documents agree."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from lance_core.errors import CorruptFileError
from lance_core.index.cut import cut_groups

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.index.text.partition import TextPartition
    from lance_core.index.text.segment import TextSegment

_POSTINGS_AT_ONCE = 1 << 20
_POSTINGS_OF_LIST = 64
"""A list takes as much memory as so many postings, even if it has fewer."""


def check_words(segment: TextSegment) -> None:
    """Read all of a segment, some megabytes at a time.

    Raises
    ------
    CorruptFileError
        Something contradicts the format, or something else in the segment.
    UnusableSegmentError
        It is of a form that is not read here.
    """
    for partition in segment.partitions:
        _check_dictionary(partition)
        _check_documents(partition)


def _check_dictionary(partition: TextPartition) -> None:
    """Check that every token has a list of its own, and is found."""
    seen = np.zeros(partition.num_tokens, np.bool_)
    for tokens, numbers in partition.all_tokens():
        known = numbers < len(seen)
        if not known.all() or seen[numbers].any() or len(np.unique(numbers)) < len(numbers):
            _refuse(partition, "two tokens have the same number, or one has none")
        seen[numbers] = True
        if not np.array_equal(partition.token_ids(tokens.to_pylist()), numbers):
            _refuse(partition, "a token is not found by its bytes")
    if not seen.all():
        _refuse(partition, f"no token has number {int(np.argmin(seen))}")


def _refuse(partition: TextPartition, what: str) -> None:
    raise CorruptFileError(partition.tokens.path, what)


def _check_documents(partition: TextPartition) -> None:
    """Check that documents have as many tokens as their lengths say, and positions if any."""
    file = partition.postings_file
    counts = file.counts()
    lengths = partition.documents.lengths()
    found = np.zeros(len(lengths), np.int64)
    bounds = cut_groups(np.maximum(counts, _POSTINGS_OF_LIST), _POSTINGS_AT_ONCE)
    for start, stop in pairwise(bounds):
        found += _tokens_of_documents(partition, range(start, stop))
    path = partition.documents.reader.path
    if not np.array_equal(found, lengths):
        doc = int(np.flatnonzero(found != lengths)[0])
        raise CorruptFileError(
            path, f"document {doc} has {lengths[doc]} tokens, and {found[doc]} in posting lists"
        )
    if partition.documents.total_tokens() != int(found.sum()):
        raise CorruptFileError(path, f'"total_tokens" is not {found.sum()}')
    partition.documents.row_ids()


def _tokens_of_documents(partition: TextPartition, tokens: Sequence[int]) -> NDArray[np.int64]:
    """Return how many tokens of some kinds each document has, as lists and positions say."""
    lists = partition.postings_file.read(tokens)
    if partition.has_positions:
        partition.postings_file.read_positions(tokens, lists)
    docs = np.concatenate([each.docs for each in lists])
    frequencies = np.concatenate([each.frequencies for each in lists])
    return np.bincount(docs, frequencies, partition.num_docs).astype(np.int64)
