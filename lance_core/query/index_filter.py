"""What scalar indices say about a filter at one version, fragment by fragment."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial, reduce
from operator import and_, or_
from typing import TYPE_CHECKING

from pyroaring import BitMap

from lance_core.expr.walk import columns_of
from lance_core.index.scalar.answer import RowAnswer, united
from lance_core.index.scalar.fragment_rows import num_rows
from lance_core.io.waiting import for_each
from lance_core.query.filter_parts import (
    AllOf,
    Lookup,
    OneOf,
    answerable,
    is_answerable,
    lookups_of,
    node_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lance_core.expr.index_query import IndexLeaf
    from lance_core.expr.tree import Node
    from lance_core.index.scalar.fragment_rows import FragmentRows
    from lance_core.io.store import ObjectStore
    from lance_core.query.current_rows import CurrentRows
    from lance_core.query.filter_parts import Part
    from lance_core.query.plan import SkippedSegment
    from lance_core.query.scalar_indices import ScalarIndices, SegmentQuery

    Check = Callable[[], object]
    """Called again and again while work goes on; raises when it has to stop."""

_KEPT_BYTES = 1024
"""What keeping an answer takes beside its rows."""
_KEPT_BYTES_OF_ROWS = 128
"""What keeping the rows of one fragment takes beside the bitmap."""


@dataclass(frozen=True, slots=True, eq=False)
class LookupFacts:
    """What an index was asked, and how much it said.

    ``num_rows`` are the rows that it left in question, deleted ones included.
    """

    leaf: IndexLeaf
    column: str
    index_names: tuple[str, ...]
    kinds: tuple[str, ...]
    num_segments: int
    num_fragments: int
    num_rows: int
    is_exact: bool


@dataclass(frozen=True, slots=True, eq=False)
class AnsweredFragments:
    """Fragments for which the same indices were asked.

    Parameters
    ----------
    fragments
        The fragments.
    answer
        Which rows of them pass, deleted ones included.
    rest
        Passes of the rows that are only possible those which the filter passes; None where there
        are none.
    """

    fragments: BitMap
    answer: RowAnswer
    rest: Node | None


@dataclass(frozen=True, eq=False)
class IndexAnswer:
    """What indices say about a filter; of fragments in no group they say nothing.

    ``covered`` are the fragments that every index covers which was asked.
    """

    groups: tuple[AnsweredFragments, ...]
    covered: BitMap
    lookups: tuple[LookupFacts, ...]
    skipped: tuple[SkippedSegment, ...]

    @cached_property
    def fragments(self) -> BitMap:
        """Fragments that indices say something about."""
        return BitMap.union(BitMap(), *(group.fragments for group in self.groups))

    @cached_property
    def nbytes(self) -> int:
        """Memory of the rows, about."""
        sets: list[FragmentRows] = []
        for group in self.groups:
            sets.append(group.answer.possible)
            if not group.answer.is_exact:
                sets.append(group.answer.certain)
        return _KEPT_BYTES + sum(
            len(bitmap.serialize()) + _KEPT_BYTES_OF_ROWS
            for rows in sets
            for bitmap in rows.values()
        )


NOTHING_SAID = IndexAnswer((), BitMap(), (), ())


def ask_indices(
    part: Part,
    indices: ScalarIndices,
    current: CurrentRows,
    live: BitMap,
    store: ObjectStore,
    check: Check,
) -> IndexAnswer:
    """Ask scalar indices about a filter.

    Parameters
    ----------
    part
        The filter, taken apart.
    indices
        Those of the version.
    current
        Leads the rows that index files name to where they are.
    live
        Fragments of the version.
    store
        Where index files lie, as a rule: whether it makes readers wait.
    check
        Raises when the work has to stop.

    Raises
    ------
    CorruptFileError
        An index file is damaged or missing.
    """
    queries = {lookup: indices.queries(lookup.leaf) for lookup in lookups_of(part)}
    asked = {lookup: own for lookup, own in queries.items() if own}
    groups = _grouped(live, {lookup: _coverage(own) for lookup, own in asked.items()})
    known = [answerable(part, lookups.__contains__) for _, lookups in groups]
    useful = {each for said in known if said is not None for each in lookups_of(said)}
    asked = {lookup: own for lookup, own in asked.items() if lookup in useful}
    answers = _search(asked, current, store, check)
    answered = [
        _answered(part, fragments, {each: answers[each] for each in useful & lookups})
        for fragments, lookups in groups
    ]
    return IndexAnswer(
        tuple(each for each in answered if each is not None),
        reduce(and_, [_coverage(own) for own in asked.values()]) if asked else BitMap(),
        tuple(_facts(lookup, asked[lookup], answers[lookup]) for lookup in answers),
        indices.skipped(lookup.leaf.field_id for lookup in queries),
    )


def _coverage(queries: Sequence[SegmentQuery]) -> BitMap:
    if len(queries) == 1:
        return queries[0].coverage
    return BitMap.union(BitMap(), *(each.coverage for each in queries))


def _grouped(
    live: BitMap, coverage: Mapping[Lookup, BitMap]
) -> list[tuple[BitMap, frozenset[Lookup]]]:
    """Part fragments by the lookups that are answered for them."""
    groups: list[tuple[BitMap, list[Lookup]]] = [(live, [])]
    for lookup, covered in coverage.items():
        parted: list[tuple[BitMap, list[Lookup]]] = []
        for fragments, lookups in groups:
            inside, outside = fragments & covered, fragments - covered
            parted += [(inside, [*lookups, lookup])] if inside else []
            parted += [(outside, lookups)] if outside else []
        groups = parted
    return [(fragments, frozenset(lookups)) for fragments, lookups in groups]


def _search(
    queries: Mapping[Lookup, Sequence[SegmentQuery]],
    current: CurrentRows,
    store: ObjectStore,
    check: Check,
) -> dict[Lookup, RowAnswer]:
    """Ask all segments, at once where they have to be read from afar."""
    tasks = [(lookup, query) for lookup, own in queries.items() for query in own]
    found = for_each(store, partial(_ask, current, check), tasks)
    by_lookup: dict[Lookup, list[RowAnswer]] = {lookup: [] for lookup in queries}
    for (lookup, _), answer in zip(tasks, found, strict=True):
        by_lookup[lookup].append(answer)
    return {lookup: united(answers) for lookup, answers in by_lookup.items()}


def _ask(current: CurrentRows, check: Check, task: tuple[Lookup, SegmentQuery]) -> RowAnswer:
    lookup, asked = task
    check()
    segment, is_negated = asked.segment, lookup.leaf.is_negated
    said = segment.search(asked.query, with_nulls=is_negated, check=check)
    by_row_id = segment.names_rows_by == "row_id"
    answer = current.translate(said, asked.coverage, by_row_id=by_row_id)
    return answer.negated(current.all_rows(asked.coverage)) if is_negated else answer


def _answered(
    part: Part, fragments: BitMap, answers: Mapping[Lookup, RowAnswer]
) -> AnsweredFragments | None:
    """Join the answers for some fragments as the filter joins its parts; None if they do not."""
    inside = {lookup: _within(answer, fragments) for lookup, answer in answers.items()}
    answer = _joined(part, inside)
    if answer is None:
        return None

    def is_settled(each: Part) -> bool:
        own = _joined(each, inside) if is_answerable(each, inside.__contains__) else None
        return own is not None and not own.unsure

    rest = _left_over(part, is_settled)
    exact = RowAnswer.exact(answer.certain)
    return AnsweredFragments(fragments, exact if rest is None else answer, rest)


def _within(answer: RowAnswer, fragments: BitMap) -> RowAnswer:
    certain = _rows_within(answer.certain, fragments)
    if answer.is_exact:
        return RowAnswer.exact(certain)
    return RowAnswer(certain, _rows_within(answer.possible, fragments))


def _rows_within(rows: FragmentRows, fragments: BitMap) -> FragmentRows:
    return {key: bitmap for key, bitmap in rows.items() if key in fragments}


def _joined(part: Part, answers: Mapping[Lookup, RowAnswer]) -> RowAnswer | None:
    """Return what answers say about a part; None where they say nothing."""
    if isinstance(part, AllOf):
        return _true_in_all([_joined(each, answers) for each in part.parts])
    if isinstance(part, OneOf):
        joined = [_joined(each, answers) for each in part.parts]
        known = [each for each in joined if each is not None]
        return reduce(or_, known) if len(known) == len(joined) else None
    return answers.get(part) if isinstance(part, Lookup) else None


def _true_in_all(answers: Sequence[RowAnswer | None]) -> RowAnswer | None:
    known = [each for each in answers if each is not None]
    if not known:
        return None
    both = reduce(and_, known)
    return both if len(known) == len(answers) else RowAnswer.at_most(both.possible)


def _left_over(part: Part, is_settled: Callable[[Part], bool]) -> Node | None:
    """Return what has to be tested of the rows that are only possible.

    Those are rows for which every settled part of an AND is true, and none of an OR; so these need
    not be tested again.
    """
    if not isinstance(part, AllOf | OneOf):
        return None if is_settled(part) else node_of(part)
    left = [each for each in part.parts if not is_settled(each)]
    if len(left) <= 1:
        return node_of(left[0]) if left else None
    return node_of(type(part)(tuple(left)))


def _facts(lookup: Lookup, queries: Sequence[SegmentQuery], answer: RowAnswer) -> LookupFacts:
    return LookupFacts(
        lookup.leaf,
        columns_of(lookup.node)[0],
        tuple(dict.fromkeys(each.index_name for each in queries)),
        tuple(dict.fromkeys(str(each.segment.kind) for each in queries)),
        len(queries),
        len(_coverage(queries)),
        num_rows(answer.possible),
        answer.is_exact,
    )
