"""Bringing the occurrences of tokens together by token, in bounded memory: sorted runs on disk."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, BinaryIO, Protocol

import numpy as np

from lance_core.index.cut import cut_groups
from lance_core.io.spill import spill_file, spilling
from lance_core.kernels.text_write_sort import (
    count_occurrences,
    place_positions,
    place_postings,
    place_run,
    sum_counts,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import ExitStack

    from numpy.typing import NDArray

_NO_DOC = -1
_NUMBER_BYTES = 4
_ONCE = np.zeros(0, np.uint32)
_COLUMNS = 3
"""Of a run without positions: counts, documents and frequencies."""


@dataclass(frozen=True, slots=True, eq=False)
class PostingLists:
    """Posting lists of tokens that follow one another.

    Parameters
    ----------
    bounds
        List ``i`` has the postings from ``bounds[i]`` to ``bounds[i + 1]``; shape ``(n + 1,)``.
    docs, frequencies
        Documents, ascending in each list, and how often each has the token.
    positions
        Of all postings one after the other, ascending in each; None where they are not kept.
    """

    bounds: NDArray[np.int64]
    docs: NDArray[np.uint32]
    frequencies: NDArray[np.uint32]
    positions: NDArray[np.uint32] | None


@dataclass(frozen=True, slots=True, eq=False)
class _Occurrences:
    """Some occurrences, by document; ``times`` of each, or once where that is empty."""

    token_ids: NDArray[np.int32]
    docs: NDArray[np.uint32]
    times: NDArray[np.uint32]
    positions: NDArray[np.int32]


class PostingRuns:
    """Takes occurrences of tokens document by document, and gives them back token by token.

    Parameters
    ----------
    with_positions
        Whether positions are kept.
    memory_bytes
        About how much memory occurrences may take; what does not fit is put on disk meanwhile.
    stack
        Closes the file where there is one.
    """

    def __init__(self, memory_bytes: int, stack: ExitStack, *, with_positions: bool) -> None:
        self._most = memory_bytes
        self._stack = stack
        self._with_positions = with_positions
        self._file: BinaryIO | None = None
        self._runs: list[_Run] = []
        self._waiting: list[_Occurrences] = []
        self._waiting_bytes = 0
        self._last_docs = np.full(1, _NO_DOC, np.int64)
        self._counts = np.zeros((2, 1), np.int64)
        self._totals = np.zeros((2, 1), np.int64)

    @property
    def most_occurrences(self) -> int:
        """How often the most frequent token occurs in what was sorted so far."""
        return int(self._totals[1].max())

    def add(
        self,
        token_ids: NDArray[np.int32],
        docs: NDArray[np.uint32],
        positions: NDArray[np.int32],
        num_tokens: int,
    ) -> None:
        """Take occurrences.

        Parameters
        ----------
        token_ids, docs, positions
            Shape ``(n,)`` each. The documents of a token ascend, over all calls; all occurrences
            of a token in a document are in one call.
        num_tokens
            Token ids are less than this.
        """
        kept = positions if self._with_positions else positions[:0]
        self._add(_Occurrences(token_ids, docs, _ONCE, kept), num_tokens)

    def add_counted(
        self,
        token_ids: NDArray[np.int32],
        docs: NDArray[np.uint32],
        times: NDArray[np.uint32],
        num_tokens: int,
    ) -> None:
        """Take occurrences as `add`, ``times`` of each; where positions are not kept."""
        none = np.zeros(0, np.int32)
        self._add(_Occurrences(token_ids, docs, times, none), num_tokens)

    def _add(self, some: _Occurrences, num_tokens: int) -> None:
        num_bytes = _occurrence_bytes(len(some.token_ids))
        if self._waiting_bytes + num_bytes > self._most:
            self._sort_waiting(spill=True)
        self._grow(num_tokens)
        postings, occurrences = self._counts
        count_occurrences(
            some.token_ids, some.docs, some.times, self._last_docs, postings, occurrences
        )
        self._waiting.append(some)
        self._waiting_bytes += num_bytes

    def lists(self, num_tokens: int, most: int) -> Iterator[PostingLists]:
        """Yield the posting lists of all tokens in order.

        Parameters
        ----------
        num_tokens
            How many tokens there are; each has occurred.
        most
            So many postings and positions, or one list, are in one piece at most.
        """
        self._sort_waiting(spill=False)
        self._grow(num_tokens)
        totals = self._totals[:, :num_tokens]
        for first, stop in pairwise(cut_groups(totals.sum(axis=0), most)):
            parts = [run.read(stop - first) for run in self._runs]
            yield _joined(parts, totals[:, first:stop], has_positions=self._with_positions)

    def _grow(self, num_tokens: int) -> None:
        have = len(self._last_docs)
        if num_tokens > have:
            more = max(num_tokens, 2 * have) - have
            rest = np.full(more, _NO_DOC, np.int64)
            self._last_docs = np.concatenate([self._last_docs, rest])
            zeros = np.zeros((2, more), np.int64)
            self._counts = np.concatenate([self._counts, zeros], axis=1)
            self._totals = np.concatenate([self._totals, zeros], axis=1)

    def _sort_waiting(self, *, spill: bool) -> None:
        if len(self._waiting) == 0:
            return
        bounds = np.zeros((2, self._counts.shape[1] + 1), np.int64)
        np.cumsum(self._counts, axis=1, out=bounds[:, 1:])
        docs, frequencies = (np.empty(bounds[0, -1], np.uint32) for _ in range(2))
        columns = [docs, frequencies]
        if self._with_positions:
            columns.append(np.empty(bounds[1, -1], np.uint32))
        self._last_docs[:] = _NO_DOC
        behind = bounds[:, :-1].copy()
        for each in self._waiting:
            place_postings(
                each.token_ids,
                each.docs,
                each.times,
                self._last_docs,
                behind[0],
                docs,
                frequencies,
            )
            if self._with_positions:
                place_positions(each.token_ids, each.positions, behind[1], columns[2])
        held = _HeldRun(self._counts[0].astype(np.uint32), columns)
        self._runs.append(self._spilled(held) if spill else held)
        self._totals += self._counts
        self._counts[:] = 0
        self._last_docs[:] = _NO_DOC
        self._waiting, self._waiting_bytes = [], 0

    def _spilled(self, run: _HeldRun) -> _FileRun:
        if self._file is None:
            self._file = self._stack.enter_context(spill_file())
        with spilling():
            starts = []
            for values in (run.counts, *run.columns):
                starts.append(self._file.seek(0, 2))
                self._file.write(values.data)
        return _FileRun(self._file, len(run.counts), starts)


class _Run(Protocol):
    """Posting lists by token, read from the first to the last."""

    def read(self, num_tokens: int) -> list[NDArray[np.uint32]]:
        """Return counts, documents, frequencies and, if kept, positions of the next tokens.

        Of tokens that occurred only later there are no counts.
        """


class _HeldRun:
    """Posting lists in memory."""

    def __init__(self, counts: NDArray[np.uint32], columns: list[NDArray[np.uint32]]) -> None:
        self.counts = counts
        self.columns = columns
        self._next = [0] * (1 + len(columns))

    def read(self, num_tokens: int) -> list[NDArray[np.uint32]]:
        return _read(self._take, num_tokens, has_positions=1 + len(self.columns) > _COLUMNS)

    def _take(self, column: int, count: int) -> NDArray[np.uint32]:
        start = self._next[column]
        self._next[column] += count
        return (self.counts, *self.columns)[column][start : start + count]


class _FileRun:
    """Posting lists in a file, column after column."""

    def __init__(self, file: BinaryIO, num_tokens: int, starts: list[int]) -> None:
        self._file = file
        self._left = num_tokens
        self._next = starts

    def read(self, num_tokens: int) -> list[NDArray[np.uint32]]:
        wanted = min(num_tokens, self._left)
        self._left -= wanted
        return _read(self._take, wanted, has_positions=len(self._next) > _COLUMNS)

    def _take(self, column: int, count: int) -> NDArray[np.uint32]:
        values = np.empty(count, np.uint32)
        with spilling():
            self._file.seek(self._next[column])
            self._file.readinto(values.data)  # type: ignore[attr-defined]  # of a buffered file
        self._next[column] += values.nbytes
        return values


def _read(
    take: Callable[[int, int], NDArray[np.uint32]], num_tokens: int, *, has_positions: bool
) -> list[NDArray[np.uint32]]:
    counts = take(0, num_tokens)
    num_postings = int(counts.sum(dtype=np.int64))
    columns = [counts, take(1, num_postings), take(2, num_postings)]
    if has_positions:
        columns.append(take(3, int(columns[2].sum(dtype=np.int64))))
    return columns


def _joined(
    parts: Sequence[list[NDArray[np.uint32]]], totals: NDArray[np.int64], *, has_positions: bool
) -> PostingLists:
    """Return lists of some tokens that runs have parts of; ``totals`` as `PostingRuns` has them."""
    bounds = np.zeros((2, totals.shape[1] + 1), np.int64)
    np.cumsum(totals, axis=1, out=bounds[:, 1:])
    if len(parts) == 1:
        _, docs, frequencies, *rest = parts[0]
        return PostingLists(bounds[0], docs, frequencies, rest[0] if has_positions else None)
    docs, frequencies = (np.empty(bounds[0, -1], np.uint32) for _ in range(2))
    positions = np.empty(bounds[1, -1], np.uint32) if has_positions else None
    of_docs, of_frequencies, of_positions = (bounds[each, :-1].copy() for each in (0, 0, 1))
    for counts, some_docs, some_frequencies, *rest in parts:
        place_run(counts, some_docs, of_docs, docs)
        place_run(counts, some_frequencies, of_frequencies, frequencies)
        if positions is not None:
            sums = np.empty(len(counts), np.uint32)
            sum_counts(counts, some_frequencies, sums)
            place_run(sums, rest[0], of_positions, positions)
    return PostingLists(bounds[0], docs, frequencies, positions)


def _occurrence_bytes(count: int) -> int:
    """Return what occurrences take: a token, a document, a position, and once more when sorted."""
    return 2 * 3 * _NUMBER_BYTES * count
