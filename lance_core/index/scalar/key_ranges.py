"""Queries in terms of sorted keys: single ones, or all those between two bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.errors import InvalidRequestError
from lance_core.expr.index_query import AnyOf, Between, IsNull, StartsWith
from lance_core.index.scalar.keys import after_prefix, has_prefixes, keys_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lance_core.expr.index_query import LeafQuery
    from lance_core.index.scalar.keys import Keys


@dataclass(frozen=True, slots=True, eq=False)
class KeyRanges:
    """Which keys a query asks for: ``n`` ranges, which ascend and do not overlap.

    Parameters
    ----------
    lower, upper
        ``n`` bounds each, equal ones where single keys are asked for. None = open, of one range.
    includes_lower, includes_upper
        Whether the bounds themselves are asked for.
    """

    lower: Keys | None
    upper: Keys | None
    includes_lower: bool = True
    includes_upper: bool = True

    def __len__(self) -> int:
        bounds = self.lower if self.lower is not None else self.upper
        return 1 if bounds is None else len(bounds)

    def part(self, start: int, stop: int) -> KeyRanges:
        """Return the ranges ``[start, stop)``."""
        lower = None if self.lower is None else self.lower.part(start, stop)
        if self.upper is self.lower:
            return KeyRanges(lower, lower)
        upper = None if self.upper is None else self.upper.part(start, stop)
        return KeyRanges(lower, upper, self.includes_lower, self.includes_upper)

    def starts(self, keys: Keys) -> NDArray[np.int64]:
        """Return for each range how many of ascending keys stand before it, shape ``(n,)``."""
        if self.lower is None:
            return np.zeros(len(self), np.int64)
        return keys.search(self.lower, is_behind_equals=not self.includes_lower)

    def stops(self, keys: Keys) -> NDArray[np.int64]:
        """Return for each range how many of ascending keys do not stand behind it."""
        if self.upper is None:
            return np.full(len(self), len(keys), np.int64)
        return keys.search(self.upper, is_behind_equals=self.includes_upper)

    def positions(self, keys: Keys) -> NDArray[np.int64]:
        """Return the positions of ascending keys that are asked for."""
        if self.lower is not None and self.lower is self.upper:
            return expanded(*keys.find(self.lower))
        return expanded(self.starts(keys), self.stops(keys))


def can_be_ranges(query: LeafQuery, kind: pa.DataType) -> bool:
    """Tell whether a query asks for ranges of keys of a type, or for null."""
    match query:
        case AnyOf(values):
            return bool(values.type == kind)
        case Between(lower, upper):
            return all(bound is None or bound.type == kind for bound in (lower, upper))
        case StartsWith(prefix):
            return has_prefixes(kind) and has_prefixes(prefix.type)
        case _:
            return isinstance(query, IsNull)


def key_ranges(query: LeafQuery) -> KeyRanges:
    """Return the keys that a query asks for, which is one of those that `can_be_ranges`.

    Raises
    ------
    InvalidRequestError
        It asks for something else.
    """
    match query:
        case AnyOf(values):
            keys = keys_of(values)
            single = keys if len(keys) == 1 else keys.take(keys.order())
            return KeyRanges(single, single)
        case Between(lower, upper):
            return KeyRanges(
                _bound(lower), _bound(upper), query.includes_lower, query.includes_upper
            )
        case StartsWith(prefix):
            return _beginning_with(prefix)
    raise InvalidRequestError(f"{type(query).__name__} asks for no range of keys")


def expanded(starts: NDArray[np.int64], stops: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the numbers of all ranges ``[starts[i], stops[i])``; some may be empty.

    >>> expanded(np.array([3, 5, 9]), np.array([5, 5, 10])).tolist()
    [3, 4, 9]
    """
    if len(starts) == 1:
        return np.arange(starts[0], stops[0])
    lengths = np.maximum(stops - starts, 0)
    shifts = starts - (np.cumsum(lengths) - lengths)
    numbers: NDArray[np.int64] = np.repeat(shifts, lengths) + np.arange(lengths.sum())
    return numbers


def joined_ranges(starts: NDArray[np.int64], stops: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return ranges of rows with those joined of which one begins where the last one ends.

    >>> joined_ranges(np.array([0, 4, 9]), np.array([4, 8, 11]))
    [(0, 8), (9, 11)]
    """
    is_first = np.ones(len(starts), np.bool_)
    is_first[1:] = starts[1:] != stops[:-1]
    is_last = np.roll(is_first, -1)
    return list(zip(starts[is_first].tolist(), stops[is_last].tolist(), strict=True))


def _bound(value: pa.Scalar | None) -> Keys | None:
    return None if value is None else keys_of(pa.repeat(value, 1))


def _beginning_with(prefix: pa.Scalar) -> KeyRanges:
    first = prefix.cast(pa.large_binary())
    behind = after_prefix(first.as_py())
    upper = None if behind is None else pa.scalar(behind, pa.large_binary())
    return KeyRanges(_bound(first), _bound(upper), includes_upper=False)
