"""Laws of merging byte ranges into requests."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import example, given, strategies as st

from lance_core.io.coalesce import coalesce

byte_ranges = st.lists(
    st.tuples(st.integers(0, 300), st.integers(0, 60)).map(lambda pair: (pair[0], sum(pair))),
    max_size=30,
)
gaps = st.integers(0, 40)
limits = st.integers(0, 200)


@given(ranges=byte_ranges, gap=gaps, limit=limits)
@example(ranges=[(0, 60), (5, 6), (6, 6)], gap=0, limit=0)
def test_every_range_lies_in_the_request_that_owns_it(
    ranges: list[tuple[int, int]], gap: int, limit: int
) -> None:
    plan = coalesce(ranges, gap, limit)
    assert len(plan.owners) == len(ranges)
    for (start, end), owner in zip(ranges, plan.owners, strict=True):
        assert plan.requests[owner][0] <= start <= end <= plan.requests[owner][1]


@given(ranges=byte_ranges, gap=gaps, limit=limits)
def test_requests_ascend_and_never_overlap(
    ranges: list[tuple[int, int]], gap: int, limit: int
) -> None:
    requests = coalesce(ranges, gap, limit).requests
    assert all(first[1] <= second[0] for first, second in pairwise(requests))


@given(ranges=byte_ranges, gap=gaps, limit=limits)
def test_no_stretch_longer_than_the_gap_is_read_for_nothing(
    ranges: list[tuple[int, int]], gap: int, limit: int
) -> None:
    wanted = {byte for start, end in ranges for byte in range(start, end)}
    edges = {edge for bounds in ranges for edge in bounds}
    for start, end in coalesce(ranges, gap, limit).requests:
        wasted = 0
        for byte in range(start, end):
            wasted = 0 if byte in wanted or byte in edges else wasted + 1
            assert wasted <= gap


def islands(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """What cannot be parted without reading a byte twice."""
    bytes_read = {(start, end): set(range(start, end)) for start, end in ranges if start < end}
    found: list[tuple[int, int]] = []
    for start, end in sorted(bytes_read):
        if found and bytes_read[start, end] & set(range(*found[-1])):
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


@given(ranges=byte_ranges, gap=gaps, limit=limits)
def test_neighbours_stay_apart_only_for_the_gap_or_the_limit(
    ranges: list[tuple[int, int]], gap: int, limit: int
) -> None:
    wanted = [(start, end) for start, end in ranges if start < end]
    end_of = dict(islands(wanted))
    for (first, last), (start, _) in pairwise(coalesce(wanted, gap, limit).requests):
        assert start - last > gap or end_of[start] - first > limit


@given(ranges=byte_ranges, gap=gaps, limit=limits)
def test_no_gap_is_closed_beyond_the_limit(
    ranges: list[tuple[int, int]], gap: int, limit: int
) -> None:
    unavoidable = islands(ranges)
    for start, end in coalesce(ranges, gap, limit).requests:
        inside = [part for part in unavoidable if start <= part[0] and part[1] <= end]
        assert end - start <= limit or len(inside) <= 1


@given(ranges=byte_ranges, gap=gaps, limit=limits, data=st.data())
def test_the_order_of_the_ranges_does_not_change_the_requests(
    ranges: list[tuple[int, int]], gap: int, limit: int, data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(ranges))
    assert coalesce(shuffled, gap, limit).requests == coalesce(ranges, gap, limit).requests
