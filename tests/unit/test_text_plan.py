"""Plans of text queries, made of descriptions of segments alone."""

from __future__ import annotations

import pytest
from pyroaring import BitMap

from lance_core.errors import InvalidRequestError
from lance_core.index.text.queries import (
    BooleanQuery,
    BoostQuery,
    CombinedFieldsQuery,
    MatchQuery,
    MultiMatchQuery,
    PhraseQuery,
)
from lance_core.query.explain import PlanReport
from lance_core.query.plan import Prefilter, SegmentDescription
from lance_core.query.planner import choose_index
from lance_core.query.text_plan import plan_text, text_leaves
from lance_core.query.text_request import TextQuery

LIVE = BitMap([0, 1, 2])


def segment(uuid, coverage, reason=None, name="t_idx"):
    return SegmentDescription(name, uuid, "INVERTED", "", BitMap(coverage), 2, 1, reason)


def choice(*segments, use_index=True):
    return choose_index(segments, LIVE, metric=None, use_index=use_index)


def plan(request, choices, default_columns=(), prefilter=None):
    leaves = text_leaves(request.query, default_columns)
    return plan_text(
        request,
        leaves,
        choices,
        default_columns=default_columns,
        columns=("id", "_score"),
        by_element=False,
        prefilter=prefilter,
    )


def lines(found):
    return PlanReport.of_plan(found, 7).text().splitlines()


def test_fragments_that_no_segment_covers_are_read():
    found = plan(TextQuery(MatchQuery("red", "t")), {"t": choice(segment("a", [0, 2]))})
    (source,) = found.sources
    assert source.flat == BitMap([1])
    assert [each.uuid for each in source.segments] == ["a"]


def test_fragments_that_two_segments_claim_are_read():
    chosen = choice(segment("a", [0, 1]), segment("b", [1, 2]))
    found = plan(TextQuery(MatchQuery("red", "t")), {"t": chosen})
    assert found.sources[0].flat == BitMap([1])


def test_a_segment_that_cannot_be_used_is_told_and_its_fragments_are_read():
    chosen = choice(segment("a", [0]), segment("b", [], "its form is not known"))
    found = plan(TextQuery(MatchQuery("red", "t")), {"t": chosen})
    assert found.sources[0].flat == BitMap([1, 2])
    assert lines(found)[-1] == "skipped segment b of t_idx: its form is not known"


def test_a_fast_search_reads_nothing_and_says_what_it_leaves_out():
    request = TextQuery(MatchQuery("red", "t"), fast_search=True)
    found = plan(request, {"t": choice(segment("a", [0]))})
    assert not found.sources[0].flat
    assert "fragments_left_out=2" in lines(found)[1]


def test_without_index_all_is_read():
    request = TextQuery(MatchQuery("red", "t"), use_index=False)
    found = plan(request, {"t": choice(segment("a", [0]), use_index=False)})
    assert found.sources[0].flat == LIVE
    assert found.sources[0].segments == ()


def test_equal_parts_of_a_query_are_searched_once():
    red = MatchQuery("red", "t")
    query = BooleanQuery(must=(red,), should=(red, BoostQuery(red, PhraseQuery("a b", "t"))))
    assert [leaf.query for leaf in text_leaves(query, ())] == [red, PhraseQuery("a b", "t")]


def test_a_part_without_a_column_looks_in_all_that_have_an_index():
    leaves = text_leaves(MatchQuery("red"), ("t", "u"))
    assert [leaf.columns for leaf in leaves] == [("t",), ("u",)]


def test_where_no_column_has_an_index_one_has_to_be_named():
    with pytest.raises(InvalidRequestError, match="name the column to look in"):
        text_leaves(MatchQuery("red"), ())


def test_the_steps_of_a_plan_follow_the_query():
    query = BooleanQuery(
        must=(MatchQuery("red", "t", operator="and", fuzziness=1),),
        should=(
            MultiMatchQuery((MatchQuery("fox", "t", boost=2.0), MatchQuery("fox", "u"))),
            CombinedFieldsQuery("dog", ("t", "u")),
        ),
        must_not=(BoostQuery(PhraseQuery("old new", "t", slop=1), MatchQuery("x", "u")),),
    )
    request = TextQuery(query, 3, offset=2)
    prefilter = Prefilter("id < 5", 4)
    found = plan(request, {"t": choice(segment("a", [0, 1, 2])), "u": choice()}, (), prefilter)
    read = "FlatTextSearch: fragments=3, reason=no usable index"
    indexed = "TextIndexSearch: index=t_idx, segment=a, partitions=2, fragments=3"
    passing = "Prefilter: filter=id < 5, rows=4"
    assert [line.strip() for line in lines(found)] == [
        "Take: columns=[id, _score]",
        "RankByScore: offset=2, k=3",
        "Boolean: must=1, should=2, must_not=1",
        "Match: column=t, text=red, operator=and, fuzziness=1, prefix_length=0, max_expansions=50",
        *(indexed, passing),
        "BestOf:",
        "Match: column=t, text=fox, operator=or, boost=2.000",
        *(indexed, passing),
        "Match: column=u, text=fox, operator=or",
        *(read, passing),
        "CombinedFields: column=t, u, text=dog, operator=or",
        *(indexed, passing, read, passing),
        "Boost: negative_boost=0.500",
        "Phrase: column=t, text=old new, slop=1",
        *(indexed, passing),
        "Match: column=u, text=x, operator=or",
        *(read, passing),
    ]
