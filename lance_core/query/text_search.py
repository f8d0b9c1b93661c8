"""Running a text plan: searches for tokens, their rows put together, one ranking."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from lance_core.index.text.queries import (
    BooleanQuery,
    BoostQuery,
    CombinedFieldsQuery,
    MatchQuery,
    MultiMatchQuery,
    PhraseQuery,
    leaves_of,
)
from lance_core.index.text.text_hits import TextHits, merged
from lance_core.query.steps import MERGE
from lance_core.query.text_compose import best_of, demoted, summed, without

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from lance_core.index.text.queries import TextNode
    from lance_core.query.deadline import Deadline
    from lance_core.query.measure import Measures
    from lance_core.query.plan import TextLeaf, TextPlan

    FindLeaf = Callable[[TextLeaf, int | None], TextHits]
    """Returns the best rows of one search, best first; all if there is no number."""


_Part = TypeVar("_Part")

_PARTS_HELD = 8
"""Parts whose rows are in memory together, as many as the table has each."""


class TextSearch:
    """One run of a plan; belongs to one thread.

    Parameters
    ----------
    plan
        What to do.
    find_leaf
        Searches for the tokens of one text.
    deadline
        Looked at between pieces of work.
    measures
        Receives what each step did.
    """

    def __init__(
        self, plan: TextPlan, find_leaf: FindLeaf, *, deadline: Deadline, measures: Measures
    ) -> None:
        self._plan = plan
        self._find_leaf = find_leaf
        self._deadline = deadline
        self._measures = measures
        self._leaves: Mapping[object, TextLeaf] = {
            (leaf.query, leaf.columns): leaf for leaf in plan.leaves
        }
        counts = Counter(leaf for leaf in leaves_of(plan.query))
        self._repeated = {leaf.step for leaf in plan.leaves if counts[leaf.query] > 1}
        self._found: dict[tuple[str, int | None], TextHits] = {}

    def run(self) -> TextHits:
        """Return the best rows, before they are postfiltered, best first, ties by row id."""
        num_ranked = self._plan.num_ranked
        hits = self._find(self._plan.query, num_ranked)
        with self._measures.measure(MERGE) as facts:
            ranked = merged([hits], num_ranked)
            facts.rows = len(ranked.row_ids)
        return ranked

    def _find(self, node: TextNode, k: int | None) -> TextHits:
        """Return rows of a query with their scores, in any order: the best ``k`` at least."""
        if isinstance(node, CombinedFieldsQuery):
            return self._leaf(node, node.columns, k)
        if isinstance(node, MatchQuery | PhraseQuery):
            columns = self._plan.columns_of(node)
            return self._best_of([partial(self._leaf, node, (each,)) for each in columns], k)
        if isinstance(node, MultiMatchQuery):
            return self._best_of([partial(self._find, each) for each in node.matches], k)
        if isinstance(node, BoostQuery):
            return self._boosted(node)
        return self._boolean(node, k)

    def _best_of(
        self, parts: Sequence[Callable[[int | None], TextHits]], k: int | None
    ) -> TextHits:
        """Return the rows of all parts with their best scores.

        A row among the best ``k`` is so in the part that it has its score from.
        """
        found = parts[0](k)
        for some in _groups(parts[1:]):
            found = best_of([found, *(part(k) for part in some)])
        return found

    def _boolean(self, node: BooleanQuery, k: int | None) -> TextHits:
        """Return the rows that a boolean query finds; few of its parts are held at a time."""
        scored = (*node.must, *node.should)
        if len(scored) == 1 and len(node.must_not) == 0:
            return self._find(scored[0], k)
        found = self._find(scored[0], None)
        for each in node.must[1:]:
            found = summed([found, self._find(each, None)], [])
        for some in _groups(node.should if node.must else node.should[1:]):
            more = [self._find(each, None) for each in some]
            found = summed([found], more) if node.must else summed([], [found, *more])
        for each in node.must_not:
            found = without(found, [self._find(each, None)])
        return found

    def _boosted(self, node: BoostQuery) -> TextHits:
        positive = self._find(node.positive, None)
        negative = self._find(node.negative, None)
        return demoted(positive, negative, node.negative_boost)

    def _leaf(
        self,
        query: MatchQuery | PhraseQuery | CombinedFieldsQuery,
        columns: tuple[str, ...],
        k: int | None,
    ) -> TextHits:
        leaf = self._leaves[query, columns]
        known = self._found.get((leaf.step, k))
        if known is None:
            self._deadline.check("searching texts")
            with self._measures.measure(leaf.step) as facts:
                known = self._find_leaf(leaf, k)
                facts.rows += len(known.row_ids)
                facts.postings += known.num_postings
                facts.partitions += self._num_partitions(leaf)
            if leaf.step in self._repeated:
                self._found[leaf.step, k] = known
        return known

    def _num_partitions(self, leaf: TextLeaf) -> int:
        return sum(
            segment.num_partitions
            for source in self._plan.sources
            if source.column in leaf.columns
            for segment in source.segments
        )


def _groups(parts: Sequence[_Part]) -> Iterator[Sequence[_Part]]:
    """Yield parts some at a time: each may find all rows of the table."""
    for start in range(0, len(parts), _PARTS_HELD):
        yield parts[start : start + _PARTS_HELD]
