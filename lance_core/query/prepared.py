"""What is kept of queries that were answered before, for others that differ by their vectors only.

It is no part of the cache and its budget, so it must stay small whatever callers ask for: they
choose the parameters, filters among them, whose text may be long.
"""

from __future__ import annotations

import re
from threading import Lock
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable

V = TypeVar("V")

_MAX_KEPT = 256
_MAX_CHARACTERS = 1 << 16
"""Of all filters; parsed, a character takes up to a hundred bytes."""
_MAX_FILTER_CHARACTERS = 4096
"""A longer filter takes so long to judge that parsing it anew makes no difference."""

_MOVING = re.compile(r"\b(now|current_timestamp|current_date|random)\b", re.IGNORECASE)


def is_long(predicate: str | None) -> bool:
    """Tell filters that are not kept, as they take long to parse and much memory."""
    return predicate is not None and len(predicate) > _MAX_FILTER_CHARACTERS


def may_move(predicate: str | None) -> bool:
    """Tell filters that may hold for other rows when they are read again, as time goes on."""
    return predicate is not None and _MOVING.search(predicate) is not None


class PreparedQueries(Generic[V]):
    """Prepared queries by their parameters; safe to share between threads."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, V] = {}
        self._num_characters = 0
        self._lock = Lock()

    def __len__(self) -> int:
        """Return how many are kept."""
        return len(self._kept)

    def get(self, key: Hashable) -> V | None:
        """Return what was kept under a key, or None."""
        return self._kept.get(key)

    def keep(self, key: Hashable, value: V, predicate: str | None) -> None:
        """Keep a value unless its filter is long or may move; if there are many, they go first."""
        if is_long(predicate) or may_move(predicate):
            return
        size = 0 if predicate is None else len(predicate)
        with self._lock:
            if len(self._kept) >= _MAX_KEPT or self._num_characters + size > _MAX_CHARACTERS:
                self._kept.clear()
                self._num_characters = 0
            self._kept[key] = value
            self._num_characters += size
