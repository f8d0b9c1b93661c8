from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, strategies as st
from pyroaring import BitMap

from lance_core.errors import CorruptFileError, UnsupportedFeatureError
from lance_core.index.ordinals import OrdinalSpace, RowIdSpace, live_id_words, live_words
from lance_core.row_address import pack_row_addresses
from lance_core.row_set import to_ordinals

if TYPE_CHECKING:
    from numpy.typing import NDArray

fragment_ids = st.sampled_from([0, 1, 2, 7, 100, 2**31, 2**32 - 2, 2**32 - 1])
fragments = st.dictionaries(fragment_ids, st.integers(0, 40), max_size=6)
rows = st.lists(st.tuples(fragment_ids, st.integers(0, 45) | st.just(2**32 - 1)), max_size=60)


def space_of(num_rows: dict[int, int]) -> OrdinalSpace:
    return OrdinalSpace(list(num_rows), list(num_rows.values()))


def addresses(pairs: list[tuple[int, int]]) -> NDArray[np.uint64]:
    ids, offsets = zip(*pairs, strict=True) if pairs else ((), ())
    return pack_row_addresses(np.array(ids, np.uint32), np.array(offsets, np.uint32))


@given(num_rows=fragments, pairs=rows)
def test_ordinals_count_the_rows_before(
    num_rows: dict[int, int], pairs: list[tuple[int, int]]
) -> None:
    space = space_of(num_rows)
    expected = [
        sum(n for other, n in num_rows.items() if other < fragment) + offset
        if offset < num_rows.get(fragment, 0)
        else space.size
        for fragment, offset in pairs
    ]
    assert space.to_ordinals(addresses(pairs)).tolist() == expected


@given(num_rows=fragments)
def test_every_ordinal_has_an_address_and_both_ascend_together(num_rows: dict[int, int]) -> None:
    space = space_of(num_rows)
    ordinals = np.arange(space.size, dtype=np.uint32)
    found = space.to_row_ids(ordinals)
    assert (found[1:] > found[:-1]).all()
    np.testing.assert_array_equal(space.to_ordinals(found), ordinals)


@given(
    num_rows=fragments,
    deleted=st.dictionaries(fragment_ids, st.sets(st.integers(0, 60)), max_size=6),
)
def test_live_rows_are_those_that_exist_and_are_not_deleted(
    num_rows: dict[int, int], deleted: dict[int, set[int]]
) -> None:
    space = space_of(num_rows)
    words = live_words(space, {f: BitMap(offsets) for f, offsets in deleted.items()})
    expected = [
        (fragment, offset)
        for fragment, n in sorted(num_rows.items())
        for offset in range(n)
        if offset not in deleted.get(fragment, set())
    ]
    assert space.to_row_ids(to_ordinals(words)).tolist() == addresses(expected).tolist()


def test_the_sentinel_has_a_bit_and_it_is_not_set() -> None:
    words = live_words(OrdinalSpace([0], [64]), {})
    assert len(words) == 2
    assert words[1] == 0


def test_read_only_and_strided_addresses_are_taken() -> None:
    space = OrdinalSpace([0, 1], [3, 3])
    given_addresses = addresses([(0, 1), (9, 9), (1, 2), (9, 9)])[::2]
    given_addresses.flags.writeable = False
    assert space.to_ordinals(given_addresses).tolist() == [1, 5]


def test_spaces_of_the_same_fragments_have_the_same_key() -> None:
    assert OrdinalSpace([1, 0], [5, 6]).key == OrdinalSpace([0, 1], [6, 5]).key
    assert OrdinalSpace([1, 0], [5, 6]).key != OrdinalSpace([1, 0], [6, 5]).key


def test_more_rows_than_ordinals_are_refused() -> None:
    assert OrdinalSpace([0], [2**32 - 1]).size == 2**32 - 1
    with pytest.raises(UnsupportedFeatureError):
        OrdinalSpace([0, 1], [2**32 - 1, 1])


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 70)), max_size=12))
def test_live_ids_are_those_of_the_runs(gaps_and_lengths: list[tuple[int, int]]) -> None:
    firsts: list[int] = []
    lengths: list[int] = []
    expected: list[int] = []
    at = 0
    for gap, length in gaps_and_lengths:
        at += gap
        firsts.append(at)
        lengths.append(length)
        expected += range(at, at + length)
        at += length
    space = RowIdSpace(at, len(expected))
    words = live_id_words(space, np.array(firsts, np.uint64), np.array(lengths, np.int64), "m")
    assert to_ordinals(words).tolist() == expected
    assert len(words) * 64 > space.size


def test_an_id_is_its_own_ordinal_and_others_have_the_size() -> None:
    space = RowIdSpace(100, 100)
    ids = np.array([0, 99, space.size, 2**32, 2**64 - 1], np.uint64)
    assert space.to_ordinals(ids).tolist() == [0, 99, *[space.size] * 3]
    assert space.to_row_ids(np.array([7], np.uint32)).tolist() == [7]


def test_ids_that_were_never_given_out_are_corrupt() -> None:
    space = RowIdSpace(100, 100)
    with pytest.raises(CorruptFileError, match="row id 129"):
        live_id_words(space, np.array([129], np.uint64), np.array([1]), "m")


@pytest.mark.parametrize(("next_row_id", "num_rows"), [(2**32, 2**31), (2**27, 100)])
def test_ids_that_are_too_large_or_too_sparse_are_refused(next_row_id: int, num_rows: int) -> None:
    with pytest.raises(UnsupportedFeatureError, match="row ids go up to"):
        RowIdSpace(next_row_id, num_rows)
