"""The steps of a plan as one tree of names and settings; all ways to show it begin with it."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from lance_core.query.filter_nodes import filter_nodes, prefilter_nodes
from lance_core.query.fusion import RRF
from lance_core.query.hybrid_plan import HybridPlan
from lance_core.query.plan import ScanPlan, TextPlan
from lance_core.query.plan_node import PlanNode, ProbeSetting
from lance_core.query.steps import (
    FILTER,
    FLAT,
    FUSE,
    LISTED,
    MERGE,
    OF_TEXT,
    OF_VECTOR,
    ORDER,
    POSTFILTER,
    RANK,
    RESCORE,
    SCAN,
    TAKE,
)
from lance_core.query.text_tree import text_tree

if TYPE_CHECKING:
    from lance_core.query.plan import IndexSearch, Plan, VectorPlan
    from lance_core.query.plan_node import Setting


def plan_tree(plan: Plan) -> PlanNode:
    """Return the last step of a plan, with what feeds it."""
    if isinstance(plan, TextPlan):
        return text_tree(plan)
    if isinstance(plan, HybridPlan):
        return _hybrid_node(plan)
    return _scan_node(plan) if isinstance(plan, ScanPlan) else _vector_node(plan)


def _scan_node(plan: ScanPlan) -> PlanNode:
    scan: dict[str, Setting] = {"fragments": plan.num_fragments, "columns": plan.scanned}
    found = PlanNode("Scan", SCAN, scan)
    if plan.filter is not None:
        inputs = (found, *filter_nodes(plan.steps))
        found = PlanNode("Filter", FILTER, {"filter": plan.filter}, inputs)
    if plan.order_by:
        kept = None if plan.limit is None else plan.offset + plan.limit
        found = PlanNode("Order", ORDER, {"by": plan.order_by, "keep": kept}, (found,))
    found = PlanNode("Limit", "", {"offset": plan.offset, "limit": plan.limit}, (found,))
    if plan.late:
        found = PlanNode("Take", TAKE, {"columns": plan.late}, (found,))
    if plan.is_computed:
        found = PlanNode("Compute", "", {"columns": plan.columns}, (found,))
    return found


def _vector_node(plan: VectorPlan) -> PlanNode:
    masks = prefilter_nodes(plan.prefilter)
    sources = (*_ranked_searches(plan, masks), *_exact_searches(plan, masks))
    settings: dict[str, Setting] = {"metric": plan.metric, "offset": plan.offset, "k": plan.k}
    if plan.lower_bound is not None:
        settings["lower_bound"] = plan.lower_bound
    if plan.upper_bound is not None:
        settings["upper_bound"] = plan.upper_bound
    if plan.has_bounds:
        settings["bounded"] = "exact distances" if plan.is_exact else "estimates of the index"
    if plan.fragments_left_out > 0:
        settings["fragments_left_out"] = plan.fragments_left_out
    found = PlanNode("MergeByDistance", MERGE, settings, sources)
    if plan.postfilter is not None:
        found = PlanNode("Postfilter", POSTFILTER, {"filter": plan.postfilter}, (found,))
    return PlanNode("Take", TAKE, {"columns": plan.columns}, (found,))


def _hybrid_node(plan: HybridPlan) -> PlanNode:
    branches = (
        _of_branch(OF_VECTOR, _vector_node(plan.vector)),
        _of_branch(OF_TEXT, text_tree(plan.text)),
    )
    settings: dict[str, Setting] = {
        "fusion": "rrf" if isinstance(plan.fusion, RRF) else "weighted",
        **{f"fusion_{name}": value for name, value in asdict(plan.fusion).items()},
        "offset": plan.offset,
        "k": plan.k,
    }
    found = PlanNode("Fuse", FUSE, settings, branches)
    return PlanNode("Take", TAKE, {"columns": plan.columns}, (found,))


def _of_branch(prefix: str, node: PlanNode) -> PlanNode:
    """Return a step of one of two queries, under the name by which it was measured."""
    inputs = tuple(_of_branch(prefix, each) for each in node.inputs)
    return replace(node, step=prefix + node.step, inputs=inputs)


def _ranked_searches(plan: VectorPlan, masks: tuple[PlanNode, ...]) -> tuple[PlanNode, ...]:
    """Return the index searches, under what becomes of their rows before all are merged."""
    sources = tuple(_search_node(search, plan, masks) for search in plan.searches)
    if plan.rank_by_hits is not None:
        ranking: dict[str, Setting] = {"hits": plan.rank_by_hits.hits, "k": plan.rank_by_hits.k}
        sources = (PlanNode("RankByHits", RANK, ranking, sources),)
    if plan.rescore is not None:
        settings: dict[str, Setting] = {
            "candidates": plan.rescore.candidates,
            "k": plan.rescore.k,
            "reason": plan.rescore.reason,
        }
        sources = (PlanNode("Rescore", RESCORE, settings, sources),)
    return sources


def _exact_searches(plan: VectorPlan, masks: tuple[PlanNode, ...]) -> tuple[PlanNode, ...]:
    sources = []
    if plan.flat is not None:
        settings: dict[str, Setting] = {
            "fragments": len(plan.flat.fragments),
            "k": plan.flat.k,
            "reason": plan.flat.reason,
        }
        sources.append(PlanNode("FlatSearch", FLAT, settings, masks))
    if plan.listed is not None:
        settings = {
            "fragments": len(plan.listed.fragments),
            "rows": plan.listed.num_rows,
            "k": plan.listed.k,
            "reason": plan.listed.reason,
        }
        sources.append(PlanNode("ListedSearch", LISTED, settings, masks))
    return tuple(sources)


def _search_node(search: IndexSearch, plan: VectorPlan, masks: tuple[PlanNode, ...]) -> PlanNode:
    segment = search.segment
    settings: dict[str, Setting] = {
        "index": segment.index_name,
        "segment": segment.uuid,
        "type": segment.kind,
        "metric": segment.metric,
        "probes": _probe_setting(search),
        "partitions": segment.num_partitions,
        "fragments": len(segment.coverage),
        "k": search.k,
    }
    if plan.ef is not None:
        settings["ef"] = plan.ef
    if plan.approx_mode != "normal":
        settings["approx_mode"] = plan.approx_mode
    return PlanNode("IndexSearch", segment.uuid, settings, masks)


def _probe_setting(search: IndexSearch) -> ProbeSetting:
    """Return the numbers of probes, of which there are no more than partitions."""
    probes, most = search.probes, search.segment.num_partitions
    low = min(1 if probes.minimum is None else probes.minimum, most)
    high = most if probes.maximum is None else min(probes.maximum, most)
    return ProbeSetting(low, high)
