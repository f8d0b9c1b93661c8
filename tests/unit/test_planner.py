from __future__ import annotations

import numpy as np
import pytest
from pyroaring import BitMap

from lance_core.query.plan import SegmentDescription
from lance_core.query.planner import PassingCounts, choose_index, plan_vector
from lance_core.query.request import VectorQuery


def segment(
    name: str = "vec_idx",
    *,
    uuid: str = "u1",
    metric: str = "l2",
    kind: str = "IVF_PQ",
    covers: tuple[int, ...] = (0,),
    created: int | None = 1,
    reason: str | None = None,
) -> SegmentDescription:
    return SegmentDescription(
        index_name=name,
        uuid=uuid,
        kind=kind,
        metric=metric,
        coverage=BitMap(covers),
        num_partitions=8,
        created_at_ms=created,
        reason=reason,
    )


def query(**given) -> VectorQuery:
    return VectorQuery(vectors=np.ones((1, 4), np.float32), **given)


def filtered(segments, passing, few_rows, **given):
    """Plan a query over fragments of which some rows pass a filter."""
    request = query(filter="x > 1", **given)
    choice = choose_index(segments, BitMap(passing), metric=None, use_index=request.use_index)
    return plan_vector(
        request,
        choice,
        column="v",
        columns=("id",),
        num_rows=10_000,
        passing=PassingCounts("x > 1", passing),
        few_rows=few_rows,
    )


def plan(segments, live=(0, 1), num_rows=1000, **given):
    request = query(**given)
    choice = choose_index(
        segments, BitMap(live), metric=request.metric, use_index=request.use_index
    )
    return plan_vector(request, choice, column="v", columns=("id",), num_rows=num_rows)


def test_fragments_that_no_segment_covers_are_searched_exactly():
    made = plan([segment()], live=(0, 1, 2))
    assert made.flat is not None
    assert made.flat.fragments == BitMap([1, 2])


def test_an_index_that_covers_everything_leaves_nothing_to_scan():
    made = plan([segment(covers=(0,)), segment(uuid="u2", covers=(1,))])
    assert made.flat is None
    assert len(made.searches) == 2


def test_quantised_distances_are_made_exact_before_they_meet_exact_ones():
    made = plan([segment()], live=(0, 1))
    assert made.rescore is not None
    assert made.rescore.reason == "mixed"
    assert made.is_exact


def test_quantised_distances_alone_stay_as_they_are():
    made = plan([segment()], live=(0,))
    assert made.rescore is None
    assert not made.is_exact


def test_a_refine_factor_widens_the_index_search_only():
    made = plan([segment()], live=(0, 1), k=10, offset=5, refine_factor=4)
    assert made.searches[0].k == 60
    assert made.rescore is not None
    assert (made.rescore.candidates, made.rescore.k) == (60, 15)
    assert made.flat is not None
    assert made.flat.k == 15


def test_an_unusable_segment_is_named_and_its_fragments_scanned():
    made = plan([segment(reason="index type IVF_RQ is not supported", covers=())], live=(0,))
    assert made.flat is not None
    assert made.flat.fragments == BitMap([0])
    assert made.skipped[0].reason == "index type IVF_RQ is not supported"


def test_without_a_metric_the_index_with_the_best_coverage_decides():
    made = plan(
        [
            segment("a", uuid="u1", metric="l2", covers=(0,)),
            segment("b", uuid="u2", metric="dot", covers=(0, 1)),
        ]
    )
    assert made.metric == "dot"


def test_of_equal_indices_the_first_created_is_chosen():
    made = plan(
        [
            segment("a", uuid="u1", metric="dot", created=9),
            segment("b", uuid="u2", metric="cosine", created=3),
        ]
    )
    assert made.metric == "cosine"


def test_a_metric_that_no_index_has_is_searched_exactly_and_said():
    made = plan([segment(metric="cosine")], live=(0,), metric="l2")
    assert made.searches == ()
    assert made.flat is not None
    assert "its metric is cosine" in made.skipped[0].reason


def test_an_exact_search_takes_the_metric_of_the_index():
    made = plan([segment(metric="cosine")], live=(0,), use_index=False)
    assert made.metric == "cosine"
    assert made.searches == ()


def test_without_any_index_the_metric_is_l2():
    assert plan([]).metric == "l2"


def test_an_unusable_segment_still_tells_its_metric():
    assert plan([segment(metric="dot", reason="too new", covers=())]).metric == "dot"


def test_fast_search_scans_nothing():
    made = plan([segment()], live=(0, 1), fast_search=True)
    assert made.flat is None
    assert plan([], fast_search=True).flat is None


