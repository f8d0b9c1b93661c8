from __future__ import annotations

import pyarrow as pa
from pyroaring import BitMap

from lance_core.io.metering import QueryMeter
from lance_core.query.explain import analyze_text, explain_text
from lance_core.query.measure import Measures
from lance_core.query.plan import (
    FlatSearch,
    IndexSearch,
    Rescore,
    ScanPlan,
    SegmentDescription,
    SkippedSegment,
    VectorPlan,
)
from lance_core.query.probes import ProbeBounds
from lance_core.query.query_result import QueryResult
from lance_core.query.stats import QueryStats

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


def test_a_plan_names_its_steps_from_the_answer_down_to_the_sources():
    lines = explain_text(vector_plan(ProbeBounds(8, 8))).splitlines()
    names = [line.strip().split(":")[0] for line in lines]
    assert names[:5] == ["Take", "MergeByDistance", "Rescore", "IndexSearch", "FlatSearch"]
    assert "probes=8" in lines[3]
    assert "lower_bound=0.000" in lines[1]


def test_a_skipped_segment_is_named_with_the_reason():
    text = explain_text(vector_plan(ProbeBounds(None, None)))
    assert "skipped segment u-2 of old_idx: index version 9 is newer than 2" in text
    assert "probes=automatic, 1 to 64" in text


def test_a_plain_query_shows_its_limit():
    assert explain_text(ScanPlan(("id",), 3, 5, None)).splitlines() == [
        "Limit: offset=5, limit=None",
        "  Scan: fragments=3, columns=[id]",
    ]


def test_measured_facts_stand_beside_their_step_and_at_the_end():
    stats = QueryStats(7, "ann", True, 8, 64, 0, 50, 1234, 2, 3, 4, "complete", 1.5)
    meter = QueryMeter()
    measures = Measures(meter)
    with measures.measure(SEGMENT.uuid) as facts:
        meter.bytes_read += 1200
        facts.rows += 50
    result = QueryResult(pa.table({}), stats, vector_plan(ProbeBounds(8, 8)), measures)
    lines = analyze_text(result).splitlines()
    (search,) = [line for line in lines if "IndexSearch" in line]
    assert "[rows=50, bytes_read=1200," in search
    assert lines[-1].startswith("total: version=7, plan=ann")
    assert "bytes_read=1234" in lines[-1]
