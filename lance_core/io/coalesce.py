"""Which requests serve a list of byte ranges best; pure arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class RequestPlan:
    """Requests in ascending order, disjoint, and for each range the request that holds it.

    ``owners[i]`` is the position in ``requests`` of the one that wholly contains range ``i``.
    """

    requests: list[tuple[int, int]]
    owners: list[int]


def coalesce(ranges: Sequence[tuple[int, int]], gap: int, max_request_bytes: int) -> RequestPlan:
    """Merge ranges that lie near each other into fewer requests.

    Parameters
    ----------
    ranges
        Byte ranges ``[start, end)``, in any order; they may overlap, repeat or be empty.
    gap
        Two ranges with at most this many bytes between them share a request.
    max_request_bytes
        A request does not grow beyond this by closing a gap. Ranges that overlap share one
        whatever its size, so that no byte is read twice, and a large range is never split.

    Examples
    --------
    >>> coalesce([(90, 100), (0, 10), (12, 20)], gap=4, max_request_bytes=1000)
    RequestPlan(requests=[(0, 20), (90, 100)], owners=[1, 0, 0])
    """
    islands, island_of = _merge_overlapping(ranges)
    requests: list[tuple[int, int]] = []
    request_of: list[int] = []
    for start, end in islands:
        first, last = requests[-1] if requests else (start, start)
        if requests and start - last <= gap and end - first <= max_request_bytes:
            requests[-1] = (first, end)
        else:
            requests.append((start, end))
        request_of.append(len(requests) - 1)
    return RequestPlan(requests, [request_of[island] for island in island_of])


def _merge_overlapping(
    ranges: Sequence[tuple[int, int]],
) -> tuple[list[tuple[int, int]], list[int]]:
    """Return the disjoint unions of overlapping ranges, ascending, and each range's union."""
    islands: list[tuple[int, int]] = []
    island_of = [0] * len(ranges)
    for position in sorted(range(len(ranges)), key=ranges.__getitem__):
        start, end = ranges[position]
        if islands and start < islands[-1][1]:
            first, last = islands[-1]
            islands[-1] = (first, max(last, end))
        else:
            islands.append((start, end))
        island_of[position] = len(islands) - 1
    return islands, island_of
