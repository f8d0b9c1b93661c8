"""Whether the tokens of a phrase stand in a document as they stand in the query."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lance_core.kernels.compile import kernel
from lance_core.kernels.memory import int64_at, uint32_at

if TYPE_CHECKING:
    from numpy.typing import NDArray

STARTS, POSITIONS, OFFSET = range(3)
"""Columns of a table of posting lists: addresses of starts by posting and of positions, and the
token's position in the query."""

NUM_PHRASE_COLUMNS = 3

NOT_THERE = -1
"""Stands for the posting of a list that does not have a document."""

_BEHIND_ALL = 1 << 62


class Phrase(NamedTuple):
    """What positions have to be like.

    Parameters
    ----------
    table
        Shape ``(m, NUM_PHRASE_COLUMNS)``, a row for each posting list by the position of its token
        in the query; no rows: anything goes.
    firsts
        Where the rows of each position in the query begin, and the end of the last: any of its
        tokens will do.
    slop
        How many positions more may be between two tokens.
    """

    table: NDArray[np.int64]
    firsts: NDArray[np.int64]
    slop: int


@kernel
def stands_in(
    table: NDArray[np.int64],
    firsts: NDArray[np.int64],
    slop: int,
    places: NDArray[np.int64],
    now: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> bool:
    """Tell whether a document has a phrase.

    Cursors over the positions of each token move forward together until all stand at the same
    place, or with slop until neighbours are close enough. With three tokens or more and slop this
    misses some documents, the same as pylance (scalar index page, 8.9).

    Parameters
    ----------
    table, firsts, slop
        Of the phrase.
    places
        Shape ``(m,)``: which posting of each list is the document's, or ``NOT_THERE``.
    now, ends
        Scratch, shape ``(m,)``.
    """
    for row in range(table.shape[0]):
        now[row], ends[row] = 0, 0
        if places[row] != NOT_THERE:
            bounds = int64_at(table[row, STARTS] + 8 * places[row], 2)
            now[row], ends[row] = bounds[0], bounds[1]
    while True:
        if slop == 0:
            target, is_near = _common_target(table, firsts, now, ends)
        else:
            target, is_near = _near_target(table, firsts, slop, now, ends)
        if target == _BEHIND_ALL or is_near:
            return is_near
        for row in range(table.shape[0]):
            while now[row] < ends[row] and _relative(table, row, now[row]) < target:
                now[row] += 1


@kernel
def _common_target(
    table: NDArray[np.int64],
    firsts: NDArray[np.int64],
    now: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> tuple[int, bool]:
    """Return the least relative position that cursors may have, and whether all have it."""
    target, are_equal = _nearest(table, firsts, 0, now, ends), True
    for group in range(1, firsts.shape[0] - 1):
        place = _nearest(table, firsts, group, now, ends)
        are_equal &= place == target
        target = max(target, place)
    return target, are_equal and target < _BEHIND_ALL


@kernel
def _near_target(
    table: NDArray[np.int64],
    firsts: NDArray[np.int64],
    slop: int,
    now: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> tuple[int, bool]:
    """Return the least relative position that cursors may have, and whether all are near."""
    first = target = _nearest(table, firsts, 0, now, ends)
    for group in range(1, firsts.shape[0] - 1):
        second = _nearest(table, firsts, group, now, ends)
        if max(first, second) == _BEHIND_ALL:
            return _BEHIND_ALL, False
        target = max(target, first if first > second else max(first + 1, second - slop))
        if first > second or second > first + slop:
            return target, False
        first = second
    return target, first < _BEHIND_ALL


@kernel
def _nearest(
    table: NDArray[np.int64],
    firsts: NDArray[np.int64],
    group: int,
    now: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> int:
    """Return the least relative position of a group's cursors, ``_BEHIND_ALL`` at their ends."""
    nearest = _BEHIND_ALL
    for row in range(firsts[group], firsts[group + 1]):
        if now[row] < ends[row]:
            nearest = min(nearest, _relative(table, row, now[row]))
    return nearest


@kernel
def _relative(table: NDArray[np.int64], row: int, place: int) -> int:
    """Return a position of a token less its position in the query."""
    position = uint32_at(table[row, POSITIONS] + 4 * place, 1)[0]
    return int(np.int64(position) - table[row, OFFSET])
