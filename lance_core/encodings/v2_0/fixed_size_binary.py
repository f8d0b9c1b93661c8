"""Byte strings that all have the same length, so that no offsets are kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lance_core.encodings.values import Variable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance_core.encodings.page import Page, RawRows
    from lance_core.encodings.place import Place
    from lance_core.encodings.steps import ReadSteps
    from lance_core.encodings.v2_0.flat import FlatArray


@dataclass(frozen=True, slots=True)
class FixedSizeBinaryArray:
    """``width`` bytes per value in ``data``, which is flat with 8 bits."""

    data: FlatArray
    width: int

    def check(self, page: Page, num_values: int, place: Place) -> None:
        """Check the bytes."""
        self.data.check(page, num_values * self.width, place)

    def read(
        self, page: Page, pieces: Sequence[tuple[int, int]], place: Place
    ) -> ReadSteps[Variable]:
        """Read the bytes of the values."""
        spans = [(start * self.width, stop * self.width) for start, stop in pieces]
        data = yield from self.data.read(page, spans, place)
        num_values = sum(stop - start for start, stop in pieces)
        return Variable(np.arange(num_values + 1, dtype=np.int64) * self.width, data.data)

    def raw(self, page: Page) -> RawRows | None:
        """Arrow wants offsets."""
        return None
