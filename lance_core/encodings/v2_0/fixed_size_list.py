"""Fixed-size lists: all elements one after another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lance_core.encodings.page import RawRows
from lance_core.encodings.values import FixedSizeLists

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance_core.encodings.page import Page
    from lance_core.encodings.place import Place
    from lance_core.encodings.steps import ReadSteps
    from lance_core.encodings.v2_0.node import ArrayNode


@dataclass(frozen=True, slots=True)
class FixedSizeListArray:
    """``dimension`` elements per list; validity of the lists stands outside."""

    dimension: int
    items: ArrayNode

    def check(self, page: Page, num_values: int, place: Place) -> None:
        """Check the elements."""
        if self.dimension == 0:
            raise place.corrupt("fixed-size lists of 0 elements")
        self.items.check(page, num_values * self.dimension, place)

    def read(
        self, page: Page, pieces: Sequence[tuple[int, int]], place: Place
    ) -> ReadSteps[FixedSizeLists]:
        """Read the elements of the lists."""
        elements = [(start * self.dimension, stop * self.dimension) for start, stop in pieces]
        items = yield from self.items.read(page, elements, place)
        return FixedSizeLists(items, self.dimension, items.num_values // self.dimension)

    def raw(self, page: Page) -> RawRows | None:
        """Join the raw elements to raw lists."""
        items = self.items.raw(page)
        return None if items is None else RawRows(items.offset, items.row_bytes * self.dimension)
