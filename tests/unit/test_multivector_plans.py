from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pyroaring import BitMap

from lance_core.ids import FragmentId
from lance_core.query.plan import RankByHits, SegmentDescription, VectorPlan
from lance_core.query.planner import PassingCounts, choose_index, plan_vector
from lance_core.query.request import VectorQuery

SEGMENT = SegmentDescription("v_idx", "u1", "IVF_FLAT", "cosine", BitMap([0]), 8, 1)


def plan(*, live: tuple[int, ...] = (0,), passing: int | None = None, **given: Any) -> VectorPlan:
    predicate = None if passing is None else "x > 1"
    request = VectorQuery(np.ones((3, 4), np.float32), filter=predicate, **given)
    choice = choose_index(
        [SEGMENT], BitMap(live), metric=request.metric, use_index=request.use_index
    )
    counts = (
        None
        if passing is None
        else PassingCounts("x > 1", {FragmentId(each): passing for each in live})
    )
    return plan_vector(
        request,
        choice,
        column="v",
        columns=("id",),
        num_rows=1_000,
        passing=counts,
        few_rows=50,
        is_multi=True,
    )


def test_ten_hits_are_wanted_for_every_row_whatever_the_refine_factor() -> None:
    made = plan(k=20, offset=5, refine_factor=3)
    assert made.searches[0].k == 250
    assert made.rank_by_hits == RankByHits(hits=250, k=75)
    assert made.rescore is not None
    assert (made.rescore.candidates, made.rescore.k) == (75, 25)


def test_sums_of_similarities_are_no_exact_distances() -> None:
    assert not plan().is_exact
    assert plan(refine_factor=1).is_exact
    assert plan(live=(0, 1)).is_exact  # some rows are scanned, so all are scored alike


@pytest.mark.parametrize("given", [{"use_index": False}, {"metric": "l2"}, {"passing": 40}])
def test_exact_searches_rank_by_no_hits(given: dict[str, Any]) -> None:
    made = plan(**given)
    assert made.rank_by_hits is None
    assert made.searches == ()
    assert made.is_exact
