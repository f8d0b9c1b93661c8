"""Answers of indices under AND, OR and NOT never promise or deny more than is known."""

from __future__ import annotations

from itertools import product

import pytest
from pyroaring import BitMap

from lance_core.index.scalar.answer import RowAnswer, united
from lance_core.index.scalar.fragment_rows import (
    KeptRows,
    every_offset,
    intersect,
    num_rows,
    subtract,
    unite,
)

ALL = {0: BitMap([1, 2, 3, 4]), 5: BitMap([0])}
TRUE, FALSE, NULL = True, False, None


def exact(values: list[bool | None], *, knows_nulls: bool = True) -> RowAnswer:
    rows = BitMap(i for i, value in enumerate(values) if value is True)
    nulls = BitMap(i for i, value in enumerate(values) if value is None)
    return RowAnswer.exact({0: rows}, {0: nulls} if knows_nulls else None)


def members(rows: object) -> set[int]:
    assert isinstance(rows, dict)
    return set(rows.get(0, BitMap()))


def truth_table() -> tuple[list[bool | None], list[bool | None]]:
    left, right = zip(*product([TRUE, FALSE, NULL], repeat=2), strict=True)
    return list(left), list(right)


def sql_and(left: bool | None, right: bool | None) -> bool | None:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def sql_not(value: bool | None) -> bool | None:
    return None if value is None else not value


def test_exact_answers_combine_as_sql_says() -> None:
    left, right = truth_table()
    universe = {0: BitMap(range(len(left)))}
    both = [sql_and(a, b) for a, b in zip(left, right, strict=True)]
    either = [sql_not(sql_and(sql_not(a), sql_not(b))) for a, b in zip(left, right, strict=True)]
    for answer, expected in (
        (exact(left) & exact(right), both),
        (exact(left) | exact(right), either),
        (exact(left).negated(universe), [sql_not(a) for a in left]),
        ((exact(left) | exact(right)).negated(universe), [sql_not(each) for each in either]),
    ):
        assert answer.is_exact
        assert members(answer.certain) == {i for i, each in enumerate(expected) if each is True}
        assert members(answer.nulls) == {i for i, each in enumerate(expected) if each is None}


def test_without_null_sets_not_is_certain_of_no_row() -> None:
    answer = RowAnswer.exact({0: BitMap([1])}).negated(ALL)
    assert answer.certain == {}
    assert answer.possible == {0: BitMap([2, 3, 4]), 5: BitMap([0])}
    assert (exact([TRUE]) & exact([NULL], knows_nulls=False)).nulls is None
    assert (exact([TRUE]) | exact([NULL], knows_nulls=False)).nulls is None


def test_rough_answers_stay_rough() -> None:
    sure, rough = RowAnswer.exact({0: BitMap([1, 2])}), RowAnswer.at_most({0: BitMap([2, 3])})
    both, either = sure & rough, sure | rough
    assert (both.certain, both.possible) == ({}, {0: BitMap([2])})
    assert (either.certain, either.possible) == ({0: BitMap([1, 2])}, {0: BitMap([1, 2, 3])})
    assert either.unsure == {0: BitMap([3])}
    assert sure.unsure == {}


def test_the_negation_of_a_rough_answer_is_sure_of_rows_that_cannot_match() -> None:
    answer = RowAnswer.at_most({0: BitMap([1, 2])}, {0: BitMap([4])}).negated(ALL)
    assert answer.certain == {0: BitMap([3]), 5: BitMap([0])}
    assert answer.possible == {0: BitMap([1, 2, 3]), 5: BitMap([0])}


def test_segments_together_know_the_nulls_if_all_do() -> None:
    one = RowAnswer.exact({0: BitMap([1])}, {0: BitMap([2])})
    other = RowAnswer.at_most({1: BitMap([3])}, {1: BitMap([4])})
    both = united([one, other])
    assert both.certain == {0: BitMap([1])}
    assert both.possible == {0: BitMap([1]), 1: BitMap([3])}
    assert both.nulls == {0: BitMap([2]), 1: BitMap([4])}
    assert united([one, RowAnswer.exact({})]).nulls is None
    assert united([one, one]).is_exact


def test_a_whole_fragment_takes_part_in_every_operation() -> None:
    whole, some = {0: every_offset()}, {0: BitMap([3]), 2: BitMap([1])}
    assert unite((whole, some))[0] is every_offset()
    assert intersect(some, whole) == {0: BitMap([3])}
    assert intersect(whole, some) == {0: BitMap([3])}
    assert subtract(some, whole) == {2: BitMap([1])}
    assert num_rows(subtract(whole, some)) == 2**32 - 1
    assert KeptRows.of(whole).nbytes < 1000


@pytest.mark.parametrize("members_of_first", [[], [1, 2]])
def test_no_bitmap_of_a_result_is_empty(members_of_first: list[int]) -> None:
    first = {0: BitMap(members_of_first)} if members_of_first else {}
    assert intersect(first, {0: BitMap([5])}) == {}
    assert subtract(first, {0: BitMap([1, 2])}) == {}
