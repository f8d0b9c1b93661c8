"""How the rows that pass a filter are found, as steps of a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.query.plan_node import PlanNode
from lance_core.query.steps import PREFILTER

if TYPE_CHECKING:
    from lance_core.query.filter_steps import FilterSteps, LookupStep, ReadStep
    from lance_core.query.plan import Prefilter
    from lance_core.query.plan_node import Setting


def prefilter_nodes(prefilter: Prefilter | None) -> tuple[PlanNode, ...]:
    """Return the step that says which rows searches see, if there is one."""
    if prefilter is None:
        return ()
    settings: dict[str, Setting] = {"filter": prefilter.text, "rows": prefilter.num_rows}
    steps = prefilter.steps
    if steps is not None and steps.fragments_left_out > 0:
        settings["fragments_left_out"] = steps.fragments_left_out
    return (PlanNode("Prefilter", PREFILTER, settings, filter_nodes(steps)),)


def filter_nodes(steps: FilterSteps | None) -> tuple[PlanNode, ...]:
    """Return what indices are asked, what is looked at again, and what is scanned."""
    if steps is None:
        return ()
    nodes = [_lookup_node(each) for each in steps.lookups]
    nodes += [_read_node("Recheck", each) for each in steps.rechecks]
    if steps.scan is not None:
        nodes.append(_read_node("FilterScan", steps.scan))
    return tuple(nodes)


def _lookup_node(step: LookupStep) -> PlanNode:
    return PlanNode(
        "IndexLookup",
        "",
        {
            "test": step.test,
            "index": step.indices,
            "type": step.kinds,
            "segments": step.num_segments,
            "fragments": step.num_fragments,
            "rows": step.num_rows,
            "exact": step.is_exact,
        },
    )


def _read_node(name: str, step: ReadStep) -> PlanNode:
    settings: dict[str, Setting] = {
        "columns": step.columns,
        "fragments": step.num_fragments,
        "rows": step.num_rows,
    }
    return PlanNode(name, "", settings)
