from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, get_args

import orjson
import pyarrow as pa
from pyroaring import BitMap

from lance_core.index.text.queries import (
    BooleanQuery,
    BoostQuery,
    CombinedFieldsQuery,
    MatchQuery,
    MultiMatchQuery,
    PhraseQuery,
)
from lance_core.io.metering import QueryMeter
from lance_core.query.explain import SCHEMA_VERSION, PlanReport
from lance_core.query.filter_steps import FilterSteps, LookupStep, ReadStep
from lance_core.query.fusion import RRF, WeightedFusion
from lance_core.query.hybrid_plan import HybridPlan
from lance_core.query.measure import Measures
from lance_core.query.plan import (
    FlatSearch,
    IndexSearch,
    ListedSearch,
    Prefilter,
    RankByHits,
    Rescore,
    ScanPlan,
    SegmentDescription,
    SkippedSegment,
    TextPlan,
    TextSource,
    VectorPlan,
)
from lance_core.query.plan_tree import plan_tree
from lance_core.query.probes import ProbeBounds
from lance_core.query.query_result import QueryResult
from lance_core.query.stats import QueryStats
from lance_core.query.steps import OF_TEXT, OF_VECTOR, TAKE
from lance_core.query.text_plan import text_leaves
from service.api.models.answers import PlanStep

SEGMENT = SegmentDescription("vec_idx", "u-1", "IVF_PQ", "l2", BitMap([0, 1]), 64, 1)


def vector_plan(probes: ProbeBounds) -> VectorPlan:
    return VectorPlan(
        column="vec",
        metric="l2",
        searches=(IndexSearch(SEGMENT, probes, 50),),
        skipped=(SkippedSegment("old_idx", "u-2", "index version 9 is newer than 2"),),
        flat=FlatSearch(BitMap([2]), 10, "no segment of the index covers these fragments"),
        rescore=Rescore(50, 10, "refine"),
        lower_bound=0.0,
        upper_bound=None,
        offset=0,
        k=10,
        columns=("id", "_distance"),
    )


def explain(plan):
    return PlanReport.of_plan(plan, 7).text()


def test_a_scan_says_what_it_reads_of_all_rows_and_what_only_of_those_returned() -> None:
    plan = ScanPlan(
        columns=("double", "name"),
        num_fragments=3,
        offset=5,
        limit=10,
        scanned=("price", "rank"),
        late=("name",),
        filter="price < 10",
        order_by=("rank descending nulls last",),
        is_computed=True,
    )
    assert explain(plan).splitlines() == [
        "Compute: columns=[double, name]",
        "  Take: columns=[name]",
        "    Limit: offset=5, limit=10",
        "      Order: by=[rank descending nulls last], keep=15",
        "        Filter: filter=price < 10",
        "          Scan: fragments=3, columns=[price, rank]",
    ]


def test_a_plan_names_its_steps_from_the_answer_down_to_the_sources():
    lines = explain(vector_plan(ProbeBounds(8, 8))).splitlines()
    names = [line.strip().split(":")[0] for line in lines]
    assert names[:5] == ["Take", "MergeByDistance", "Rescore", "IndexSearch", "FlatSearch"]
    assert "probes=8" in lines[3]
    assert "lower_bound=0.000" in lines[1]


def test_a_skipped_segment_is_named_with_the_reason():
    text = explain(vector_plan(ProbeBounds(None, None)))
    assert "skipped segment u-2 of old_idx: index version 9 is newer than 2" in text
    assert "probes=automatic, 1 to 64" in text


def test_a_plain_query_shows_its_limit():
    assert explain(ScanPlan(("id",), 3, 5, None, ("id",))).splitlines() == [
        "Limit: offset=5, limit=None",
        "  Scan: fragments=3, columns=[id]",
    ]


def test_a_run_that_is_not_measured_keeps_no_facts():
    measures = Measures(None)
    with measures.measure("take") as facts:
        facts.rows += 1
    assert measures.of("take") is None


def test_measured_facts_stand_beside_their_step_and_at_the_end():
    stats = QueryStats(7, "ann", True, 8, 64, 0, 50, 1234, 2, 3, 4, "complete", 1.5)
    meter = QueryMeter()
    measures = Measures(meter)
    with measures.measure(SEGMENT.uuid) as facts:
        meter.bytes_read += 1200
        facts.rows += 50
        facts.partitions += 8
    result = QueryResult(pa.table({}), stats, vector_plan(ProbeBounds(8, 8)), measures)
    lines = PlanReport.of_run(result).text().splitlines()
    (search,) = [line for line in lines if "IndexSearch" in line]
    assert "[rows=50, partitions=8, bytes_read=1200," in search
    assert lines[-1].startswith("total: version=7, plan=ann")
    assert "bytes_read=1234" in lines[-1]


