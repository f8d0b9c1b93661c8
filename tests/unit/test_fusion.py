from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lance_core.errors import InvalidRequestError
from lance_core.query.fusion import RRF, Fusion, RankedRows, WeightedFusion, fuse


def ranked(rows: list[int], values: list[float]) -> RankedRows:
    return RankedRows(np.array(rows, np.uint64), np.array(values, np.float32))


def test_a_row_in_both_answers_comes_first() -> None:
    fused = fuse(ranked([7, 3], [0.5, 1.0]), ranked([3, 9], [4.0, 2.0]), RRF())
    assert fused.addresses.tolist() == [3, 7, 9]
    expected = np.array([1 / 62 + 1 / 61, 1 / 61, 1 / 62], np.float32)
    assert fused.relevance.tolist() == expected.tolist()
    assert fused.vector_places.tolist() == [1, 0, -1]
    assert fused.text_places.tolist() == [0, -1, 1]


def test_equal_relevance_is_ordered_by_address() -> None:
    fused = fuse(ranked([9], [0.5]), ranked([2], [4.0]), RRF())
    assert fused.addresses.tolist() == [2, 9]


def test_weights_scale_both_answers_to_one() -> None:
    nearest = ranked([1, 2, 3], [0.0, 5.0, 10.0])
    matching = ranked([3, 4], [6.0, 2.0])
    fused = fuse(nearest, matching, WeightedFusion(vector=0.7, text=0.3))
    assert fused.addresses.tolist() == [1, 2, 3, 4]
    assert fused.relevance.tolist() == np.array([0.7, 0.35, 0.3, 0.0], np.float32).tolist()


def test_values_that_are_all_alike_count_as_the_best() -> None:
    fused = fuse(ranked([1, 2], [4.0, 4.0]), ranked([5], [0.25]), WeightedFusion(1.0, 0.5))
    assert fused.relevance.tolist() == [1.0, 1.0, 0.5]


def test_an_infinite_distance_is_the_worst_and_makes_no_other_one_undefined() -> None:
    fused = fuse(ranked([1, 2], [1.0, np.inf]), ranked([], []), WeightedFusion(1.0, 1.0))
    assert fused.relevance.tolist() == [1.0, 0.0]


@pytest.mark.parametrize("fusion", [RRF(), WeightedFusion(0.5, 0.5)], ids=["rrf", "weighted"])
def test_answers_without_rows_give_one_without_rows(fusion: Fusion) -> None:
    fused = fuse(ranked([], []), ranked([], []), fusion)
    assert len(fused.addresses) == len(fused.relevance) == 0


def test_a_part_of_the_rows_keeps_all_that_is_known_of_them() -> None:
    fused = fuse(ranked([7, 3], [0.5, 1.0]), ranked([3, 9], [4.0, 2.0]), RRF())
    part = fused.slice(1, 2)
    assert (part.addresses.tolist(), part.vector_places.tolist()) == ([7], [0])
    assert fused.slice(1, None).addresses.tolist() == [7, 9]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: RRF(0), "k of the fusion is 0; it must be at least 1"),
        (lambda: RRF(1.5), "k of the fusion is 1.5; it must be a whole number"),  # type: ignore[arg-type]  # wrong on purpose
        (lambda: WeightedFusion(-1, 1), "weight vector of the fusion is -1; give"),
        (lambda: WeightedFusion(1, float("nan")), "weight text of the fusion is nan; give"),
        (lambda: WeightedFusion(1, True), "weight text of the fusion is True; give"),
        (lambda: WeightedFusion(0, 0), "weights of the fusion are both 0"),
    ],
    ids=["zero", "fraction", "negative", "nan", "flag", "both zero"],
)
def test_parameters_that_make_no_sense_are_refused(make: Any, said: str) -> None:
    with pytest.raises(InvalidRequestError, match=said):
        make()
