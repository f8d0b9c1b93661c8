"""Which byte ranges of an object are at hand; pure arithmetic."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable


class Span(NamedTuple):
    """Bytes ``[start, end)``."""

    start: int
    end: int


class Spans:
    """Spans of one object, none of which lies wholly in another; they may overlap.

    Belongs to whoever holds the lock around it.
    """

    def __init__(self, spans: Iterable[Span] = ()) -> None:
        # Without spans inside others, both starts and ends ascend.
        self._spans: list[Span] = []
        for span in spans:
            self.add(span)

    def __len__(self) -> int:
        return len(self._spans)

    def add(self, span: Span) -> None:
        """Put a span in; those inside it are dropped, and so is it if it lies in another."""
        at = bisect_left(self._spans, span)
        if at > 0 and self._spans[at - 1].end >= span.end:
            return
        if at > 0 and self._spans[at - 1].start == span.start:
            at -= 1
        elif at < len(self._spans) and self._spans[at].start == span.start:
            return  # equal, or the other one ends later
        stop = at
        while stop < len(self._spans) and self._spans[stop].end <= span.end:
            stop += 1
        self._spans[at:stop] = [span]

    def discard(self, span: Span) -> None:
        """Take a span out, if it is there."""
        at = bisect_left(self._spans, span)
        if at < len(self._spans) and self._spans[at] == span:
            del self._spans[at]

    def over(self, start: int, end: int) -> list[Span]:
        """Return the spans that share bytes with ``[start, end)``, ascending."""
        last = bisect_left(self._spans, end, key=lambda span: span.start)
        first = bisect_right(self._spans, start, hi=last, key=lambda span: span.end)
        return self._spans[first:last]

    def missing(self, start: int, end: int) -> Span | None:
        """Return the smallest range that has all bytes of ``[start, end)`` that no span has.

        Examples
        --------
        >>> spans = Spans([Span(0, 10), Span(10, 20), Span(30, 40)])
        >>> spans.missing(5, 35), spans.missing(5, 20)
        (Span(start=20, end=30), None)
        """
        over = self.over(start, end)
        if not over:
            return Span(start, end) if start < end else None
        gaps = [Span(a.end, b.start) for a, b in pairwise(over) if a.end < b.start]
        if start < over[0].start:
            gaps.insert(0, Span(start, over[0].start))
        if over[-1].end < end:
            gaps.append(Span(over[-1].end, end))
        return Span(gaps[0].start, gaps[-1].end) if gaps else None