def test_the_json_form_has_the_same_steps_with_settings_of_their_own_types():
    report: Any = PlanReport.of_plan(vector_plan(ProbeBounds(8, None)), 7).to_dict()
    assert orjson.loads(orjson.dumps(report)) == report
    assert (report["schema_version"], report["version"]) == (SCHEMA_VERSION, 7)
    assert report["skipped"] == [
        {"index": "old_idx", "segment": "u-2", "reason": "index version 9 is newer than 2"}
    ]
    take = report["plan"]
    assert take["node"] == "Take"
    assert take["settings"] == {"columns": ["id", "_distance"]}
    (merge,) = take["inputs"]
    rescore, flat = merge["inputs"]
    assert (rescore["node"], flat["node"]) == ("Rescore", "FlatSearch")
    assert flat["settings"]["reason"] == "no segment of the index covers these fragments"
    (search,) = rescore["inputs"]
    assert search["settings"]["probes"] == {"minimum": 8, "maximum": 64}
    assert search["inputs"] == []
    assert "stats" not in report
    assert "measured" not in search


def test_the_json_form_of_a_run_has_what_each_step_did_and_null_for_those_that_did_not_run():
    meter = QueryMeter()
    measures = Measures(meter)
    with measures.measure(SEGMENT.uuid) as facts:
        meter.cache_hits += 5
        facts.partitions += 8
    stats = QueryStats(7, "ann", True, 8, 64, 0, 50, 1234, 2, 3, 4, "complete", 1.5)
    result = QueryResult(pa.table({}), stats, vector_plan(ProbeBounds(8, 8)), measures)
    report: Any = PlanReport.of_run(result).to_dict()
    assert report["stats"] == stats.to_dict()
    rescore, flat = report["plan"]["inputs"][0]["inputs"]
    assert flat["measured"] is None
    (search,) = rescore["inputs"]
    assert search["measured"]["partitions"] == 8
    assert search["measured"]["cache_hits"] == 5
    assert search["settings"]["probes"] == {"minimum": 8, "maximum": 8}


def test_a_prefilter_stands_under_every_search_that_it_limits():
    plan = replace(vector_plan(ProbeBounds(8, 8)), prefilter=Prefilter("price < 3", 12))
    report: Any = PlanReport.of_plan(plan, 7).to_dict()
    rescore, flat = report["plan"]["inputs"][0]["inputs"]
    expected = [
        {"node": "Prefilter", "settings": {"filter": "price < 3", "rows": 12}, "inputs": []}
    ]
    assert flat["inputs"] == rescore["inputs"][0]["inputs"] == expected


def test_no_more_probes_are_shown_than_there_are_partitions():
    assert "probes=64, partitions=64" in explain(vector_plan(ProbeBounds(100, 100)))
    assert "probes=automatic, 3 to 64" in explain(vector_plan(ProbeBounds(3, 100)))


def test_it_is_told_what_the_bounds_cut():
    plan = vector_plan(ProbeBounds(8, 8))
    assert "bounded=exact distances" in explain(plan)
    assert "bounded=estimates of the index" in explain(replace(plan, rescore=None, flat=None))
    assert "bounded" not in explain(replace(plan, lower_bound=None))


def test_breadth_and_mode_are_shown_where_they_were_asked_for():
    plan = replace(vector_plan(ProbeBounds(8, 8)), ef=200, approx_mode="fast")
    assert "ef=200, approx_mode=fast" in explain(plan)
    assert "ef=" not in explain(vector_plan(ProbeBounds(8, 8)))


FILTER_STEPS = FilterSteps(
    lookups=(LookupStep("price < 3", ("by_price",), ("ZONEMAP",), 2, 4, 900, is_exact=False),),
    rechecks=(ReadStep(("price",), 4, 900),),
    scan=ReadStep(("price", "name"), 1, 300),
    fragments_left_out=1,
    skipped=(SkippedSegment("old", "u7", "too new"),),
)


def test_what_indices_say_of_a_prefilter_stands_below_it():
    plan = replace(
        vector_plan(ProbeBounds(8, 8)), prefilter=Prefilter("price < 3", 12, FILTER_STEPS)
    )
    report = PlanReport.of_plan(plan, 3)
    lines = [line.strip() for line in report.text().splitlines()]
    start = lines.index("Prefilter: filter=price < 3, rows=12, fragments_left_out=1")
    assert lines[start + 1 : start + 4] == [
        "IndexLookup: test=price < 3, index=[by_price], type=[ZONEMAP], segments=2, fragments=4,"
        " rows=900, exact=False",
        "Recheck: columns=[price], fragments=4, rows=900",
        "FilterScan: columns=[price, name], fragments=1, rows=300",
    ]
    assert "skipped segment u7 of old: too new" in lines
    scan = ScanPlan(("id",), 3, 5, None, ("id",), filter="price < 3", steps=FILTER_STEPS)
    assert "IndexLookup: test=price < 3" in PlanReport.of_plan(scan, 3).text()


