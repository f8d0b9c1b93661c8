"""What a hybrid query is going to do, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lance_core.query.fusion import Fusion
    from lance_core.query.plan import SkippedSegment, TextPlan, VectorPlan


@dataclass(frozen=True, slots=True, eq=False)
class HybridPlan:
    """A vector query and a text query, whose rows are ranked as one answer.

    Of the rows that either finds ``offset`` are skipped and ``k`` returned with ``columns``, all of
    them if ``k`` is None.
    """

    vector: VectorPlan
    text: TextPlan
    fusion: Fusion
    offset: int
    k: int | None
    columns: tuple[str, ...]

    @property
    def all_skipped(self) -> tuple[SkippedSegment, ...]:
        """Segments that are left out by either query, each once."""
        return tuple(dict.fromkeys((*self.vector.all_skipped, *self.text.all_skipped)))
