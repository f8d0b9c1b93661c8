"""Lists and nulls out of levels: the worked examples of the format page."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_core.encodings.levels import Layer, Layers, PageData, slice_levels
from lance_core.encodings.nested import leaf_array
from lance_core.encodings.page_levels import PageLevels
from lance_core.encodings.place import Place
from lance_core.encodings.values import FixedWidth
from lance_core.errors import CorruptFileError

PLACE = Place("file.lance", "c")
REPETITION = [1, 0, 1, 1, 1, 0, 1, 1, 1, 0, 0, 1]
DEFINITION = [0, 0, 2, 3, 0, 1, 0, 3, 0, 0, 0, 0]
LAYERS = Layers((Layer.NULLABLE_ITEM, Layer.NULL_AND_EMPTY_LIST))


def example(num_values: int = 9) -> PageData:
    """``[[1,2], null, [], [3,null], [4], [], [5,6,7], [8]]`` with one byte per value."""
    values = np.array([1, 2, 3, 0, 4, 5, 6, 7, 8], np.uint8)[:num_values]
    return PageData(
        FixedWidth(values, 8, num_values),
        np.array(REPETITION, np.uint16),
        np.array(DEFINITION, np.uint16),
        LAYERS,
        8,
    )


def test_lists_are_built_from_levels() -> None:
    levels = PageLevels(example())
    assert levels.item_layer().tolist() == [True, True, True, False] + [True] * 5
    offsets, validity = levels.list_layer(PLACE)
    assert offsets.tolist() == [0, 2, 2, 2, 4, 5, 5, 8, 9]
    assert validity.tolist() == [True, False] + [True] * 6


def test_a_slice_of_levels_takes_its_values_along() -> None:
    cut = slice_levels(example(), 3, 8, 4)
    levels = PageLevels(cut)
    assert isinstance(cut.values, FixedWidth)
    assert cut.values.data.tolist() == [3, 0, 4]
    levels.item_layer()
    assert levels.list_layer(PLACE)[0].tolist() == [0, 0, 2, 3, 3]


def test_a_null_struct_around_a_list_is_a_null_list() -> None:
    layers = Layers((Layer.ALL_VALID_ITEM, Layer.NULLABLE_LIST, Layer.NULLABLE_ITEM))
    data = PageData(
        FixedWidth(np.array([7], np.uint8), 8, 1),
        np.array([1, 1, 1], np.uint16),
        np.array([0, 1, 2], np.uint16),
        layers,
        3,
    ).checked(PLACE)
    levels = PageLevels(data)
    levels.item_layer()
    offsets, validity = levels.list_layer(PLACE)
    assert offsets.tolist() == [0, 1, 1, 1]
    assert validity.tolist() == [True, False, False]
    assert levels.item_layer().tolist() == [True, True, False]


def test_levels_count_the_values_that_are_there() -> None:
    assert LAYERS.max_visible == 1
    assert example().checked(PLACE) is not None


def test_levels_that_do_not_fit_their_values_are_corrupt() -> None:
    with pytest.raises(CorruptFileError, match="9 levels for 8 values"):
        example(8).checked(PLACE)


def test_streams_of_different_length_are_corrupt() -> None:
    data = example()
    shorter = PageData(data.values, data.repetition, data.definition[:-1], LAYERS, 8)  # type: ignore[index]  # it is there
    with pytest.raises(CorruptFileError):
        shorter.checked(PLACE)


@pytest.mark.parametrize("numbers", [[], [0], [7], [3] * 200])
def test_layers_that_the_format_does_not_know_are_corrupt(numbers: list[int]) -> None:
    with pytest.raises(CorruptFileError):
        Layers.of(numbers, PLACE)


def test_a_list_layer_where_an_item_is_expected_is_corrupt() -> None:
    levels = PageLevels(example())
    with pytest.raises(CorruptFileError):
        levels.list_layer(PLACE)


def test_pages_of_different_depth_are_corrupt() -> None:
    values = FixedWidth(np.array([7, 8], np.uint8), 8, 2)
    depths = [(Layer.ALL_VALID_ITEM,), (Layer.ALL_VALID_ITEM, Layer.NULLABLE_ITEM)]
    pages = [PageData(values, None, None, Layers(layers), 2) for layers in depths]
    with pytest.raises(CorruptFileError, match="layers"):
        leaf_array(pages, pa.uint8(), PLACE)
