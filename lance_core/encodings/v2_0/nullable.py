"""Nullable: values with a bitmap, without nulls, or all null."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lance_core.encodings.steps import together
from lance_core.encodings.values import AllNull, FixedWidth, with_validity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance_core.encodings.page import Page, RawRows
    from lance_core.encodings.place import Place
    from lance_core.encodings.steps import ReadSteps
    from lance_core.encodings.v2_0.flat import FlatArray
    from lance_core.encodings.v2_0.node import ArrayNode
    from lance_core.encodings.values import Values


@dataclass(frozen=True, slots=True)
class NullableArray:
    """``validity`` is a bitmap, 1 = valid."""

    validity: FlatArray
    values: ArrayNode

    def check(self, page: Page, num_values: int, place: Place) -> None:
        """Check bitmap and values."""
        self.validity.check(page, num_values, place)
        self.values.check(page, num_values, place)

    def read(
        self, page: Page, pieces: Sequence[tuple[int, int]], place: Place
    ) -> ReadSteps[Values]:
        """Read bitmap and values together."""
        reads: list[ReadSteps[Values]] = [
            self.validity.read(page, pieces, place),
            self.values.read(page, pieces, place),
        ]
        validity, values = yield from together(reads)
        if not isinstance(validity, FixedWidth):
            raise place.corrupt("validity is no bitmap")
        valid = validity.data.astype(np.bool_)
        if not isinstance(values, AllNull) and values.validity is not None:
            valid = valid & values.validity
        return with_validity(values, valid)

    def raw(self, page: Page) -> RawRows | None:
        """There may be nulls."""
        return None


@dataclass(frozen=True, slots=True)
class NullArray:
    """All values are null; there is no buffer."""

    def check(self, page: Page, num_values: int, place: Place) -> None:
        """Accept any number of values."""

    def read(
        self, page: Page, pieces: Sequence[tuple[int, int]], place: Place
    ) -> ReadSteps[AllNull]:
        """Read nothing."""
        yield from ()
        return AllNull(sum(stop - start for start, stop in pieces))

    def raw(self, page: Page) -> RawRows | None:
        """There are no values."""
        return None
