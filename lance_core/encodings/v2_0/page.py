"""A page of a 2.0 file: an array encoding at its root."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lance_core.encodings.levels import Layer, Layers, PageData
from lance_core.encodings.v2_0.lists import ListArray

if TYPE_CHECKING:
    from lance_core.encodings.page import DirectPage, Page, Pieces
    from lance_core.encodings.place import Place
    from lance_core.encodings.steps import ReadSteps
    from lance_core.encodings.v2_0.node import ArrayNode

_ONE_LAYER = Layers((Layer.NULLABLE_ITEM,))


@dataclass(frozen=True, slots=True)
class ArrayPage:
    """There are no levels: values know their nulls, and lists have columns of their own."""

    root: ArrayNode

    @property
    def num_items(self) -> int:
        """Elements of the child column that belong to the page, if it is one of lists."""
        return self.root.num_items if isinstance(self.root, ListArray) else 0

    def check(self, page: Page, place: Place) -> None:
        """Check all buffers against the rows of the page."""
        self.root.check(page, page.num_rows, place)

    def read(self, page: Page, pieces: Pieces, place: Place) -> ReadSteps[list[PageData]]:
        """Read the rows."""
        values = yield from self.root.read(page, pieces, place)
        return [PageData(values, None, None, _ONE_LAYER, values.num_values)]

    def direct(self, page: Page) -> DirectPage | None:
        """Raw rows are addressable."""
        return self.root.raw(page)
