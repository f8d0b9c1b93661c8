"""How the work of index jobs is cut into pieces: pure functions of numbers of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lance_core.file.arguments import checked_number

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

_TIER = 8
"""Segments of so many times fewer rows than those that are merged anyway come along."""


@dataclass(frozen=True, slots=True)
class FragmentSize:
    """A fragment and its live rows."""

    id: int
    num_rows: int


@dataclass(frozen=True, slots=True)
class GroupSizes:
    """How large the groups of fragments are that become a segment each.

    Parameters
    ----------
    segment_rows
        Rows wanted in a group.
    num_segments
        So many groups instead; None = as many as the rows ask for.
    least_segments
        Groups wanted at least, so that all workers have something to do; as far as each then has
        ``least_rows``.
    least_rows
        Rows that are worth a task.

    Raises
    ------
    InvalidRequestError
        ``segment_rows`` or ``num_segments`` is no number from 1 on.
    """

    segment_rows: int = 1 << 24
    num_segments: int | None = None
    least_segments: int = 1
    least_rows: int = 1 << 16

    def __post_init__(self) -> None:
        checked_number("segment_rows", self.segment_rows, 1)
        if self.num_segments is not None:
            checked_number("num_segments", self.num_segments, 1)

    def groups_of(self, num_rows: int) -> int:
        """Return how many groups so many rows become, at least 1."""
        if self.num_segments is not None:
            return self.num_segments
        worth = min(self.least_segments, num_rows // self.least_rows)
        return max(-(-num_rows // self.segment_rows), worth, 1)


def group_fragments(fragments: Collection[FragmentSize], sizes: GroupSizes) -> list[list[int]]:
    """Cut fragments into groups of neighbours with about equal rows.

    Parameters
    ----------
    fragments
        The fragments, in any order: such as no index covers, or all. A segment of both kinds would
        keep compactions from joining what is in one segment.
    sizes
        How large groups are.

    Returns
    -------
    list[list[int]]
        Ids, ascending in and over the groups; every fragment is in one group, and none is empty.

    Notes
    -----
    Spark page, section 10.3. Segments of fragments that lie apart would keep compactions from
    joining any (lance PR #8742).
    """
    ordered = sorted(fragments, key=lambda each: each.id)
    count = min(sizes.groups_of(sum(each.num_rows for each in ordered)), len(ordered))
    return _cut(ordered, count) if count > 0 else []


def neighbours_up_to(num_rows: Sequence[int], most_rows: int) -> list[list[int]]:
    """Group neighbours so that as few groups as can be have at most ``most_rows`` each.

    Parameters
    ----------
    num_rows
        Rows of each part.
    most_rows
        Rows of a group; a part of more is a group of its own.

    Returns
    -------
    list[list[int]]
        Positions in ``num_rows``, ascending.
    """
    groups: list[list[int]] = []
    room = 0
    for place, own in enumerate(num_rows):
        if len(groups) == 0 or own > room:
            groups.append([])
            room = most_rows
        groups[-1].append(place)
        room -= own
    return groups


def newest_run(num_rows: Sequence[int], max_segments: int, least_rows: int) -> int:
    """Tell which of the newest segments of an index are to become one.

    Parameters
    ----------
    num_rows
        Rows of its segments, the oldest first.
    max_segments
        Segments that it may have.
    least_rows
        Neighbours at the end that are smaller are joined.

    Returns
    -------
    int
        Position of the first segment of the run, which goes to the end; ``len(num_rows)`` where
        all is well. A run has two segments or more.

    Notes
    -----
    Spark page, section 10.4. Small segments are joined with one another and not with a large one:
    that is written anew only when there are too many.
    """
    count = len(num_rows)
    first = count
    while first > 0 and num_rows[first - 1] < least_rows:
        first -= 1
    if count - first < 2:  # noqa: PLR2004 - one alone is not joined with anything
        first = count
    if first + (first < count) > max_segments:
        first = max_segments - 1
    if first == count:
        return count
    total = sum(num_rows[first:])
    while first > 0 and num_rows[first - 1] * _TIER <= total:
        first -= 1
        total += num_rows[first]
    return first


def sample_quota(num_rows: Sequence[int], wanted: int) -> list[int]:
    """Share a sample out by rows.

    Parameters
    ----------
    num_rows
        Rows of each part.
    wanted
        Rows of the sample.

    Returns
    -------
    list[int]
        Rows that each part gives, never more than it has; together ``wanted``, or all rows where
        there are fewer.
    """
    ends = np.cumsum(np.asarray(num_rows, np.int64)) if len(num_rows) > 0 else np.zeros(0, np.int64)
    total = int(ends[-1]) if len(ends) > 0 else 0
    taken = [int(end) * min(wanted, total) // max(total, 1) for end in ends]
    return [after - before for before, after in zip([0, *taken], taken, strict=False)]


def _cut(fragments: Sequence[FragmentSize], count: int) -> list[list[int]]:
    """Cut into groups where the rows so far come nearest to equal shares."""
    ends: NDArray[np.int64] = np.cumsum([each.num_rows for each in fragments], dtype=np.int64)
    groups: list[list[int]] = []
    start = 0
    for number in range(1, count):
        stop = _nearest(ends, int(ends[-1]) * number / count)
        stop = min(max(stop, start + 1), len(fragments) - (count - number))
        groups.append([each.id for each in fragments[start:stop]])
        start = stop
    return [*groups, [each.id for each in fragments[start:]]]


def _nearest(ends: NDArray[np.int64], rows: float) -> int:
    """Return how many fragments have a number of rows that is nearest to ``rows``."""
    after = int(np.searchsorted(ends, rows))
    if after == 0 or after == len(ends):
        return min(after + 1, len(ends))
    return after + 1 if ends[after] - rows <= rows - ends[after - 1] else after
