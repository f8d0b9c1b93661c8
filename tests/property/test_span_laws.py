"""Spans against sets of byte positions."""

from __future__ import annotations

from hypothesis import given, strategies as st

from lance_core.io.spans import Span, Spans

SIZE = 40

spans = st.tuples(st.integers(0, SIZE), st.integers(1, 15)).map(
    lambda pair: Span(pair[0], pair[0] + pair[1])
)


def positions(*ranges: tuple[int, int]) -> set[int]:
    return {at for start, end in ranges for at in range(start, end)}


@given(st.lists(spans), spans)
def test_what_is_missing_is_the_hull_of_the_positions_that_no_span_has(
    held: list[Span], asked: Span
) -> None:
    lacking = positions(asked) - positions(*held)
    hull = Span(min(lacking), max(lacking) + 1) if lacking else None
    assert Spans(held).missing(*asked) == hull


@given(st.lists(spans), spans)
def test_spans_over_a_range_are_all_that_are_needed_of_it_in_ascending_order(
    held: list[Span], asked: Span
) -> None:
    over = Spans(held).over(*asked)
    assert over == sorted(over)
    assert positions(asked) & positions(*over) == positions(asked) & positions(*held)
    assert all(positions(each) & positions(asked) for each in over)


@given(st.lists(spans), st.lists(spans))
def test_a_span_that_is_taken_out_is_gone_and_the_others_are_not(
    held: list[Span], taken: list[Span]
) -> None:
    # Of spans that lie in one another only the largest are remembered.
    outer = [each for each in set(held) if not any(lies_in(each, other) for other in held)]
    kept = Spans(held)
    assert len(kept) == len(outer)
    for each in taken:
        kept.discard(each)
    left = positions(*(each for each in outer if each not in taken))
    assert positions(*kept.over(0, 2 * SIZE)) == left


def lies_in(span: Span, other: Span) -> bool:
    return span != other and other.start <= span.start and span.end <= other.end
