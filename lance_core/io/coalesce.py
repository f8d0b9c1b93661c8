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
    requests: list[tuple[int, int]] = []
    owners = [0] * len(ranges)
    first = last = -1
    for position in sorted(range(len(ranges)), key=ranges.__getitem__):
        start, end = ranges[position]
        merged_end = max(end, last)
        near = start <= last + gap and merged_end - first <= max_request_bytes
        if requests and (start < last or near):
            last = merged_end
            requests[-1] = (first, last)
        else:
            first, last = start, end
            requests.append((first, last))
        owners[position] = len(requests) - 1
    return RequestPlan(requests, owners)
