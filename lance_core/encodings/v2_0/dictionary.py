"""Dictionaries, each page with its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from lance_core.encodings.page_dictionaries import indices_of
from lance_core.encodings.values import AllNull, Indexed, with_validity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.encodings.page import Page, RawRows
    from lance_core.encodings.place import Place
    from lance_core.encodings.steps import ReadSteps
    from lance_core.encodings.v2_0.node import ArrayNode
    from lance_core.encodings.values import Values


@dataclass(frozen=True, slots=True)
class DictionaryArray:
    """Positions in ``num_items`` items.

    Fields that are dictionaries count items from 0, and a null is a null item; other fields count
    from 1, and 0 is a null (``counts_from_one``).
    """

    indices: ArrayNode
    items: ArrayNode
    num_items: int
    counts_from_one: bool

    def check(self, page: Page, num_values: int, place: Place) -> None:
        """Check indices and items."""
        self.indices.check(page, num_values, place)
        self.items.check(page, self.num_items, place)

    def read(
        self, page: Page, pieces: Sequence[tuple[int, int]], place: Place
    ) -> ReadSteps[Values]:
        """Read the indices; the items are read once per page."""
        items = cast("Values | None", page.loaded.state)
        if items is None:
            items = yield from self.items.read(page, [(0, self.num_items)], place)
            page.loaded.state = items
        values = yield from self.indices.read(page, pieces, place)
        if isinstance(values, AllNull):
            return values
        indices = indices_of(values, place)
        valid = np.ones(len(indices), np.bool_) if values.validity is None else values.validity
        if self.counts_from_one:
            return with_validity(Indexed(indices - 1, items), valid & (indices > 0))
        return with_validity(Indexed(indices, items), valid & _valid_items(items, indices, place))

    def raw(self, page: Page) -> RawRows | None:
        """Have no raw rows: indices are not values."""
        return None


def _valid_items(items: Values, indices: NDArray[np.int64], place: Place) -> NDArray[np.bool_]:
    if len(indices) > 0 and int(indices.max()) >= items.num_values:
        raise place.corrupt(f"a dictionary index is outside the {items.num_values} items")
    valid = items.validity
    return np.ones(len(indices), np.bool_) if valid is None else valid[indices]
