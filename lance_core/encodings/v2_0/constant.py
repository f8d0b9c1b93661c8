"""One value for all rows of a page; there is no buffer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lance_core.encodings.values import FixedWidth

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance_core.encodings.page import Page, RawRows
    from lance_core.encodings.place import Place
    from lance_core.encodings.steps import ReadSteps


@dataclass(frozen=True, slots=True)
class ConstantArray:
    """``value`` are the bytes of one value of fixed width."""

    value: bytes

    def check(self, page: Page, num_values: int, place: Place) -> None:
        """Refuse a value of no bytes."""
        if len(self.value) == 0:
            raise place.corrupt("a constant value of no bytes")

    def read(
        self, page: Page, pieces: Sequence[tuple[int, int]], place: Place
    ) -> ReadSteps[FixedWidth]:
        """Repeat the value."""
        yield from ()
        num_values = sum(stop - start for start, stop in pieces)
        data = np.tile(np.frombuffer(self.value, np.uint8), num_values)
        return FixedWidth(data, 8 * len(self.value), num_values)

    def raw(self, page: Page) -> RawRows | None:
        """There are no bytes of rows."""
        return None
