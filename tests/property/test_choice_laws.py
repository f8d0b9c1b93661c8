"""Whatever is chosen for a page gives back its values."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given, strategies as st

from lance_core.encodings.choose import choose_values, chunk_bounds
from lance_core.encodings.choose_levels import choose_levels
from lance_core.encodings.dictionary_build import Dictionary, build_dictionary, fewest_items
from lance_core.encodings.hints import Hints
from lance_core.encodings.values import FixedSizeLists, FixedWidth, Indexed, Packed
from lance_core.encodings.version import FileVersion
from lance_core.ids import FieldId
from lance_core.schema.field import LanceField
from tests.encoded_values import (
    fixed,
    of_kind,
    plain,
    strings_of,
    through_block,
    through_blocks,
    through_chunks,
    through_zipped,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lance_core.encodings.choose import Choice
    from lance_core.encodings.values import Values

versions = st.sampled_from([FileVersion.V2_1, FileVersion.V2_2])
seeds = st.integers(0, 2**32)
hints = st.builds(
    Hints,
    compression=st.sampled_from([None, None, "zstd", "lz4", "fsst", "none"]),
    structural_encoding=st.sampled_from([None, None, "miniblock", "fullzip"]),
    bss=st.sampled_from([None, "on", "off"]),
    rle_threshold=st.sampled_from([None, 0.0, 1.0]),
    dict_values_compression=st.sampled_from([None, "none", "zstd"]),
)


def leaf(logical_type: str, *children: str) -> LanceField:
    inner = tuple(LanceField(FieldId(1), "y", child, nullable=False) for child in children)
    return LanceField(FieldId(0), "x", logical_type, nullable=True, children=inner)


def read_back(choice: Choice) -> list[object]:
    """Decode what a choice stores."""
    assert not (choice.zipped and choice.dictionary is not None)
    if choice.zipped:
        return plain(through_zipped(choice.encoding, choice.values))
    bounds = chunk_bounds(choice)
    assert bounds[0] == 0
    assert bounds[-1] == choice.values.num_values
    sizes = np.diff(bounds)[:-1]
    assert not (sizes & (sizes - 1)).any()
    assert (sizes >= 2).all()
    decoded = through_chunks(choice.encoding, choice.values, bounds)
    if choice.dictionary is None or choice.dictionary_encoding is None:
        return plain(decoded)
    items = plain(through_block(choice.dictionary_encoding, choice.dictionary))
    return [items[index] for index in of_kind(FixedWidth, decoded).integers().tolist()]


def check(values: Values, field: LanceField, given_hints: Hints, version: FileVersion) -> None:
    for zipped in (None, False, True):
        choice = choose_values(values, field, given_hints, version, zipped=zipped)
        if zipped is not None and not isinstance(values, Packed):
            assert choice.zipped == zipped
        assert read_back(choice) == plain(values)


def words(count: int, distinct: int, longest: int, seed: int) -> list[bytes]:
    rng = np.random.default_rng(seed)
    pool = [
        rng.choice(list(b"etaoin shrdlu"), rng.integers(0, longest + 1)) for _ in range(distinct)
    ]
    picked = rng.integers(0, distinct, count)
    return [bytes(pool[index].astype(np.uint8)) for index in picked]


@given(
    count=st.integers(1, 1500),
    distinct=st.sampled_from([1, 5, 100, 1000]),
    longest=st.sampled_from([0, 3, 30, 400]),
    given_hints=hints,
    version=versions,
    seed=seeds,
)
def test_chosen_strings_survive(
    count: int, distinct: int, longest: int, given_hints: Hints, version: FileVersion, seed: int
) -> None:
    items = words(count, distinct, longest, seed)
    check(strings_of(items), leaf("string"), given_hints, version)
    check(strings_of(items), leaf("large_binary"), given_hints, version)


def numbers(dtype: str, count: int, kind: str, seed: int) -> NDArray[np.generic]:
    rng = np.random.default_rng(seed)
    if kind == "few":
        return rng.integers(0, 2**63, 9, np.uint64)[rng.integers(0, 9, count)].astype(dtype)
    if kind == "runs":
        return np.repeat(rng.integers(0, 100, count), 400)[:count].astype(dtype)
    high = 100 if kind == "narrow" else 2**63
    return rng.integers(0, high, count, np.uint64).astype(dtype)


@given(
    dtype=st.sampled_from(["u1", "u2", "u4", "u8", "f8"]),
    count=st.integers(1, 6000),
    kind=st.sampled_from(["few", "runs", "narrow", "wide"]),
    given_hints=hints,
    version=versions,
    seed=seeds,
)
def test_chosen_numbers_survive(
    dtype: str, count: int, kind: str, given_hints: Hints, version: FileVersion, seed: int
) -> None:
    check(fixed(numbers(dtype, count, kind, seed)), leaf("int64"), given_hints, version)


@given(
    count=st.integers(1, 400), kind=st.sampled_from(["few", "wide"]), version=versions, seed=seeds
)
def test_chosen_decimals_survive(count: int, kind: str, version: FileVersion, seed: int) -> None:
    halves = numbers("u8", count, kind, seed)
    wide = np.stack((halves, halves), axis=1)
    values = FixedWidth(wide.reshape(-1).view(np.uint8), 128, count)
    check(values, leaf("decimal:128:30:2"), Hints(), version)


@given(booleans=st.lists(st.booleans(), min_size=1), version=versions)
def test_chosen_booleans_survive(booleans: list[bool], version: FileVersion) -> None:
    values = fixed(np.array(booleans))
    choice = choose_values(values, leaf("bool"), Hints(structural_encoding="fullzip"), version)
    assert read_back(choice) == plain(values)


@given(
    count=st.integers(1, 40),
    dimension=st.sampled_from([1, 7, 64]),
    has_nulls=st.booleans(),
    version=versions,
    seed=seeds,
)
def test_chosen_lists_survive(
    count: int, dimension: int, has_nulls: bool, version: FileVersion, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    items = fixed(rng.random(count * dimension, np.float32))
    if has_nulls:
        items = replace(items, validity=rng.random(count * dimension) < 0.5)
    values = FixedSizeLists(items, dimension, count)
    check(values, leaf(f"fixed_size_list:float:{dimension}"), Hints(), version)


@given(count=st.integers(1, 300), version=versions, index=st.sampled_from(["int8", "uint64"]))
def test_chosen_dictionary_columns_survive(count: int, version: FileVersion, index: str) -> None:
    items = [b"low", b"high", b""]
    values = Indexed(np.arange(count) % 3, strings_of(items))
    choice = choose_values(values, leaf(f"dict:string:{index}:false"), Hints(), version)
    assert of_kind(FixedWidth, choice.values).bits == (8 if index == "int8" else 64)
    assert read_back(choice) == [items[row % 3] for row in range(count)]


@given(count=st.integers(1, 60), seed=seeds)
def test_chosen_packed_rows_survive(count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    small, real = fixed(rng.integers(0, 9, count, np.uint8)), fixed(rng.random(count))
    rows = Packed((small, real), count)
    check(rows, leaf("struct", "uint8", "double"), Hints(), FileVersion.V2_1)
    texts = strings_of(words(count, 20, 40, seed))
    pairs = FixedSizeLists(fixed(rng.random(count * 2)), 2, count)
    mixed = Packed((small, texts, pairs), count)
    field = leaf("struct", "uint8", "large_string", "fixed_size_list:double:2")
    choice = choose_values(mixed, field, Hints(), FileVersion.V2_2)
    assert choice.zipped
    got = of_kind(Packed, through_zipped(choice.encoding, mixed))
    assert plain(got.children[0]) == plain(small)
    assert plain(got.children[1]) == plain(texts)
    assert plain(got.children[2]) == plain(pairs)


@given(
    count=st.integers(1, 9000),
    highest=st.integers(0, 9),
    rarity=st.sampled_from([0.0, 0.01, 0.5, 1.0]),
    chunk=st.sampled_from([2, 512, 1024, 9000]),
    version=versions,
    seed=seeds,
)
def test_chosen_levels_survive(
    count: int, highest: int, rarity: float, chunk: int, version: FileVersion, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    levels = np.where(rng.random(count) < rarity, rng.integers(0, highest + 1, count), 0)
    values = fixed(levels.astype(np.uint16))
    bounds = np.append(np.arange(0, count, chunk), count)
    encoding = choose_levels(values.integers(), bounds, version)
    decoded = of_kind(FixedWidth, through_blocks(encoding, values, bounds))
    np.testing.assert_array_equal(decoded.data, values.data)
    assert len(encoding.encode_blocks(values, bounds).data) <= 2 * count


@given(items=st.lists(st.binary(max_size=20), min_size=1, max_size=60))
def test_a_dictionary_has_each_value_once_in_the_order_of_occurrence(items: list[bytes]) -> None:
    values = strings_of(items)
    dictionary = of_kind(Dictionary, build_dictionary(values, len(items)))
    distinct = list(dict.fromkeys(items))
    assert plain(dictionary.items) == distinct
    assert [distinct[index] for index in dictionary.indices.integers().tolist()] == items
    assert build_dictionary(values, len(distinct) - 1) is None


@given(count=st.integers(1, 50_000), distinct=st.integers(1, 300), seed=seeds)
def test_a_guess_is_at_most_the_number_of_distinct_values(
    count: int, distinct: int, seed: int
) -> None:
    values = np.random.default_rng(seed).integers(0, distinct, count, np.uint64)
    guess = fewest_items(fixed(values))
    assert guess is None or guess <= len(np.unique(values))
    if count > 4 * distinct:
        assert guess is not None


def test_no_guess_is_made_about_values_that_are_all_distinct() -> None:
    assert fewest_items(fixed(np.arange(100_000, dtype=np.uint64))) is None
