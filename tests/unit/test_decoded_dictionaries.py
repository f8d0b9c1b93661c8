"""Dictionaries of several pages made one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_core.encodings.arrow_arrays import unified
from lance_core.errors import UnsupportedFeatureError


def test_the_dictionary_of_all_begins_with_that_of_the_first() -> None:
    kind = pa.dictionary(pa.int8(), pa.string())
    first = pa.DictionaryArray.from_arrays(pa.array([1, 0], pa.int8()), pa.array(["a", "b"]))
    second = pa.DictionaryArray.from_arrays(pa.array([0, None], pa.int8()), pa.array(["c"]))
    both = unified([first, second])
    assert [array.type for array in both] == [kind, kind]
    assert both[1].dictionary.to_pylist() == ["a", "b", "c"]
    assert [array.to_pylist() for array in both] == [["b", "a"], ["c", None]]


def test_half_floats_keep_their_values() -> None:
    halves = [pa.array(np.array(each, np.float16)) for each in ([1.0, 0.5], [0.5, 2.0])]
    arrays = [pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), each) for each in halves]
    assert [array.to_pylist() for array in unified(arrays)] == [[1.0, 0.5, None], [0.5, 2.0, None]]


def test_more_items_than_the_indices_can_count_are_refused() -> None:
    indices = pa.array(range(100), pa.int8())
    items = [pa.array([f"{page}-{item}" for item in range(100)]) for page in range(2)]
    arrays = [pa.DictionaryArray.from_arrays(indices, each) for each in items]
    with pytest.raises(UnsupportedFeatureError, match="dictionar"):
        unified(arrays)
