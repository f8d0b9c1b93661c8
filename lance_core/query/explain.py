"""Plans as text and as JSON-ready data, with measured facts after a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lance_core.query.plan import IndexSearch, Plan, ScanPlan, VectorPlan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lance_core.query.stats import QueryStats

_MAX_COLUMNS_SHOWN = 12


@dataclass(slots=True)
class PlanNode:
    """One step of a plan for people: its name, its settings and the steps that feed it."""

    name: str
    details: dict[str, object]
    inputs: list[PlanNode] = field(default_factory=list)

    def to_dict(self) -> dict[str, object]:
        """Return the tree below this node as plain data."""
        return {
            "node": self.name,
            **self.details,
            "inputs": [node.to_dict() for node in self.inputs],
        }

    def lines(self, depth: int = 0) -> list[str]:
        """Return one line per node, inputs indented below what they feed."""
        details = ", ".join(f"{name}={_show(value)}" for name, value in self.details.items())
        own = f"{'  ' * depth}{self.name}: {details}" if details else f"{'  ' * depth}{self.name}"
        return [own, *(line for node in self.inputs for line in node.lines(depth + 1))]


def describe(plan: Plan, measured: Mapping[str, object] | None = None) -> PlanNode:
    """Return the tree of a plan; ``measured`` facts of a run are shown at its root."""
    root = _describe_scan(plan) if isinstance(plan, ScanPlan) else _describe_vector(plan)
    if measured is not None:
        root.details["measured"] = dict(measured)
    return root


def explain_text(plan: Plan, stats: QueryStats | None = None) -> str:
    """Return a plan as text; with ``stats`` the facts of its run are added."""
    lines = describe(plan).lines()
    if isinstance(plan, VectorPlan):
        lines += [
            f"skipped segment {skipped.uuid} of {skipped.index_name}: {skipped.reason}"
            for skipped in plan.skipped
        ]
    if stats is not None:
        facts = ", ".join(f"{name}={_show(value)}" for name, value in stats.to_dict().items())
        lines.append(f"measured: {facts}")
    return "\n".join(lines)


def _describe_scan(plan: ScanPlan) -> PlanNode:
    scan = PlanNode("Scan", {"fragments": plan.num_fragments, "columns": plan.columns})
    return PlanNode("Limit", {"offset": plan.offset, "limit": plan.limit}, [scan])


def _describe_vector(plan: VectorPlan) -> PlanNode:
    sources = [_describe_search(search) for search in plan.searches]
    if plan.rescore is not None:
        rescore = PlanNode(
            "Rescore",
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
        sources.append(PlanNode("FlatSearch", flat))
    details: dict[str, object] = {"metric": plan.metric, "offset": plan.offset, "k": plan.k}
    if plan.lower_bound is not None:
        details["lower_bound"] = plan.lower_bound
    if plan.upper_bound is not None:
        details["upper_bound"] = plan.upper_bound
    merge = PlanNode("MergeByDistance", details, sources)
    return PlanNode("Take", {"columns": plan.columns}, [merge])


def _describe_search(search: IndexSearch) -> PlanNode:
    segment = search.segment
    return PlanNode(
        "IndexSearch",
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
