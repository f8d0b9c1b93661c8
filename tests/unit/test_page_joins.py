"""Neighbouring pages joined to one."""

from __future__ import annotations

import numpy as np

from lance_core.encodings.levels import Layer, Layers, PageData
from lance_core.encodings.page_joins import joined_pages
from lance_core.encodings.place import Place
from lance_core.encodings.values import AllNull, FixedWidth, Variable

PLACE = Place("a.lance", "c")
LISTS = Layers((Layer.NULLABLE_ITEM, Layer.ALL_VALID_LIST))


def numbers(*values: int, layers: Layers = LISTS, has_nulls: bool = True) -> PageData:
    count = len(values)
    return PageData(
        FixedWidth(np.array(values, np.uint16).view(np.uint8), 16, count),
        np.ones(count, np.uint16),
        np.zeros(count, np.uint16) if has_nulls else None,
        layers,
        count,
    )


def test_pages_of_one_form_become_one() -> None:
    (joined,) = joined_pages([numbers(1, 2), numbers(3), numbers()], PLACE)
    assert joined.num_rows == 3
    assert isinstance(joined.values, FixedWidth)
    assert joined.values.integers().tolist() == [1, 2, 3]
    assert joined.repetition is not None
    assert joined.repetition.tolist() == [1, 1, 1]


def test_pages_of_other_layers_levels_or_values_stay_apart() -> None:
    valid = Layers((Layer.ALL_VALID_ITEM, Layer.ALL_VALID_LIST))
    strings = PageData(
        Variable(np.array([0, 1]), np.array([97], np.uint8)),
        np.ones(1, np.uint16),
        np.zeros(1, np.uint16),
        LISTS,
        1,
    )
    nulls = PageData(AllNull(1), np.ones(1, np.uint16), np.ones(1, np.uint16), LISTS, 1)
    pages = [numbers(1), numbers(2, layers=valid), numbers(3, has_nulls=False), strings, nulls]
    assert joined_pages(pages, PLACE) == pages
