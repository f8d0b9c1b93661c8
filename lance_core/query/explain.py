"""Plans as text for people, with measured facts after a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lance_core.query.plan import IndexSearch, Plan, ScanPlan, VectorPlan
from lance_core.query.steps import (
    FLAT,
    LISTED,
    MERGE,
    POSTFILTER,
    PREFILTER,
    RANK,
    RESCORE,
    SCAN,
    TAKE,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance_core.query.measure import Measures, StepFacts
    from lance_core.query.query_result import QueryResult

_MAX_COLUMNS_SHOWN = 12


@dataclass(slots=True)
class _Node:
    """One step of a plan: its name, its key among measures, its settings and what feeds it."""

    name: str
    step: str
    details: dict[str, object]
    inputs: list[_Node] = field(default_factory=list)

    def lines(self, measures: Measures | None, depth: int = 0) -> list[str]:
        facts = None if measures is None else measures.of(self.step)
        own = f"{'  ' * depth}{self.name}: {_show_details(self.details)}{_show_facts(facts)}"
        return [own, *(line for node in self.inputs for line in node.lines(measures, depth + 1))]


def explain_text(plan: Plan) -> str:
    """Return the steps of a plan, one line each, what feeds a step indented below it."""
    return "\n".join(_lines(plan, None))


def analyze_text(result: QueryResult) -> str:
    """Return the steps of a plan that ran with what each did, then the facts of the whole run."""
    totals = _show_details(result.stats.to_dict())
    return "\n".join([*_lines(result.plan, result.measures), f"total: {totals}"])


def _lines(plan: Plan, measures: Measures | None) -> list[str]:
    if isinstance(plan, ScanPlan):
        return _describe_scan(plan).lines(measures)
    return _describe_vector(plan).lines(measures) + [
        f"skipped segment {skipped.uuid} of {skipped.index_name}: {skipped.reason}"
        for skipped in plan.skipped
    ]


def _show_details(details: dict[str, object]) -> str:
    return ", ".join(f"{name}={_show(value)}" for name, value in details.items())


def _show_facts(facts: StepFacts | None) -> str:
    return "" if facts is None else f" [{_show_details(facts.to_dict())}]"


def _describe_scan(plan: ScanPlan) -> _Node:
    scan = _Node("Scan", SCAN, {"fragments": plan.num_fragments, "columns": plan.columns})
    return _Node("Limit", "", {"offset": plan.offset, "limit": plan.limit}, [scan])


def _describe_vector(plan: VectorPlan) -> _Node:
    masks = _describe_prefilter(plan)
    sources = [_describe_search(search, masks) for search in plan.searches]
    if plan.rank_by_hits is not None:
        ranking: dict[str, object] = {"hits": plan.rank_by_hits.hits, "k": plan.rank_by_hits.k}
        sources = [_Node("RankByHits", RANK, ranking, sources)]
    if plan.rescore is not None:
        rescore = _Node(
            "Rescore",
            RESCORE,
            {
                "candidates": plan.rescore.candidates,
                "k": plan.rescore.k,
                "reason": plan.rescore.reason,
            },
            sources,
        )
        sources = [rescore]
    if plan.flat is not None:
        flat = {
            "fragments": len(plan.flat.fragments),
            "k": plan.flat.k,
            "reason": plan.flat.reason,
        }
        sources.append(_Node("FlatSearch", FLAT, flat, masks))
    if plan.listed is not None:
        listed = {
            "fragments": len(plan.listed.fragments),
            "rows": plan.listed.num_rows,
            "k": plan.listed.k,
            "reason": plan.listed.reason,
        }
        sources.append(_Node("ListedSearch", LISTED, listed, masks))
    details: dict[str, object] = {"metric": plan.metric, "offset": plan.offset, "k": plan.k}
    if plan.lower_bound is not None:
        details["lower_bound"] = plan.lower_bound
    if plan.upper_bound is not None:
        details["upper_bound"] = plan.upper_bound
    found = _Node("MergeByDistance", MERGE, details, sources)
    if plan.postfilter is not None:
        found = _Node("Postfilter", POSTFILTER, {"filter": plan.postfilter}, [found])
    return _Node("Take", TAKE, {"columns": plan.columns}, [found])


def _describe_prefilter(plan: VectorPlan) -> list[_Node]:
    """Return the step that says which rows the searches see, if there is one."""
    if plan.prefilter is None:
        return []
    details = {"filter": plan.prefilter.text, "rows": plan.prefilter.num_rows}
    return [_Node("Prefilter", PREFILTER, details)]


def _describe_search(search: IndexSearch, masks: list[_Node]) -> _Node:
    segment = search.segment
    return _Node(
        "IndexSearch",
        segment.uuid,
        {
            "index": segment.index_name,
            "segment": segment.uuid,
            "type": segment.kind,
            "metric": segment.metric,
            "probes": _show_probes(search),
            "partitions": segment.num_partitions,
            "fragments": len(segment.coverage),
            "k": search.k,
        },
        masks,
    )


def _show_probes(search: IndexSearch) -> str:
    probes = search.probes
    if probes.is_fixed:
        return str(probes.minimum)
    low = 1 if probes.minimum is None else probes.minimum
    high = search.segment.num_partitions if probes.maximum is None else probes.maximum
    return f"automatic, {low} to {high}"


def _show(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3f}"
    if isinstance(value, tuple):
        return _show_names(value)
    return str(value)


def _show_names(names: Sequence[object]) -> str:
    shown = ", ".join(str(name) for name in names[:_MAX_COLUMNS_SHOWN])
    more = len(names) - _MAX_COLUMNS_SHOWN
    return f"[{shown}, ... {more} more]" if more > 0 else f"[{shown}]"
