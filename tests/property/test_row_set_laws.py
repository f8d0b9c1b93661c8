from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given, strategies as st

from lance_core.row_set import (
    clear_ordinals,
    clear_range,
    contains,
    count,
    full_words,
    set_range,
    to_ordinals,
    words_of,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

SIZE = 300
members = st.sets(st.integers(0, SIZE - 1))
bounds = st.integers(0, SIZE)


def as_words(members: set[int]) -> NDArray[np.uint64]:
    return words_of(np.array(sorted(members), np.uint32), SIZE)


def as_set(words: NDArray[np.uint64]) -> set[int]:
    return set(to_ordinals(words).tolist())


@given(members)
def test_a_set_comes_back_from_its_words(members: set[int]) -> None:
    assert as_set(as_words(members)) == members


@given(members)
def test_the_count_is_the_number_of_members(members: set[int]) -> None:
    assert count(as_words(members)) == len(members)


@given(members, bounds, bounds)
def test_setting_a_range_adds_exactly_that_range(members: set[int], start: int, end: int) -> None:
    words = as_words(members)
    set_range(words, start, end)
    assert as_set(words) == members | set(range(start, end))


@given(members, bounds, bounds)
def test_clearing_a_range_removes_exactly_that_range(
    members: set[int], start: int, end: int
) -> None:
    words = as_words(members)
    clear_range(words, start, end)
    assert as_set(words) == members - set(range(start, end))


@given(members, members)
def test_clearing_ordinals_is_set_difference(members: set[int], gone: set[int]) -> None:
    words = as_words(members)
    clear_ordinals(words, np.array(sorted(gone), np.uint32))
    assert as_set(words) == members - gone


@given(members)
def test_membership_equals_that_of_a_set(members: set[int]) -> None:
    found = contains(as_words(members), np.arange(SIZE, dtype=np.uint32))
    assert set(np.flatnonzero(found).tolist()) == members


@given(st.integers(0, 200))
def test_a_full_set_holds_all_ordinals_below_its_size(size: int) -> None:
    assert to_ordinals(full_words(size)).tolist() == list(range(size))