@pytest.mark.parametrize("k", [None, 10**18])
def test_no_step_keeps_more_rows_than_there_are(k):
    made = plan([segment()], live=(0, 1), k=k, refine_factor=7, num_rows=1000)
    assert made.searches[0].k == 1000
    assert made.k == 1000


def test_an_offset_behind_the_end_leaves_no_rows():
    assert plan([segment()], offset=5000, k=10, num_rows=1000).k == 0


def test_fragments_that_two_segments_claim_are_searched_exactly():
    made = plan(
        [segment(covers=(0,)), segment(uuid="u2", covers=(0, 1)), segment(uuid="u3", covers=(2,))],
        live=(0, 1, 2, 3),
    )
    assert made.flat is not None
    assert made.flat.fragments == BitMap([0, 3])
    assert [(s.segment.uuid, s.segment.coverage) for s in made.searches] == [
        ("u2", BitMap([1])),
        ("u3", BitMap([2])),
    ]
    assert [(s.uuid, s.reason) for s in made.skipped] == [
        ("u1", "other segments claim the same fragments")
    ]


def test_few_rows_that_pass_are_scored_one_by_one_in_place_of_everything_else():
    made = filtered([segment()], {0: 60, 1: 40}, few_rows=100, k=10, refine_factor=3)
    assert made.listed is not None
    assert (made.listed.num_rows, made.listed.k, made.listed.fragments) == (100, 10, BitMap([0, 1]))
    assert (made.searches, made.flat, made.rescore) == ((), None, None)
    assert made.is_exact


def test_more_rows_are_searched_by_the_index_behind_a_mask():
    made = filtered([segment()], {0: 60, 1: 41}, few_rows=100, k=10)
    assert made.listed is None
    assert made.prefilter is not None
    assert (made.prefilter.text, made.prefilter.num_rows) == ("x > 1", 101)
    assert len(made.searches) == 1
    assert made.flat is not None


def test_a_fast_search_counts_only_rows_that_an_index_covers():
    made = filtered([segment()], {0: 60, 1: 41}, few_rows=100, k=10, fast_search=True)
    assert made.listed is not None
    assert (made.listed.num_rows, made.listed.fragments) == (60, BitMap([0]))


@pytest.mark.parametrize(
    ("given", "is_listed"),
    [
        ({"k": 500}, True),
        ({"k": None}, True),
        ({"k": 499}, False),
        ({"k": 490, "offset": 10}, True),
        ({"k": 500, "max_probes": 3}, True),
        ({"k": 500, "min_probes": 3, "max_probes": 3}, False),
    ],
)
def test_all_rows_that_pass_are_scored_if_all_are_asked_for_and_probes_are_open(given, is_listed):
    made = filtered([segment(covers=(0, 1))], {0: 300, 1: 200}, few_rows=0, **given)
    assert (made.listed is not None) == is_listed


@pytest.mark.parametrize(("passing", "is_listed"), [(1_251, False), (1_250, True)])
def test_without_an_index_all_vectors_are_scanned_unless_few_of_them_pass(passing, is_listed):
    made = filtered([], {0: passing}, few_rows=0, k=10)
    assert (made.listed is not None) == is_listed
    assert (made.flat is not None) != is_listed


def test_a_filter_that_lets_nothing_pass_needs_no_search():
    made = filtered([segment()], {0: 0, 1: 0}, few_rows=0, k=10)
    assert made.k == 0


def test_a_postfilter_changes_no_search():
    made = plan([segment()], live=(0,), filter="x > 1", prefilter=False)
    assert (made.postfilter, made.prefilter, made.listed) == ("x > 1", None, None)


def test_neighbours_of_a_row_are_looked_for_with_one_more():
    choice = choose_index([segment()], BitMap([0]), metric=None)
    request = VectorQuery(vectors=None, row_ids=(3,), k=10, offset=2)
    made = plan_vector(request, choice, column="v", columns=("id",), num_rows=1000)
    assert (made.k, made.num_ranked, made.searches[0].k) == (10, 13, 13)


def test_a_fast_search_without_an_index_looks_at_nothing_whatever_the_filter():
    found = filtered([segment(reason="broken")], {0: 5, 1: 7}, 100, fast_search=True)
    assert (found.searches, found.flat, found.listed, found.k) == ((), None, None, 0)
    assert found.fragments_left_out == 2
    assert plan([segment()], live=(0, 1, 2), fast_search=True).fragments_left_out == 2
    assert plan([segment()], live=(0, 1, 2)).fragments_left_out == 0
