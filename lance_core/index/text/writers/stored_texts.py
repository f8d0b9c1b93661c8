"""Documents of a segment as files hold them, on their way into another segment."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from lance_core.errors import InvalidRequestError
from lance_core.index.cut import cut_groups
from lance_core.index.registry import UnusableSegmentError
from lance_core.index.text.positions import starts_of
from lance_core.index.text.writers.recipe import TextRecipe, fitting_version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from lance_core.index.text.partition import TextPartition
    from lance_core.index.text.segment import TextSegment
    from lance_core.index.text.writers.segment import TextSegmentBuilder

    Follow = Callable[[NDArray[np.uint64]], tuple[NDArray[np.uint64], NDArray[np.bool_]]]

_GONE = -1
_POSTINGS_AT_ONCE = 1 << 17
"""Or occurrences, as they take up to some hundred bytes each meanwhile."""


@dataclass(frozen=True, slots=True, eq=False)
class StoredTexts:
    """A segment whose documents go into another one as they are.

    Parameters
    ----------
    segment
        The segment.
    follow
        Returns what rows are called in the other one, and which of them it has; shape ``(n,)``.
    """

    segment: TextSegment
    follow: Follow

    def add_to(self, builder: TextSegmentBuilder) -> None:
        """Hand over all documents that the other segment has.

        Raises
        ------
        CorruptFileError
            The files contradict the format.
        """
        for partition in self.segment.partitions:
            _add_partition(builder, partition, self.follow(partition.documents.row_ids()))


def recipe_of_segments(segments: Sequence[TextSegment]) -> TextRecipe:
    """Return how a segment is made that has the documents of others.

    Raises
    ------
    UnusableSegmentError
        Documents are elements of lists, or those of some fragments do not count: build the segment
        anew.
    InvalidRequestError
        The segments make tokens in different ways.
    """
    if any(each.documents.has_elements for segment in segments for each in segment.partitions):
        raise UnusableSegmentError("it has a document for each element of a list")
    if any(len(each.deleted_fragments) > 0 for each in segments):
        raise UnusableSegmentError("fragments were taken out of it")
    ways = {_way(segment) for segment in segments}
    if len(ways) > 1:
        raise InvalidRequestError(
            "segments of one index that make tokens in different ways cannot be one; create the"
            " index again"
        )
    parameters = segments[-1].parameters
    has_positions = parameters.with_position and all(each.has_positions for each in segments)
    parameters = replace(parameters, with_position=has_positions)
    written = segments[-1].source.metadata.index_version
    return TextRecipe(parameters, fitting_version(parameters, written))


def _way(segment: TextSegment) -> object:
    """Return what makes tokens: whether there are positions, and blocks of which size, does not."""
    return replace(segment.parameters, with_position=False, block_size=128)


def _add_partition(
    builder: TextSegmentBuilder,
    partition: TextPartition,
    followed: tuple[NDArray[np.uint64], NDArray[np.bool_]],
) -> None:
    names, is_kept = followed
    (kept,) = np.nonzero(is_kept)
    if len(kept) == 0:
        return
    target = builder.partition_for(len(kept), partition.num_tokens)
    numbers = np.full(len(names), _GONE, np.int64)
    numbers[kept] = target.add_documents(names[kept], partition.documents.lengths()[kept])
    tokens = _tokens(partition)
    for part in _parts(partition, with_positions=target.keeps_positions):
        own = numbers[part.docs]
        is_there = own != _GONE
        owners, counts = part.owners[is_there], part.frequencies[is_there]
        ids = np.zeros(partition.num_tokens, np.int32)
        (used,) = np.nonzero(np.bincount(owners))
        ids[used] = target.token_ids([tokens[each] for each in used.tolist()])
        docs = own[is_there].astype(np.uint32)
        if part.positions is None:
            target.add_counted(ids[owners], docs, counts)
        else:
            positions = part.positions[np.repeat(is_there, part.frequencies)]
            target.add_occurrences(
                np.repeat(ids[owners], counts), np.repeat(docs, counts), positions
            )


def _tokens(partition: TextPartition) -> list[str]:
    """Return all tokens by their numbers; "" for numbers that none has."""
    found = [""] * partition.num_tokens
    for keys, numbers in partition.all_tokens():
        for key, number in zip(keys.to_pylist(), numbers.tolist(), strict=True):
            found[number] = key
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """Some postings, token by token, with the positions of all of them where they are wanted."""

    owners: NDArray[np.int64]
    docs: NDArray[np.uint32]
    frequencies: NDArray[np.uint32]
    positions: NDArray[np.int32] | None


def _parts(partition: TextPartition, *, with_positions: bool) -> Iterator[_Part]:
    """Yield all postings, in parts that take little memory."""
    file = partition.postings_file
    for first, stop in pairwise(cut_groups(file.counts(), _POSTINGS_AT_ONCE)):
        tokens = range(first, stop)
        lists = file.read(tokens)
        owners = np.repeat(np.arange(first, stop), [len(each) for each in lists])
        docs = np.concatenate([each.docs for each in lists])
        frequencies = np.concatenate([each.frequencies for each in lists])
        if not with_positions:
            yield _Part(owners, docs, frequencies, None)
            continue
        found = file.read_positions(tokens, lists)
        positions = np.concatenate([each.positions for each in found]).view(np.int32)
        starts = starts_of(frequencies)
        for start, end in pairwise(cut_groups(frequencies, _POSTINGS_AT_ONCE)):
            some = slice(start, end)
            own = positions[starts[start] : starts[end]]
            yield _Part(owners[some], docs[some], frequencies[some], own)
