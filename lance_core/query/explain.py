"""Plans for people, as text, and for programs, as JSON; with measured facts after a run.

The JSON form has a version of its own, `SCHEMA_VERSION`: members and settings may be added to it,
and none changes its meaning or goes away without another version.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from lance_core.query.plan_node import PlanNode, ProbeSetting
from lance_core.query.plan_tree import plan_tree

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lance_core.query.measure import Measures, StepFacts
    from lance_core.query.plan import Plan, SkippedSegment
    from lance_core.query.query_result import QueryResult
    from lance_core.query.stats import QueryStats

SCHEMA_VERSION = 1

_MAX_COLUMNS_SHOWN = 12


@dataclass(frozen=True, slots=True, eq=False)
class PlanReport:
    """The plan of a query, and what its steps did if it was run.

    Parameters
    ----------
    version
        Version of the dataset.
    root
        The last step.
    skipped
        Segments that are left out, and why.
    measures
        What each step did; None: the query was not run.
    stats
        Facts of the whole run; None as before.
    """

    version: int
    root: PlanNode
    skipped: tuple[SkippedSegment, ...] = ()
    measures: Measures | None = None
    stats: QueryStats | None = None

    @classmethod
    def of_plan(cls, plan: Plan, version: int) -> PlanReport:
        """Describe what a query is going to do."""
        return cls(version, plan_tree(plan), plan.all_skipped)

    @classmethod
    def of_run(cls, result: QueryResult) -> PlanReport:
        """Describe what a query did."""
        plan, stats = result.plan, result.stats
        return cls(stats.version, plan_tree(plan), plan.all_skipped, result.measures, stats)

    def text(self) -> str:
        """Return one line for each step, what feeds a step indented below it.

        Then follow segments that were skipped, and the facts of the whole run.
        """
        lines = self._lines(self.root, 0)
        lines += [
            f"skipped segment {each.uuid} of {each.index_name}: {each.reason}"
            for each in self.skipped
        ]
        if self.stats is not None:
            lines.append(f"total: {_show_all(self.stats.to_dict())}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, object]:
        """Return the plan as an object of JSON types.

        Its members are ``schema_version``, ``version``, ``plan`` (the last step), ``skipped`` and
        after a run ``stats``. A step has ``node``, ``settings``, ``inputs`` and after a run
        ``measured``, which is null if it had nothing to do. A step under several others stands
        under each of them, every time with all that it did.
        """
        report: dict[str, object] = {
            "schema_version": SCHEMA_VERSION,
            "version": self.version,
            "plan": self._node_dict(self.root),
            "skipped": [
                {"index": each.index_name, "segment": each.uuid, "reason": each.reason}
                for each in self.skipped
            ],
        }
        if self.stats is not None:
            report["stats"] = self.stats.to_dict()
        return report

    def _lines(self, node: PlanNode, depth: int) -> list[str]:
        facts = self._facts(node)
        measured = "" if facts is None else f" [{_show_all(facts.to_dict())}]"
        own = f"{'  ' * depth}{node.name}: {_show_all(node.settings)}{measured}"
        return [own, *(line for each in node.inputs for line in self._lines(each, depth + 1))]

    def _node_dict(self, node: PlanNode) -> dict[str, object]:
        found: dict[str, object] = {
            "node": node.name,
            "settings": {name: _as_json(value) for name, value in node.settings.items()},
        }
        if self.measures is not None:
            facts = self._facts(node)
            found["measured"] = None if facts is None else facts.to_dict()
        found["inputs"] = [self._node_dict(each) for each in node.inputs]
        return found

    def _facts(self, node: PlanNode) -> StepFacts | None:
        return None if self.measures is None else self.measures.of(node.step)


def _as_json(value: object) -> object:
    if isinstance(value, ProbeSetting):
        return asdict(value)
    return list(value) if isinstance(value, tuple) else value


def _show_all(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={_show(value)}" for name, value in values.items())


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
