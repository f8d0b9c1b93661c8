"""Which columns of a result a test of rows reads anyway, and which wait until rows have passed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from lance_core.scan.projection import Projection

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SplitColumns:
    """The columns of a result in two parts.

    Attributes
    ----------
    early
        What a test reads of every row; may hold more than the result has.
    shared
        Places among ``early`` of the columns that the result has too.
    late
        The other columns of the result.
    order
        Of each column of the result its place in ``shared`` and ``late``, one after the other.
    """

    early: Projection
    shared: tuple[int, ...]
    late: Projection
    order: tuple[int, ...]

    def in_order(self, shared: Sequence[T], late: Sequence[T]) -> list[T]:
        """Return the columns of the result, given those of both parts."""
        both = [*shared, *late]
        return [both[place] for place in self.order]


def split_columns(early: Projection, result: Projection) -> SplitColumns:
    """Split the columns of a result, of which ``early`` are read before."""
    places = {column.name: place for place, column in enumerate(early.columns)}
    shared = [column.name for column in result.columns if column.name in places]
    late = [column for column in result.columns if column.name not in places]
    names = [*shared, *(column.name for column in late)]
    return SplitColumns(
        early,
        tuple(places[name] for name in shared),
        Projection(tuple(late)),
        tuple(names.index(column.name) for column in result.columns),
    )
