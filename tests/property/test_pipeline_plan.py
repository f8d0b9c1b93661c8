"""Groups of fragments and segments: complete, disjoint, of neighbours, and of the sizes wanted."""

from __future__ import annotations

from itertools import chain, zip_longest

from hypothesis import given, strategies as st

from pipeline.plan import (
    FragmentSize,
    GroupSizes,
    group_fragments,
    neighbours_up_to,
    newest_run,
    sample_quota,
)

ROWS = st.lists(st.integers(0, 1000), max_size=40)


@st.composite
def fragments(draw: st.DrawFn) -> list[FragmentSize]:
    ids = draw(st.lists(st.integers(0, 200), unique=True, min_size=1, max_size=40))
    return [FragmentSize(each, draw(st.integers(0, 1000))) for each in ids]


@given(fragments(), st.integers(1, 12))
def test_every_fragment_is_in_one_group_with_its_neighbours(
    given_fragments: list[FragmentSize], number: int
) -> None:
    groups = group_fragments(given_fragments, GroupSizes(num_segments=number))
    assert all(groups)
    assert list(chain(*groups)) == sorted(each.id for each in given_fragments)


@given(fragments(), st.integers(1, 12))
def test_groups_are_as_many_as_asked_for_and_balanced_but_for_a_fragment(
    given_fragments: list[FragmentSize], number: int
) -> None:
    groups = group_fragments(given_fragments, GroupSizes(num_segments=number))
    assert len(groups) == min(number, len(given_fragments))
    rows = {each.id: each.num_rows for each in given_fragments}
    total, largest = sum(rows.values()), max(rows.values())
    for group in groups:
        assert sum(map(rows.__getitem__, group)) <= total / len(groups) + 2 * largest


@given(fragments(), st.integers(1, 3000))
def test_groups_have_about_the_rows_that_are_wanted(
    given_fragments: list[FragmentSize], wanted: int
) -> None:
    groups = group_fragments(given_fragments, GroupSizes(segment_rows=wanted))
    rows = {each.id: each.num_rows for each in given_fragments}
    largest = max(rows.values())
    for group in groups:
        assert sum(map(rows.__getitem__, group)) <= wanted + 2 * largest


def test_small_work_is_not_spread_over_all_workers() -> None:
    some = [FragmentSize(each, 1000) for each in range(100)]
    assert len(group_fragments(some, GroupSizes(least_segments=8))) == 1
    assert len(group_fragments(some, GroupSizes(least_segments=8, least_rows=12_500))) == 8


@given(ROWS, st.integers(1, 2500))
def test_neighbours_are_joined_as_long_as_they_fit(rows: list[int], most: int) -> None:
    groups = neighbours_up_to(rows, most)
    assert list(chain(*groups)) == list(range(len(rows)))
    for group, after in zip_longest(groups, groups[1:]):
        own = sum(rows[each] for each in group)
        assert own <= most or len(group) == 1
        assert after is None or own + rows[after[0]] > most


@given(ROWS, st.integers(1, 10), st.integers(0, 1000))
def test_after_a_merge_there_are_no_more_segments_than_allowed_and_one_small_one_at_most(
    rows: list[int], most: int, least: int
) -> None:
    first = newest_run(rows, most, least)
    assert 0 <= first <= len(rows)
    assert first == len(rows) or len(rows) - first >= 2
    merged = [*rows[:first], *([sum(rows[first:])] if first < len(rows) else [])]
    assert len(merged) <= most
    if len(merged) > 1:
        assert not (merged[-1] < least and merged[-2] < least)
    assert newest_run(merged, most, least) == len(merged) or len(merged) < len(rows)


def test_a_large_segment_is_written_anew_only_when_there_are_too_many() -> None:
    assert newest_run([10_000, 5], 8, 100) == 2  # a small one alone stays
    assert newest_run([10_000, 5, 7], 8, 100) == 1  # two become one
    assert newest_run([10_000, 500, 400, 300], 3, 100) == 2
    assert newest_run([10_000, 60, 500, 400], 3, 50) == 1  # a small one between comes along


@given(ROWS, st.integers(0, 50_000))
def test_a_sample_is_shared_out_by_rows(rows: list[int], wanted: int) -> None:
    quota = sample_quota(rows, wanted)
    assert len(quota) == len(rows)
    assert sum(quota) == min(wanted, sum(rows))
    for own, part in zip(rows, quota, strict=True):
        assert 0 <= part <= own
        assert abs(part - own * sum(quota) / max(sum(rows), 1)) <= 1
