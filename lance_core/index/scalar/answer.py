"""What an index says about a condition: rows where it holds, and where it may hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lance_core.index.scalar.fragment_rows import NO_ROWS, intersect, subtract, unite

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance_core.index.scalar.fragment_rows import FragmentRows


@dataclass(frozen=True, slots=True, eq=False)
class RowAnswer:
    """For which rows a condition holds, as far as known.

    Rows that the index knows nothing of (deleted ones, fragments it does not cover) may be in any
    set: whoever asks keeps the rows that it covers.

    Attributes
    ----------
    certain
        Rows for which the condition is true.
    possible
        Rows for which it may be true, the certain ones included; no other row passes. The rows in
        ``possible`` and not in ``certain`` have to be looked at.
    nulls
        All rows for which the condition is null; None = nobody asked, or the index cannot tell.

    Notes
    -----
    Scalar index page, section 1.4. ``&`` and ``|`` give the answer for AND and OR of two
    conditions, `negated` that for NOT. It is cheapest to lead NOT down to the leaves first, which
    three-valued logic allows: then null sets are needed for negated leaves alone.
    """

    certain: FragmentRows
    possible: FragmentRows
    nulls: FragmentRows | None = None

    @classmethod
    def exact(cls, rows: FragmentRows, nulls: FragmentRows | None = None) -> RowAnswer:
        """Return the answer that the condition is true for ``rows`` and no others."""
        return cls(rows, rows, nulls)

    @classmethod
    def at_most(cls, rows: FragmentRows, nulls: FragmentRows | None = None) -> RowAnswer:
        """Return the answer that the condition is true for none but some of ``rows``."""
        return cls(NO_ROWS, rows, nulls)

    @property
    def is_exact(self) -> bool:
        """Whether no row has to be looked at, told without comparing sets."""
        return self.certain is self.possible

    @property
    def unsure(self) -> FragmentRows:
        """Rows that have to be looked at."""
        return NO_ROWS if self.is_exact else subtract(self.possible, self.certain)

    def __and__(self, other: RowAnswer) -> RowAnswer:
        certain = intersect(self.certain, other.certain)
        if self.is_exact and other.is_exact:
            return RowAnswer.exact(certain, self._nulls_of_and(other))
        return RowAnswer(certain, intersect(self.possible, other.possible))

    def __or__(self, other: RowAnswer) -> RowAnswer:
        certain = unite((self.certain, other.certain))
        if self.is_exact and other.is_exact:
            return RowAnswer.exact(certain, self._nulls_of_or(other))
        return RowAnswer(certain, unite((self.possible, other.possible)))

    def negated(self, universe: FragmentRows) -> RowAnswer:
        """Return the answer for NOT.

        Where the null rows are not known no row is certain.

        Parameters
        ----------
        universe
            All rows that may be found.
        """
        if self.nulls is None:
            return RowAnswer.at_most(subtract(universe, self.certain))
        not_null = subtract(universe, self.nulls)
        certain = subtract(not_null, self.possible)
        if self.is_exact:
            return RowAnswer.exact(certain, self.nulls)
        return RowAnswer(certain, subtract(not_null, self.certain), self.nulls)

    def _nulls_of_and(self, other: RowAnswer) -> FragmentRows | None:
        """Return the rows where one side is null and the other null or true."""
        if self.nulls is None or other.nulls is None:
            return None
        return unite(
            (
                intersect(self.nulls, other.nulls),
                intersect(self.nulls, other.certain),
                intersect(self.certain, other.nulls),
            )
        )

    def _nulls_of_or(self, other: RowAnswer) -> FragmentRows | None:
        """Return the rows where one side is null and neither is true."""
        if self.nulls is None or other.nulls is None:
            return None
        either = unite((self.nulls, other.nulls))
        return subtract(subtract(either, self.certain), other.certain)


def united(answers: Sequence[RowAnswer]) -> RowAnswer:
    """Return what several segments of one index say together, each of its own rows."""
    certain = unite(answer.certain for answer in answers)
    known = [answer.nulls for answer in answers if answer.nulls is not None]
    nulls = unite(known) if len(known) == len(answers) else None
    if all(answer.is_exact for answer in answers):
        return RowAnswer.exact(certain, nulls)
    return RowAnswer(certain, unite(answer.possible for answer in answers), nulls)
