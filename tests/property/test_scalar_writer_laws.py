"""Writers of scalar indices against sorting and grouping value by value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from hypothesis import given, strategies as st
from pyroaring import BitMap, BitMap64

from lance_core.index.folding import fold_to_ascii
from lance_core.index.scalar.tree_map import decode_tree_map, encode_tree_map
from lance_core.index.scalar.value_hashes import value_hashes
from lance_core.index.scalar.writers.indexed_rows import IndexedRows
from lance_core.index.scalar.writers.sets import SetForm, key_sets
from lance_core.index.scalar.writers.sort import sort_rows
from lance_core.index.scalar.writers.text_trigrams import trigrams_of_texts
from lance_core.index.scalar.writers.zones import Places, cut_zones
from lance_core.row_set import bitmaps_by_fragment
from lance_core.table.treemap import encode_treemap
from tests.scalar_indices import sort_keys

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.scalar_indices import Key

MUCH, LITTLE = 1 << 24, 1200
"""Bytes of memory; with so little there are many runs on disk."""

KEYS: list[tuple[pa.DataType, st.SearchStrategy[object]]] = [
    (pa.int64(), st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3)),
    (pa.uint8(), st.integers(0, 255)),
    (pa.float64(), st.floats() | st.sampled_from([0.0, -0.0, float("nan"), -float("nan")])),
    (pa.string(), st.text(max_size=3) | st.sampled_from(["a", "ab", ""])),
    (pa.bool_(), st.booleans()),
    (pa.decimal128(6, 2), st.decimals(-99, 99, places=2)),
]
TREE_MAP = SetForm(has_lengths=True, encode=encode_tree_map)


@st.composite
def columns(draw: st.DrawFn) -> pa.Array:
    kind, values = draw(st.sampled_from(KEYS))
    return pa.array(draw(st.lists(st.none() | values, max_size=60)), kind)


def in_pieces(values: pa.Array, names: np.ndarray, size: int) -> Iterator[IndexedRows]:
    for start in range(0, len(values), size):
        yield IndexedRows(values.slice(start, size), names[start : start + size])


@given(values=columns(), size=st.integers(1, 70), memory=st.sampled_from([LITTLE, MUCH]))
def test_rows_are_sorted_by_value_whether_or_not_they_fit_in_memory(
    values: pa.Array, size: int, memory: int
) -> None:
    names = np.arange(len(values), dtype=np.uint64)
    found = list(sort_rows(in_pieces(values, names, size), memory))
    keys = sort_keys(values)
    expected = sorted(range(len(values)), key=lambda row: (keys[row], row))
    order = [int(name) for piece in found for name in piece.names]
    assert sorted(order, key=lambda row: (keys[row], row)) == expected
    assert [keys[row] for row in order] == sorted(keys)
    assert memory == LITTLE or order == expected
    for piece in found:
        assert len(piece) > 0
        assert piece.values.null_count in {0, len(piece)}
        assert [keys[int(name)] for name in piece.names] == sort_keys(piece.values)


@given(
    values=columns(),
    names=st.lists(st.integers(0, 2**64 - 1), min_size=60, max_size=60),
    size=st.integers(1, 70),
)
def test_each_value_has_the_set_of_its_rows(values: pa.Array, names: list[int], size: int) -> None:
    given_names = np.array(names, np.uint64)[: len(values)]
    rows = sort_rows(in_pieces(values, given_names, size), LITTLE)
    found: dict[Key, bytes] = {}
    for some in key_sets(rows, TREE_MAP):
        for key, data in zip(sort_keys(some.keys), some.sets.to_pylist(), strict=True):
            assert key not in found
            found[key] = data
    expected: dict[Key, list[int]] = {}
    for key, name in zip(sort_keys(values), given_names.tolist(), strict=True):
        expected.setdefault(key, []).append(name)
    assert list(found) == sorted(expected)
    for key, members in expected.items():
        assert found[key] == encode_tree_map(bitmaps_by_fragment(np.array(members, np.uint64)))


@pytest.mark.parametrize("spread", [1, 40])
@pytest.mark.parametrize("has_lengths", [True, False])
def test_large_sets_are_written_as_the_bitmaps_of_roaring(spread: int, has_lengths: bool) -> None:
    generator = np.random.default_rng(7)
    sizes = [1, 4096, 4097, 70_000, 3]
    sets = [np.unique(generator.integers(0, spread << 32 | 1 << 17, n, np.uint64)) for n in sizes]
    dense = np.arange(5 << 32, (5 << 32) + 70_000, dtype=np.uint64)
    sets = [*sets, dense, np.union1d(dense, sets[3])]
    values = pa.array(np.repeat(np.arange(len(sets)), [len(each) for each in sets]))
    form = SetForm(has_lengths, encode_tree_map if has_lengths else encode_treemap)
    rows = [IndexedRows(values, np.concatenate(sets))]
    stored = [data for some in key_sets(rows, form) for data in some.sets.to_pylist()]
    for data, members in zip(stored, sets, strict=True):
        if has_lengths:
            assert data == encode_tree_map(bitmaps_by_fragment(members))
            assert decode_tree_map(data, "f") == bitmaps_by_fragment(members)
        else:
            assert BitMap64.deserialize(data) == BitMap64(members.tolist())


@given(texts=st.lists(st.binary(max_size=70), max_size=9), start=st.integers(0, 4))
def test_values_are_hashed_as_by_xxhash(texts: list[bytes], start: int) -> None:
    values = pa.array(texts, pa.binary()).slice(start)
    assert value_hashes(values).tolist() == [xxhash.xxh64_intdigest(t) for t in texts[start:]]
    numbers = pa.array([len(text) for text in texts], pa.int16()).slice(start)
    expected = [xxhash.xxh64_intdigest(np.int16(len(text)).tobytes()) for text in texts[start:]]
    assert value_hashes(numbers).tolist() == expected


def digit(character: str) -> int:
    if not (character.isascii() and character.isalnum()):
        return 0
    return int(character) + 1 if character.isdigit() else (ord(character) - 86) % 256


def tokens_of(text: str) -> set[int]:
    digits = [digit(character) for character in fold_to_ascii(text.lower())]
    windows = zip(digits, digits[1:], digits[2:], strict=False)
    return {(a * 37 + b) * 37 + c for a, b, c in windows if a and b and c}


WORDS = st.text(st.sampled_from("aBz09 -éßİΣﬁ½\0\U0001ccd6漢"), max_size=12)


@given(texts=st.lists(WORDS, max_size=8), start=st.integers(0, 3), is_large=st.booleans())
def test_texts_have_the_trigrams_of_their_folded_characters(
    texts: list[str], start: int, is_large: bool
) -> None:
    kind = pa.large_string() if is_large else pa.string()
    rows, tokens = trigrams_of_texts(pa.array(texts, kind).slice(start))
    found: dict[int, set[int]] = {}
    for row, token in zip(rows.tolist(), tokens.tolist(), strict=True):
        assert token not in found.setdefault(row, set())
        found[row].add(token)
    expected = {row: tokens_of(text) for row, text in enumerate(texts[start:])}
    assert found == {row: each for row, each in expected.items() if each}


@given(
    fragments=st.lists(st.sets(st.integers(0, 30), max_size=20), max_size=4),
    size=st.integers(1, 25),
    zone_rows=st.integers(1, 9),
)
def test_zones_have_their_number_of_live_rows_and_stay_within_fragments(
    fragments: Sequence[set[int]], size: int, zone_rows: int
) -> None:
    names = [f << 32 | offset for f, rows in enumerate(fragments) for offset in sorted(rows)]
    values = pa.array(names, pa.uint64())
    zones = list(cut_zones(in_pieces(values, np.array(names, np.uint64), size), zone_rows))
    assert [int(name) for zone in zones for name in zone.names] == names
    places, expected = Places(), []
    for number, rows in enumerate(fragments):
        for start in range(0, len(rows), zone_rows):
            chosen = sorted(rows)[start : start + zone_rows]
            expected.append((number, chosen[0], chosen[-1] - chosen[0] + 1))
    for zone in zones:
        places.add(zone)
        assert zone.values.to_pylist() == zone.names.tolist()
    assert list(zip(*(each.to_pylist() for each in places.columns()), strict=True)) == expected


def test_an_open_set_is_one_bitmap_however_many_pieces_it_comes_in() -> None:
    pieces = [
        IndexedRows(pa.array([5] * 10), np.arange(n, n + 10, dtype=np.uint64)) for n in (0, 5)
    ]
    (found,) = key_sets(pieces, TREE_MAP)
    assert found.keys.to_pylist() == [5]
    assert found.sets[0].as_py() == encode_tree_map({0: BitMap(range(15))})
