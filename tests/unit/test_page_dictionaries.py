"""Rows of several pages, each with its own dictionary."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_core.encodings.arrow_arrays import to_arrow
from lance_core.encodings.levels import Layer, Layers, PageData
from lance_core.encodings.page_dictionaries import JoinedDictionaries, apply_one_by_one
from lance_core.encodings.page_runs import PageRuns
from lance_core.encodings.place import Place
from lance_core.encodings.values import FixedWidth, Indexed, Values, Variable, with_validity
from lance_core.errors import CorruptFileError

PLACE = Place("file.lance", "c")
LAYERS = Layers((Layer.NULLABLE_ITEM,))


def words(*values: bytes) -> Variable:
    offsets = np.cumsum([0, *(len(value) for value in values)])
    return Variable(offsets, np.frombuffer(b"".join(values), np.uint8).copy())


def rows(indices: list[int], definition: list[int] | None = None) -> PageData:
    data = np.array(indices, np.uint32).view(np.uint8)
    levels = None if definition is None else np.array(definition, np.uint16)
    return PageData(FixedWidth(data, 32, len(indices)), None, levels, LAYERS, len(indices))


def texts(data: PageData) -> list[str | None]:
    values: Values = data.values
    if data.definition is not None:
        values = with_validity(values, data.definition == 0)
    found: list[str | None] = to_arrow(values, pa.string(), PLACE).to_pylist()
    return found


DICTIONARIES = [words(b"a", b"b"), None, words(b"c")]
PAGES = PageRuns.of_rows(np.array([0, 0, 2], np.int64))


def test_joined_dictionaries_serve_the_rows_of_all_pages() -> None:
    joined = JoinedDictionaries(DICTIONARIES, PLACE)
    assert texts(joined.apply(rows([1, 0, 0]), PAGES, PLACE)) == ["b", "a", "c"]


def test_under_a_null_an_index_may_be_anything() -> None:
    joined = JoinedDictionaries(DICTIONARIES, PLACE)
    found = joined.apply(rows([1, 0, 2**32 - 1], [0, 0, 1]), PAGES, PLACE)
    assert texts(found) == ["b", "a", None]


def test_an_index_into_the_dictionary_of_another_page_is_corrupt() -> None:
    joined = JoinedDictionaries(DICTIONARIES, PLACE)
    with pytest.raises(CorruptFileError, match="dictionary index"):
        joined.apply(rows([2, 0, 0]), PAGES, PLACE)


def test_dictionaries_kept_apart_give_the_same_rows() -> None:
    parts = apply_one_by_one(rows([1, 0, 0]), PAGES, DICTIONARIES, PLACE)
    assert [text for part in parts for text in texts(part)] == ["b", "a", "c"]
    assert [part.num_rows for part in parts] == [2, 1]


def test_strings_as_indices_are_corrupt() -> None:
    data = PageData(words(b"a"), None, None, LAYERS, 1)
    with pytest.raises(CorruptFileError, match="not numbers"):
        apply_one_by_one(data, PageRuns.of_rows(np.array([0])), DICTIONARIES, PLACE)


def test_a_dictionary_too_large_for_its_index_type_is_corrupt() -> None:
    items = words(*(b"%d" % number for number in range(129)))
    values = Indexed(np.array([128], np.int64), items)
    with pytest.raises(CorruptFileError, match="too many"):
        to_arrow(values, pa.dictionary(pa.int8(), pa.string()), PLACE)