FUSIONS = (RRF(), WeightedFusion(0.7, 0.3))


def text_plan():
    """Return a plan in which all steps of text queries are, with all their settings."""
    match = MatchQuery("red", "text", boost=2.0, fuzziness=1)
    phrase, both = PhraseQuery("red fox", "text"), CombinedFieldsQuery("red", ("text",))
    boost = BoostQuery(match, MultiMatchQuery((match, match)))
    query = BooleanQuery(must=(boost,), should=(phrase, both))
    return TextPlan(
        query=query,
        leaves=text_leaves(query, ()),
        default_columns=(),
        sources=(TextSource("text", (SEGMENT,), BitMap([3]), "no segment"),),
        skipped=(),
        offset=0,
        k=10,
        columns=("_rowaddr", "_score"),
        by_element=True,
        fragments_left_out=1,
    )


def test_a_hybrid_plan_shows_both_queries_under_their_fusion():
    plan = HybridPlan(
        vector_plan(ProbeBounds(8, 8)), text_plan(), WeightedFusion(0.7, 0.3), 2, 10, ("id",)
    )
    lines = PlanReport.of_plan(plan, 7).text().splitlines()
    assert lines[:2] == [
        "Take: columns=[id]",
        "  Fuse: fusion=weighted, fusion_vector=0.700, fusion_text=0.300, offset=2, k=10",
    ]
    branches = [line.strip().split(":")[0] for line in lines if line.startswith(" " * 4)]
    assert branches.index("MergeByDistance") < branches.index("RankByScore")


def test_measures_of_both_queries_stand_at_their_own_steps():
    plan = HybridPlan(vector_plan(ProbeBounds(8, 8)), text_plan(), RRF(), 0, 10, ("id",))
    whole, near, fitting = (Measures(QueryMeter()) for _ in range(3))
    for measures, rows in [(near, 7), (fitting, 5)]:
        with measures.measure(TAKE) as facts:
            facts.rows = rows
    whole.adopt(OF_VECTOR, near)
    whole.adopt(OF_TEXT, fitting)
    with whole.measure(TAKE) as facts:
        facts.rows = 9
    root = plan_tree(plan)
    (fuse,) = root.inputs
    measured = [whole.of(step.step) for step in (root, *fuse.inputs)]
    assert [facts.rows for facts in measured if facts is not None] == [9, 7, 5]


def test_every_setting_of_every_step_is_documented():
    described = PlanStep.model_fields["settings"].description
    assert described is not None
    documented = {
        name: set(re.findall(r"`(\w+)`", text))
        for name, text in re.findall(r"(\w+): ([^.]*)\.", described)
    }
    whole = replace(
        vector_plan(ProbeBounds(1, 8)),
        upper_bound=3.0,
        fragments_left_out=2,
        ef=200,
        approx_mode="fast",
        prefilter=Prefilter("price < 3", 12, FILTER_STEPS),
        postfilter="price < 3",
        listed=ListedSearch(BitMap([2]), 12, 10, "few rows"),
        rank_by_hits=RankByHits(20, 10),
    )
    shown: dict[str, set[str]] = {}
    hybrid = [HybridPlan(whole, text_plan(), each, 0, 10, ("id",)) for each in FUSIONS]
    scan = ScanPlan(
        columns=("id",),
        num_fragments=3,
        offset=5,
        limit=None,
        scanned=("price",),
        late=("id",),
        filter="price < 3",
        order_by=("price",),
        is_computed=True,
        steps=FILTER_STEPS,
    )
    plans: list[Any] = [whole, scan, *hybrid]
    for plan in plans:
        steps = [plan_tree(plan)]
        while steps:
            step = steps.pop()
            shown.setdefault(step.name, set()).update(step.settings)
            steps += step.inputs
    parts = {
        "IndexSearch": {"minimum", "maximum"},
        "Rescore": {"refine", "mixed"},
        "Fuse": {"rrf", "weighted"},
    }
    assert shown == {name: names - parts.get(name, set()) for name, names in documented.items()}
    assert set(shown) == set(get_args(PlanStep.model_fields["node"].annotation))
