"""Kernels of scalar indices against plain Python."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st
from pyroaring import BitMap

from lance_core.errors import CorruptFileError
from lance_core.index.scalar.keys import ByteKeys
from lance_core.index.scalar.named_rows import rows_of_names
from lance_core.index.scalar.set_blocks import SetBlock, rows_in_blocks
from lance_core.index.scalar.tree_map import decode_tree_map, encode_tree_map
from lance_core.kernels.byte_keys import big_endian
from lance_core.row_set import bitmaps_by_fragment
from tests.scalar_indices import rows_in

PIECES = st.sampled_from([b"", b"\0", b"a", b"\xff", b"same sam", b"same same same"])
TEXTS = st.lists(PIECES, max_size=4).map(b"".join)
OFFSETS = st.sets(st.integers(0, 70_000) | st.integers(0, 2**32 - 1), min_size=1, max_size=30)
SETS = st.dictionaries(st.integers(0, 2**32 - 1), OFFSETS, max_size=3)


def keys_of(texts: list[bytes]) -> ByteKeys:
    return ByteKeys.of(pa.array([b"before", *texts, b"behind"], pa.binary()).slice(1, len(texts)))


@given(st.lists(TEXTS, max_size=40), st.lists(TEXTS, max_size=10))
def test_byte_strings_are_searched_as_python_does(texts: list[bytes], needles: list[bytes]) -> None:
    ordered = sorted(texts)
    keys, asked = keys_of(ordered), keys_of(needles)
    starts = [bisect_left(ordered, each) for each in needles]
    stops = [bisect_right(ordered, each) for each in needles]
    assert keys.search(asked, is_behind_equals=False).tolist() == starts
    assert keys.search(asked, is_behind_equals=True).tolist() == stops
    assert [each.tolist() for each in keys.find(asked)] == [starts, stops]
    assert keys.is_ascending()


@given(st.lists(TEXTS, max_size=6))
def test_the_order_of_byte_strings_is_seen(texts: list[bytes]) -> None:
    assert keys_of(texts).is_ascending() == all(a <= b for a, b in pairwise(texts))
    order = keys_of(texts).order()
    assert [texts[i] for i in order.tolist()] == sorted(texts)


@given(st.lists(TEXTS, min_size=1, max_size=9), st.data())
def test_parts_of_keys_are_keys(texts: list[bytes], data: st.DataObject) -> None:
    ordered = sorted(texts)
    start = data.draw(st.integers(0, len(ordered)))
    stop = data.draw(st.integers(start, len(ordered)))
    part = keys_of(ordered).part(start, stop)
    needle = keys_of([data.draw(TEXTS)])
    expected = keys_of(ordered[start:stop]).find(needle)
    for each in (part, part.copied(), part.take(np.arange(len(part)))):
        assert len(each) == stop - start
        assert [list(found) for found in each.find(needle)] == [list(found) for found in expected]


@given(st.binary(min_size=8, max_size=8))
def test_words_compare_like_bytes(data: bytes) -> None:
    word = np.frombuffer(data, "<u8")[0]
    assert int(big_endian(word)) == int.from_bytes(data, "big")


@given(st.lists(SETS, min_size=1, max_size=8), st.data())
def test_many_sets_together_are_what_each_is(
    sets: list[dict[int, set[int]]], data: st.DataObject
) -> None:
    stored = [encode_tree_map({key: BitMap(rows) for key, rows in each.items()}) for each in sets]
    block = SetBlock.of(pa.array([b"before", *stored], pa.binary()).slice(1), "p")
    chosen = data.draw(st.lists(st.integers(0, len(sets) - 1), unique=True))
    names, others = block.members(np.array(chosen, np.int64))
    assert len(others) == 0
    expected = {key << 32 | row for i in chosen for key, rows in sets[i].items() for row in rows}
    assert set(names.tolist()) == expected
    assert [rows_in(each) for each in rows_in_blocks([block], [np.array(chosen, int)], "p")] == [
        rows_in(bitmaps_by_fragment(np.array(sorted(expected), np.uint64)))
    ]


@given(SETS, st.data())
def test_a_damaged_set_is_never_more_than_its_bytes(
    rows: dict[int, set[int]], data: st.DataObject
) -> None:
    stored = bytearray(encode_tree_map({key: BitMap(each) for key, each in rows.items()}))
    for place in data.draw(st.lists(st.integers(0, len(stored) - 1), max_size=3)):
        stored[place] = data.draw(st.integers(0, 255))
    cut = bytes(stored[: data.draw(st.integers(0, len(stored)))])
    names, others = SetBlock.of(pa.array([cut], pa.binary()), "p").members(np.zeros(1, np.int64))
    assert 2 * len(names) <= len(cut)
    if len(others) == 0:
        return
    try:
        decode_tree_map(cut, "p")
    except CorruptFileError:
        return


@given(
    st.sets(st.integers(0, 2), min_size=1),
    st.integers(1, 200_000),
    st.integers(0, 3),
    st.integers(0, 2**32 - 1),
)
def test_many_names_make_the_set_that_few_would(
    fragment_ids: set[int], span: int, thinned: int, seed: int
) -> None:
    generator = np.random.default_rng(seed)
    offsets = generator.integers(0, span, 40_000 >> thinned, dtype=np.uint64)
    chosen = generator.choice(sorted(fragment_ids), len(offsets)).astype(np.uint64)
    names = chosen << np.uint64(32) | offsets
    found = rows_of_names(np.array_split(names, 3))
    assert found == bitmaps_by_fragment(names)


@pytest.mark.parametrize("names", [[2**64 - 1], [0, 2**32 - 1], [2**48]])
def test_names_far_apart_make_sets_too(names: list[int]) -> None:
    spread = np.concatenate([np.arange(1 << 15, dtype=np.uint64), np.array(names, np.uint64)])
    assert rows_of_names([spread]) == bitmaps_by_fragment(spread)


def test_no_names_make_the_empty_set() -> None:
    assert rows_of_names([]) == {}
