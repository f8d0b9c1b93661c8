"""Lists: a column of end offsets; the elements are in the columns of the children."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lance_core.encodings.v2_0.ends import read_extents
from lance_core.encodings.values import FixedWidth, Packed, with_validity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.encodings.page import Page, RawRows
    from lance_core.encodings.place import Place
    from lance_core.encodings.steps import ReadSteps
    from lance_core.encodings.v2_0.node import ArrayNode
    from lance_core.encodings.values import Values

_BITS = 64


@dataclass(frozen=True, slots=True)
class ListArray:
    """``num_items`` elements of the child belong to the page."""

    offsets: ArrayNode
    null_adjustment: int
    num_items: int

    def check(self, page: Page, num_values: int, place: Place) -> None:
        """Check the offsets."""
        self.offsets.check(page, num_values, place)

    def read(
        self, page: Page, pieces: Sequence[tuple[int, int]], place: Place
    ) -> ReadSteps[Values]:
        """Read where lists begin and end among all elements of the column: two 64-bit numbers."""
        extents = yield from read_extents(
            self.offsets, self.null_adjustment, self.num_items, page, pieces, place
        )
        bounds = (
            _numbers(extents.starts + page.first_item),
            _numbers(extents.ends + page.first_item),
        )
        return with_validity(Packed(bounds, len(extents.starts)), extents.validity)

    def raw(self, page: Page) -> RawRows | None:
        """Offsets are no rows."""
        return None


def _numbers(values: NDArray[np.int64]) -> FixedWidth:
    return FixedWidth(values.view(np.uint8), _BITS, len(values))
