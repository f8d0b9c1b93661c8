"""What is kept of queries that were answered before, for others that differ by their vectors only.

It is no part of the cache and its budget, so it must stay small whatever callers ask for: they
choose the parameters, filters among them, whose text may be long.
"""

from __future__ import annotations

import re
from threading import Lock
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

V = TypeVar("V")

_MAX_KEPT = 256
_MAX_CHARACTERS = 1 << 16
"""Of all filters; parsed, a character takes up to a hundred bytes."""
_MAX_FILTER_CHARACTERS = 4096
"""A longer filter takes so long to judge that parsing it anew makes no difference."""

_VALUE_CHARACTERS = 16
_MOVING = re.compile(r"\b(now|current_timestamp|current_date|random)\b", re.IGNORECASE)


def is_long(text: str | None) -> bool:
    """Tell texts that are not kept, as they take long to parse and much memory."""
    return text is not None and len(text) > _MAX_FILTER_CHARACTERS


def may_move(text: str) -> bool:
    """Tell texts that may say something else when they are read again, as time goes on."""
    return _MOVING.search(text) is not None


def size_of(params: Mapping[str, object] | None) -> int:
    """Return about how many characters the values of parameters take."""
    if params is None:
        return 0
    return sum(
        _VALUE_CHARACTERS * (len(each) if isinstance(each, (list, tuple)) else 1)
        if not isinstance(each, (str, bytes))
        else len(each)
        for each in params.values()
    )


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

    def keep(
        self, key: Hashable, value: V, text: str, params: Mapping[str, object] | None = None
    ) -> None:
        """Keep a value unless its texts are long or may move; if there are many, they go first.

        Parameters
        ----------
        key, value
            Parameters and what was prepared.
        text
            Its filter and expressions.
        params
            Values of the ``$name`` in these.
        """
        size = len(text) + size_of(params)
        if size > _MAX_FILTER_CHARACTERS or may_move(text):
            return
        with self._lock:
            if len(self._kept) >= _MAX_KEPT or self._num_characters + size > _MAX_CHARACTERS:
                self._kept.clear()
                self._num_characters = 0
            self._kept[key] = value
            self._num_characters += size
