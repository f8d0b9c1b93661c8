"""The steps of a text plan as a tree of names and settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.index.text.queries import (
    BooleanQuery,
    BoostQuery,
    CombinedFieldsQuery,
    MultiMatchQuery,
    PhraseQuery,
)
from lance_core.query.filter_nodes import prefilter_nodes
from lance_core.query.plan_node import PlanNode
from lance_core.query.steps import MERGE, POSTFILTER, TAKE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance_core.index.text.queries import TextNode
    from lance_core.query.plan import TextLeaf, TextPlan
    from lance_core.query.plan_node import Setting

_MOST_SHOWN = 200
"""Characters of a text that are shown."""


def text_tree(plan: TextPlan) -> PlanNode:
    """Return the last step of a text plan, with what feeds it."""
    settings: dict[str, Setting] = {"offset": plan.offset, "k": plan.k}
    if plan.by_element:
        settings["documents"] = "elements of lists"
    if plan.fragments_left_out > 0:
        settings["fragments_left_out"] = plan.fragments_left_out
    found = PlanNode("RankByScore", MERGE, settings, (_Nodes(plan).of(plan.query),))
    if plan.postfilter is not None:
        found = PlanNode("Postfilter", POSTFILTER, {"filter": plan.postfilter}, (found,))
    return PlanNode("Take", TAKE, {"columns": plan.columns}, (found,))


class _Nodes:
    """Makes a step of each part of a query."""

    def __init__(self, plan: TextPlan) -> None:
        self._plan = plan
        self._leaves = {(leaf.query, leaf.columns): leaf for leaf in plan.leaves}
        self._sources = {source.column: source for source in plan.sources}
        self._masks = prefilter_nodes(plan.prefilter)

    def of(self, node: TextNode) -> PlanNode:
        """Return the step of one part, with what feeds it."""
        match node:
            case BooleanQuery():
                return self._boolean(node)
            case BoostQuery():
                parts = (self.of(node.positive), self.of(node.negative))
                return PlanNode("Boost", "", {"negative_boost": node.negative_boost}, parts)
            case MultiMatchQuery():
                return PlanNode("BestOf", "", {}, tuple(self.of(each) for each in node.matches))
            case CombinedFieldsQuery():
                return self._leaf(self._leaves[node, node.columns])
            case _:
                columns = self._plan.columns_of(node)
                found = [self._leaf(self._leaves[node, (each,)]) for each in columns]
                return found[0] if len(found) == 1 else PlanNode("BestOf", "", {}, tuple(found))

    def _boolean(self, node: BooleanQuery) -> PlanNode:
        settings: dict[str, Setting] = {
            "must": len(node.must),
            "should": len(node.should),
            "must_not": len(node.must_not),
        }
        parts = (*node.must, *node.should, *node.must_not)
        return PlanNode("Boolean", "", settings, tuple(self.of(each) for each in parts))

    def _leaf(self, leaf: TextLeaf) -> PlanNode:
        name, settings = _shown(leaf)
        inputs = (*self._searches(leaf.columns), *self._reads(leaf.columns))
        return PlanNode(name, leaf.step, settings, inputs)

    def _searches(self, columns: Sequence[str]) -> list[PlanNode]:
        return [
            PlanNode(
                "TextIndexSearch",
                "",
                {
                    "index": segment.index_name,
                    "segment": segment.uuid,
                    "partitions": segment.num_partitions,
                    "fragments": len(segment.coverage),
                },
                self._masks,
            )
            for column in columns
            for segment in self._sources[column].segments
        ]

    def _reads(self, columns: Sequence[str]) -> list[PlanNode]:
        return [
            PlanNode(
                "FlatTextSearch",
                "",
                {"fragments": len(source.flat), "reason": source.reason},
                self._masks,
            )
            for source in (self._sources[column] for column in columns)
            if source.flat
        ]


def _shown(leaf: TextLeaf) -> tuple[str, dict[str, Setting]]:
    """Return what a search is called, and what it goes by."""
    query = leaf.query
    settings: dict[str, Setting] = {"column": ", ".join(leaf.columns), "text": _cut(query.text)}
    if isinstance(query, PhraseQuery):
        return "Phrase", {**settings, "slop": query.slop}
    settings["operator"] = query.operator
    if isinstance(query, CombinedFieldsQuery):
        return "CombinedFields", settings
    if query.boost != 1:
        settings["boost"] = query.boost
    if query.fuzziness is not None and query.fuzziness > 0:
        settings |= {
            "fuzziness": query.fuzziness,
            "prefix_length": query.prefix_length,
            "max_expansions": query.max_expansions,
        }
    return "Match", settings


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."
