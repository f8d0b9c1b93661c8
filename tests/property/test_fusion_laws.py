"""Fusion against a model that knows rows one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, strategies as st

from lance_core.query.fusion import RRF, Fusion, RankedRows, WeightedFusion, fuse

finite = st.floats(-(2.0**100), 2.0**100, width=32)
fusions = st.builds(RRF, st.integers(1, 1000)) | st.builds(
    WeightedFusion, st.floats(0.01, 10), st.floats(0, 10)
)


@st.composite
def answers(draw: Any, *, ascending: bool) -> Any:
    rows = draw(st.lists(st.integers(0, 30) | st.integers(0, 2**64 - 1), unique=True, max_size=20))
    values = draw(st.lists(finite, min_size=len(rows), max_size=len(rows)))
    ordered = np.array(sorted(values, reverse=not ascending), np.float32)
    return RankedRows(np.array(rows, np.uint64), ordered)


near = answers(ascending=True)
match = answers(ascending=False)


def scaled(values: list[float]) -> list[float]:
    span = max(values, default=0) - min(values, default=0)
    return [1.0 if span == 0 else (value - min(values)) / span for value in values]


def by_model(nearest: RankedRows, matching: RankedRows, fusion: Fusion) -> list[tuple[int, float]]:
    totals: dict[int, float] = {}
    by_vector = scaled([-float(each) for each in nearest.values])
    by_text = scaled([float(each) for each in matching.values])
    if isinstance(fusion, RRF):
        by_vector = [1 / (fusion.k + place) for place in range(1, len(by_vector) + 1)]
        by_text = [1 / (fusion.k + place) for place in range(1, len(by_text) + 1)]
    else:
        by_vector = [fusion.vector * each for each in by_vector]
        by_text = [fusion.text * each for each in by_text]
    for rows, parts in [(nearest.addresses, by_vector), (matching.addresses, by_text)]:
        for row, part in zip(rows.tolist(), parts, strict=True):
            totals[row] = totals.get(row, 0.0) + part
    rounded = {row: float(np.float32(total)) for row, total in totals.items()}
    return sorted(rounded.items(), key=lambda item: (-item[1], item[0]))


@given(near, match, fusions)
def test_rows_relevance_and_order_are_those_of_the_model(
    nearest: RankedRows, matching: RankedRows, fusion: Fusion
) -> None:
    fused = fuse(nearest, matching, fusion)
    found = list(zip(fused.addresses.tolist(), fused.relevance.tolist(), strict=True))
    assert found == by_model(nearest, matching, fusion)


@given(near, match, fusions)
def test_places_lead_back_to_the_rows_of_both_answers(
    nearest: RankedRows, matching: RankedRows, fusion: Fusion
) -> None:
    fused = fuse(nearest, matching, fusion)
    for answer, places in [(nearest, fused.vector_places), (matching, fused.text_places)]:
        found = places >= 0
        assert answer.addresses[places[found]].tolist() == fused.addresses[found].tolist()
        assert sorted(places[found].tolist()) == list(range(len(answer.addresses)))


@given(near, match)
def test_a_row_first_in_both_answers_is_first_of_all(
    nearest: RankedRows, matching: RankedRows
) -> None:
    row = np.uint64(2**63 + 5)
    both = [
        RankedRows(
            np.append(row, each.addresses[each.addresses != row]),
            np.append(np.float32(0), np.zeros((each.addresses != row).sum(), np.float32)),
        )
        for each in (nearest, matching)
    ]
    assert fuse(both[0], both[1], RRF()).addresses[0] == row
