"""Packed structs: the children of a row side by side in one buffer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance_core.encodings.packed_struct import PackedStruct
    from lance_core.encodings.page import Page, RawRows
    from lance_core.encodings.place import Place
    from lance_core.encodings.steps import ReadSteps
    from lance_core.encodings.v2_0.flat import FlatArray
    from lance_core.encodings.values import Packed


@dataclass(frozen=True, slots=True)
class PackedStructArray:
    """``rows`` are flat values as wide as all children together."""

    split: PackedStruct
    rows: FlatArray

    def check(self, page: Page, num_values: int, place: Place) -> None:
        """Check the rows."""
        self.rows.check(page, num_values, place)

    def read(
        self, page: Page, pieces: Sequence[tuple[int, int]], place: Place
    ) -> ReadSteps[Packed]:
        """Read rows and take them apart."""
        rows = yield from self.rows.read(page, pieces, place)
        return self.split.split(rows, place)

    def raw(self, page: Page) -> RawRows | None:
        """Children lie apart in Arrow."""
        return None
