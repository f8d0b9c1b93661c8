"""A filter taken apart: tests that an index may answer, and the rest, under AND and OR.

NOT is led down to the tests first, which three-valued logic allows: so only tests that are negated
themselves need to know which rows are null.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from lance_core.expr.index_query import AnyOf, Between, IndexLeaf
from lance_core.expr.tree import And, Not, Or

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from lance_core.expr.tree import Node


@dataclass(frozen=True, slots=True, eq=False)
class Lookup:
    """A test of one column that an index may answer.

    Parameters
    ----------
    node
        The test as the filter has it, NOT around it included.
    leaf
        What to ask an index; says itself whether the answer is to be negated.
    """

    node: Node
    leaf: IndexLeaf


@dataclass(frozen=True, slots=True, eq=False)
class Rest:
    """A part that no index answers."""

    node: Node


@dataclass(frozen=True, slots=True, eq=False)
class AllOf:
    """Parts that must all be true."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True, eq=False)
class OneOf:
    """Parts of which one must be true."""

    parts: tuple[Part, ...]


Part: TypeAlias = Lookup | Rest | AllOf | OneOf


def parts_of(node: Node, find_leaf: Callable[[Node], IndexLeaf | None]) -> Part:
    """Take a filter apart.

    Parameters
    ----------
    node
        The filter. Its depth is bounded by whoever reads its text.
    find_leaf
        Returns what an index can be asked about a test, None if no index can answer it.
    """
    return _part(node, find_leaf, is_negated=False)


def _part(node: Node, find_leaf: Callable[[Node], IndexLeaf | None], *, is_negated: bool) -> Part:
    if isinstance(node, Not):
        return _part(node.child, find_leaf, is_negated=not is_negated)
    if isinstance(node, And | Or):
        parts = [_part(each, find_leaf, is_negated=is_negated) for each in node.children]
        return all_of(parts) if isinstance(node, And) is not is_negated else one_of(parts)
    leaf = find_leaf(node)
    own = Not(node, node.place) if is_negated else node
    if leaf is None:
        return Rest(own)
    return Lookup(own, IndexLeaf(leaf.field_id, leaf.queries, leaf.is_negated is not is_negated))


def all_of(parts: Iterable[Part]) -> Part:
    """Join parts that must all be true; tests of one column that an index can answer in one go."""
    flat: list[Part] = []
    for part in parts:
        flat += part.parts if isinstance(part, AllOf) else [part]
    joined = _joined_ranges(_joined_values(flat, And, is_negated=True))
    return joined[0] if len(joined) == 1 else AllOf(tuple(joined))


def one_of(parts: Iterable[Part]) -> Part:
    """Join parts of which one must be true; one that no index answers takes all with it."""
    flat: list[Part] = []
    for part in parts:
        flat += part.parts if isinstance(part, OneOf) else [part]
    if any(isinstance(part, Rest) for part in flat):
        return Rest(_joined_node(Or, flat))
    joined = _joined_values(flat, Or, is_negated=False)
    return joined[0] if len(joined) == 1 else OneOf(tuple(joined))


def node_of(part: Part) -> Node:
    """Return a part as a filter of its own."""
    if isinstance(part, AllOf | OneOf):
        return _joined_node(And if isinstance(part, AllOf) else Or, part.parts)
    return part.node


def _joined_node(join: type[And | Or], parts: Sequence[Part]) -> Node:
    nodes = tuple(node_of(each) for each in parts)
    return nodes[0] if len(nodes) == 1 else join(nodes, nodes[0].place)


def lookups_of(part: Part) -> Iterator[Lookup]:
    """Yield the tests that an index may answer."""
    if isinstance(part, Lookup):
        yield part
    elif not isinstance(part, Rest):
        for each in part.parts:
            yield from lookups_of(each)


def is_answerable(part: Part, is_answered: Callable[[Lookup], bool]) -> bool:
    """Tell whether indices say something about all of a part."""
    if isinstance(part, AllOf | OneOf):
        return all(is_answerable(each, is_answered) for each in part.parts)
    return isinstance(part, Lookup) and is_answered(part)


def answerable(part: Part, is_answered: Callable[[Lookup], bool]) -> Part | None:
    """Return what of a part indices say something about; None if that is nothing.

    It holds for every row for which the whole part does, and maybe for more.
    """
    if isinstance(part, Lookup):
        return part if is_answered(part) else None
    if isinstance(part, Rest):
        return None
    known = [answerable(each, is_answered) for each in part.parts]
    left = [each for each in known if each is not None]
    if isinstance(part, OneOf):
        return OneOf(tuple(left)) if len(left) == len(known) else None
    if len(left) <= 1:
        return left[0] if left else None
    return AllOf(tuple(left))


def _joined_values(parts: Iterable[Part], join: type[And | Or], *, is_negated: bool) -> list[Part]:
    """Ask for the values of equalities of one column together: ``a = 1 OR a = 2``."""
    joined: list[Part] = []
    by_field: dict[int, list[tuple[Lookup, pa.Array]]] = {}
    for part in parts:
        values = _values_of(part, is_negated=is_negated)
        if isinstance(part, Lookup) and values is not None:
            by_field.setdefault(part.leaf.field_id, []).append((part, values))
        else:
            joined.append(part)
    for field_id, own in by_field.items():
        if len(own) == 1:
            joined.append(own[0][0])
            continue
        query = AnyOf(pa.concat_arrays([values for _, values in own]))
        node = _joined_node(join, [lookup for lookup, _ in own])
        joined.append(Lookup(node, IndexLeaf(field_id, (query,), is_negated)))
    return joined


def _values_of(part: Part, *, is_negated: bool) -> pa.Array | None:
    if not isinstance(part, Lookup) or part.leaf.is_negated is not is_negated:
        return None
    query = part.leaf.queries[0]
    return query.values if isinstance(query, AnyOf) and len(part.leaf.queries) == 1 else None


def _joined_ranges(parts: list[Part]) -> list[Part]:
    """Ask for a range of one column as a whole: ``a > 1 AND a < 5``."""
    joined: list[Part] = []
    open_ranges: dict[tuple[int, bool], list[tuple[int, Lookup, Between]]] = {}
    for part in parts:
        side = _open_side(part)
        if not isinstance(part, Lookup) or side is None:
            joined.append(part)
            continue
        has_lower, query = side
        waiting = open_ranges.setdefault((part.leaf.field_id, not has_lower), [])
        if not waiting:
            own = open_ranges.setdefault((part.leaf.field_id, has_lower), [])
            own.append((len(joined), part, query))
            joined.append(part)
            continue
        place, other, other_query = waiting.pop()
        lower, upper = (query, other_query) if has_lower else (other_query, query)
        both = Between(lower.lower, upper.upper, lower.includes_lower, upper.includes_upper)
        node = _joined_node(And, [other, part])
        joined[place] = Lookup(node, IndexLeaf(part.leaf.field_id, (both,)))
    return joined


def _open_side(part: Part) -> tuple[bool, Between] | None:
    """Return whether a range has a lower bound, if it has just one bound."""
    if not isinstance(part, Lookup) or part.leaf.is_negated or len(part.leaf.queries) != 1:
        return None
    query = part.leaf.queries[0]
    if not isinstance(query, Between) or (query.lower is None) is (query.upper is None):
        return None
    return query.lower is not None, query
