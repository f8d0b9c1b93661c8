"""Pages of a sorted list of names."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Page:
    """Names in byte order; ``next_token`` is None on the last page."""

    names: list[str]
    next_token: str | None


def page_of(names: Iterable[str], *, limit: int | None, token: str | None) -> Page:
    """Return the names that follow ``token`` strictly, in byte order, at most ``limit``.

    The token is the last name of the page before and need not exist: clients pass names that their
    users chose ("start after").
    """
    ordered = sorted(names, key=str.encode)
    start = 0 if token is None else bisect_right(ordered, token.encode(), key=str.encode)
    if limit is None or start + limit >= len(ordered):
        return Page(ordered[start:], None)
    chosen = ordered[start : start + limit]
    return Page(chosen, chosen[-1])
