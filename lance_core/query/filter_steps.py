"""How the rows that pass a filter are found: what indices are asked, and what has to be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance_core.query.plan import SkippedSegment

_KEPT_BYTES = 512
"""What keeping the description of a step takes."""


@dataclass(frozen=True, slots=True)
class LookupStep:
    """A test that scalar indices answer.

    Parameters
    ----------
    test
        What they are asked.
    indices, kinds
        Names and types of the indices; more than one where one does not cover all fragments.
    num_segments, num_fragments
        How many segments are asked, and for how many fragments.
    num_rows
        Rows that may pass, deleted ones included.
    is_exact
        Whether all of them do.
    """

    test: str
    indices: tuple[str, ...]
    kinds: tuple[str, ...]
    num_segments: int
    num_fragments: int
    num_rows: int
    is_exact: bool


@dataclass(frozen=True, slots=True)
class ReadStep:
    """Rows that are tested by reading columns.

    ``num_fragments`` have some, and ``num_rows`` they are at most: rows that were deleted since the
    index was made are not read.
    """

    columns: tuple[str, ...]
    num_fragments: int
    num_rows: int


@dataclass(frozen=True, slots=True)
class FilterSteps:
    """How the rows that pass a filter are found.

    Parameters
    ----------
    lookups
        What indices are asked.
    rechecks
        What is tested of rows for which they leave it open, one for each set of columns.
    scan
        Live rows of fragments that the indices do not cover, None where there are none.
    fragments_left_out
        Such fragments that a fast search does not look at.
    skipped
        Segments that are not asked, and why.
    """

    lookups: tuple[LookupStep, ...]
    rechecks: tuple[ReadStep, ...]
    scan: ReadStep | None
    fragments_left_out: int
    skipped: tuple[SkippedSegment, ...]

    @property
    def nbytes(self) -> int:
        """Memory of the descriptions, about."""
        parts: Sequence[object] = (*self.lookups, *self.rechecks, *self.skipped)
        return _KEPT_BYTES * (1 + len(parts))
