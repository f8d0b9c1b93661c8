"""What the documents of one window score, and whether any of them can be among the best."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel
from lance_core.kernels.memory import float32_at, prefetch, prefetch_bytes, uint32_at
from lance_core.kernels.text_phrase import NOT_THERE
from lance_core.kernels.text_weights import WINDOW_SHIFT
from lance_core.kernels.text_windows import BEST, DOCS, GROUP, SHIFT, STARTS, WEIGHTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

WIDTH = 1 << WINDOW_SHIFT

_WITHIN = np.uint32(WIDTH - 1)
_ALL = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
_WORD_BYTES = 4
_FEW_LISTS = 2
"""With so many lists all postings of a window are looked at."""

_ROUNDING = 2.0**-22
"""More than two sums of the same numbers in different orders differ by, for each number."""


@kernel(ordered=True)
def score_window(
    table: NDArray[np.int64],
    rarities: NDArray[np.float32],
    num_groups: int,
    first_doc: int,
    sums: NDArray[np.float32],
    of_group: NDArray[np.float32],
    places: NDArray[np.int64],
) -> np.uint64:
    """Add up the scores of a window's documents.

    Parameters
    ----------
    table, rarities, num_groups
        Of `Lists`.
    first_doc
        Of the window.
    sums
        Shape ``(64,)``, written.
    of_group
        Scratch, shape ``(64,)`` where groups have several lists, else ``(0,)``.
    places
        Shape ``(64, m)``: receives which posting of each list is a document's, or ``NOT_THERE``.
        Not written if it has no columns.

    Returns
    -------
    np.uint64
        Bits of the documents that match.
    """
    sums[:] = np.float32(0)
    of_group[:] = np.float32(0)
    places[:] = NOT_THERE
    summed = of_group if of_group.shape[0] > 0 else sums
    matching, hit, group = _ALL, np.uint64(0), 0
    for index in range(table.shape[0]):
        if table[index, GROUP] != group:
            group = table[index, GROUP]
            _add_group(of_group, sums)
            if num_groups > 0:
                matching &= hit
                hit = np.uint64(0)
                if matching == np.uint64(0):
                    return matching
        start, stop = postings_of(table, index, first_doc)
        hit |= add_postings(table, index, rarities[index], start, stop, summed)
        if places.shape[1] > 0:
            docs = uint32_at(table[index, DOCS] + _WORD_BYTES * start, stop - start)
            for place in range(docs.shape[0]):
                places[np.uint64(docs[place] & _WITHIN), index] = start + place
    _add_group(of_group, sums)
    return matching & hit


@kernel(ordered=True)
def _add_group(of_group: NDArray[np.float32], sums: NDArray[np.float32]) -> None:
    """Add what documents score in a group, and begin another."""
    for doc in range(of_group.shape[0]):
        sums[doc] = np.float32(sums[doc] + of_group[doc])
        of_group[doc] = np.float32(0)


@kernel
def postings_of(table: NDArray[np.int64], index: int, first_doc: int) -> tuple[int, int]:
    """Return which postings of a list are of a window: the first, and one behind the last."""
    shift = table[index, SHIFT]
    cell = uint32_at(table[index, STARTS] + _WORD_BYTES * (first_doc >> shift), 2)
    start, stop = int(np.int64(cell[0])), int(np.int64(cell[1]))
    if shift > WINDOW_SHIFT:
        docs = uint32_at(table[index, DOCS], stop)
        while start < stop and docs[start] < first_doc:
            start += 1
        end = start
        while end < stop and docs[end] < first_doc + WIDTH:
            end += 1
        stop = end
    return start, stop


@kernel(ordered=True)
def add_postings(
    table: NDArray[np.int64],
    index: int,
    rarity: np.float32,
    start: int,
    stop: int,
    sums: NDArray[np.float32],
) -> np.uint64:
    """Add what the postings of a window score; return the bits of their documents."""
    hit = np.uint64(0)
    docs = uint32_at(table[index, DOCS] + _WORD_BYTES * start, stop - start)
    weights = float32_at(table[index, WEIGHTS] + _WORD_BYTES * start, stop - start)
    for place in range(docs.shape[0]):
        doc = np.uint64(docs[place] & _WITHIN)  # signed, it would be looked at for wrapping
        sums[doc] = np.float32(sums[doc] + np.float32(rarity * weights[place]))
        hit |= np.uint64(1) << doc
    return hit


@kernel(ordered=True)
def can_matter(
    table: NDArray[np.int64],
    rarities: NDArray[np.float32],
    by_size: NDArray[np.int64],
    window: int,
    live: np.uint64,
    worst: np.float32,
    sums: NDArray[np.float32],
) -> bool:
    """Tell whether a document of a window may score at least ``worst``.

    Short lists are added up first, which few documents are in together. Of longer ones the best
    weight in the window is known, and most windows are done with before the longest are read.

    Parameters
    ----------
    table, rarities
        Of `Lists`.
    by_size
        Shape ``(m,)``: the lists, the shortest first.
    window, live, worst
        Which window, the bits of its documents that may be found, and the score.
    sums
        Scratch, shape ``(64,)``.
    """
    if table.shape[0] <= _FEW_LISTS or worst <= np.float32(0):
        return True
    for doc in range(WIDTH):
        is_live = live >> np.uint64(doc) & np.uint64(1) != np.uint64(0)
        sums[doc] = np.float32(0) if is_live else np.float32(-np.inf)
    needed = np.float64(worst) * (1 - _ROUNDING * table.shape[0])
    rest = 0.0
    for index in range(table.shape[0]):
        if table[index, BEST] != 0:
            rest += max(_best_of(table, index, window), np.float32(0)) * rarities[index]
        else:
            start, stop = postings_of(table, index, window << WINDOW_SHIFT)
            add_postings(table, index, rarities[index], start, stop, sums)
    for index in by_size:
        best = _best_of(table, index, window) if table[index, BEST] != 0 else np.float32(-1)
        if best < np.float32(0):
            continue
        if not any_at_least(sums, np.float32(needed - rest)):
            return False
        rest -= best * rarities[index]
        start, stop = postings_of(table, index, window << WINDOW_SHIFT)
        add_postings(table, index, rarities[index], start, stop, sums)
    return any_at_least(sums, np.float32(needed))


@kernel
def _best_of(table: NDArray[np.int64], index: int, window: int) -> np.float32:
    """Return the best weight of a list in a window, below 0 if it has no posting there."""
    return np.float32(float32_at(table[index, BEST] + _WORD_BYTES * window, 1)[0])


@kernel
def ask_for_starts(table: NDArray[np.int64], window: int) -> None:
    """Ask the memory for where the postings of a window begin."""
    for index in range(table.shape[0]):
        cell = (window << WINDOW_SHIFT) >> table[index, SHIFT]
        prefetch(table[index, STARTS] + _WORD_BYTES * cell)


@kernel
def ask_for_postings(table: NDArray[np.int64], window: int) -> None:
    """Ask the memory for the postings of a window."""
    for index in range(table.shape[0]):
        cell = (window << WINDOW_SHIFT) >> table[index, SHIFT]
        bounds = uint32_at(table[index, STARTS] + _WORD_BYTES * cell, 2)
        first, size = _WORD_BYTES * bounds[0], _WORD_BYTES * (bounds[1] - bounds[0])
        prefetch_bytes(table[index, DOCS] + first, size)
        prefetch_bytes(table[index, WEIGHTS] + first, size)


@kernel(ordered=True)
def any_at_least(sums: NDArray[np.float32], least: np.float32) -> bool:
    """Tell whether one of the scores is at least ``least``; compiles to vectors."""
    found = False
    for doc in range(WIDTH):
        found |= sums[doc] >= least
    return found
