"""Neighbouring pages of a column as one, so that what follows is done once and not per page."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from lance_core.encodings.levels import PageData
from lance_core.encodings.values import FixedWidth, Variable, concat_values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance_core.encodings.levels import Levels
    from lance_core.encodings.place import Place


def joined_pages(pages: Sequence[PageData], place: Place) -> list[PageData]:
    """Join neighbours that have the same layers and values of one form, numbers or strings."""
    groups = [list(group) for _, group in groupby(pages, _form)]
    return [_joined(group, place) for group in groups]


def _form(page: PageData) -> object:
    values = page.values
    if not isinstance(values, FixedWidth | Variable) or values.validity is not None:
        return id(page)
    bits = values.bits if isinstance(values, FixedWidth) else None
    return bits, page.layers, page.repetition is None, page.definition is None


def _joined(pages: Sequence[PageData], place: Place) -> PageData:
    if len(pages) == 1:
        return pages[0]
    return PageData(
        concat_values([page.values for page in pages], place),
        _concatenated([page.repetition for page in pages]),
        _concatenated([page.definition for page in pages]),
        pages[0].layers,
        sum(page.num_rows for page in pages),
    )


def _concatenated(levels: Sequence[Levels | None]) -> Levels | None:
    present = [each for each in levels if each is not None]
    return np.concatenate(present) if len(present) > 0 else None
