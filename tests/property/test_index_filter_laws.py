"""What indices say about a filter, and what is left to test, is what the filter says itself."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from hypothesis import given, settings, strategies as st
from pyroaring import BitMap

from lance_core.cache.byte_cache import ByteCache
from lance_core.expr.index_query import AnyOf, Between, IndexLeaf, IsNull
from lance_core.expr.tree import And, Column, Compare, InSet, IsNull as IsNullNode, Literal, Not, Or
from lance_core.index.registry import IndexKind
from lance_core.index.scalar.answer import RowAnswer
from lance_core.io.memory_store import MemoryStore
from lance_core.query.current_rows import CurrentRows
from lance_core.query.filter_parts import AllOf, Lookup, lookups_of, parts_of
from lance_core.query.index_filter import ask_indices
from lance_core.query.scalar_indices import SegmentQuery
from lance_core.table.files import TableFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from lance_core.expr.index_query import LeafQuery
    from lance_core.expr.tree import Node

NUM_FRAGMENTS, NUM_ROWS = 3, 40
COLUMNS = ["a", "b", "c"]
INT = pa.int64()

Row = dict[str, int | None]
Rows = dict[int, list[Row]]

columns = st.sampled_from([Column(name, INT, 1) for name in [*COLUMNS, "not indexed"]])
values = st.integers(0, 4)


def literal(value: int) -> Literal:
    return Literal(pa.scalar(value, INT), 1)


tests = st.one_of(
    st.builds(
        lambda column, some: InSet(column, pa.array(some, INT), has_null=False, place=1),
        columns,
        st.lists(values, min_size=1, max_size=3),
    ),
    st.builds(
        lambda column, operator, value: Compare(operator, column, literal(value), 1),
        columns,
        st.sampled_from(["<", "<=", ">", ">="]),
        values,
    ),
    st.builds(lambda column: IsNullNode(column, 1), columns),
)
filters = st.recursive(
    tests,
    lambda inner: st.one_of(
        st.builds(lambda some: And(tuple(some), 1), st.lists(inner, min_size=2, max_size=3)),
        st.builds(lambda some: Or(tuple(some), 1), st.lists(inner, min_size=2, max_size=3)),
        st.builds(lambda child: Not(child, 1), inner),
    ),
    max_leaves=7,
)


def table_of(seed: int) -> Rows:
    """Return rows of several fragments."""
    choose = Random(seed).choice
    names = [*COLUMNS, "not indexed"]
    return {
        number: [{name: choose([None, *range(5)]) for name in names} for _ in range(NUM_ROWS)]
        for number in range(NUM_FRAGMENTS)
    }


def truth(node: Node, row: Row) -> bool | None:
    """Evaluate a filter for one row."""
    if isinstance(node, Not):
        inner = truth(node.child, row)
        return None if inner is None else not inner
    if isinstance(node, And | Or):
        decides = isinstance(node, Or)
        known = [truth(each, row) for each in node.children]
        return decides if decides in known else None if None in known else not decides
    assert isinstance(node, InSet | Compare | IsNullNode)
    column = node.left if isinstance(node, Compare) else node.child
    assert isinstance(column, Column)
    value = row[column.path]
    if isinstance(node, IsNullNode):
        return value is None
    return None if value is None else passes(query_of(node), value)


def query_of(node: InSet | Compare) -> AnyOf | Between:
    if isinstance(node, InSet):
        return AnyOf(node.values)
    assert isinstance(node.right, Literal)
    bound, includes = node.right.value, node.operator.endswith("=")
    if node.operator.startswith("<"):
        return Between(None, bound, includes_upper=includes)
    return Between(bound, None, includes_lower=includes)


def passes(query: LeafQuery, value: int | None) -> bool:
    if isinstance(query, IsNull):
        return value is None
    if value is None:
        return False
    if isinstance(query, AnyOf):
        return value in query.values.to_pylist()
    assert isinstance(query, Between)
    above = query.lower is None or query.lower.as_py() < value
    below = query.upper is None or value < query.upper.as_py()
    at_lower = query.lower is not None and query.includes_lower and query.lower.as_py() == value
    at_upper = query.upper is not None and query.includes_upper and query.upper.as_py() == value
    return (above or at_lower) and (below or at_upper)


def find_leaf(node: Node) -> IndexLeaf | None:
    column = node.left if isinstance(node, Compare) else getattr(node, "child", None)
    if not isinstance(column, Column) or column.path not in COLUMNS:
        return None
    query = IsNull() if isinstance(node, IsNullNode) else query_of(node)  # type: ignore[arg-type]
    return IndexLeaf(COLUMNS.index(column.path), (query,))


@dataclass
class Segment:
    """A segment that knows the rows of all fragments, whatever it covers."""

    table: Rows
    column: str
    is_exact: bool
    knows_nulls: bool
    kind: IndexKind = IndexKind.BTREE
    names_rows_by: str = "address"

    def find(self, wanted: Callable[[int | None], bool]) -> dict[int, BitMap]:
        found = {
            key: BitMap([i for i, row in enumerate(own) if wanted(row[self.column])])
            for key, own in self.table.items()
        }
        return {key: bitmap for key, bitmap in found.items() if bitmap}

    def search(self, query: LeafQuery, *, with_nulls: bool, check: object) -> RowAnswer:
        del check
        found = self.find(partial(passes, query))
        nulls = None
        if with_nulls and self.knows_nulls:
            nulls = {} if isinstance(query, IsNull) else self.find(lambda value: value is None)
        if self.is_exact:
            return RowAnswer.exact(found, nulls)
        # more than one row of each fragment is too many
        return RowAnswer.at_most(self.find(lambda v: v in {0, 2} or passes(query, v)), nulls)


@dataclass
class Indices:
    segments: Sequence[tuple[Segment, BitMap]]

    def skipped(self, field_ids: Iterable[int]) -> tuple[()]:
        del field_ids
        return ()

    def queries(self, leaf: IndexLeaf) -> list[SegmentQuery]:
        taken = BitMap()
        queries = []
        for segment, coverage in self.segments:
            if segment.column == COLUMNS[leaf.field_id] and coverage - taken:
                asked = SegmentQuery("i", segment, leaf.queries[0], coverage - taken)  # type: ignore[arg-type]
                queries.append(asked)
                taken |= coverage
        return queries


segments = st.lists(
    st.tuples(
        st.sampled_from(COLUMNS),
        st.booleans(),
        st.booleans(),
        st.sets(st.integers(0, NUM_FRAGMENTS - 1), min_size=1).map(BitMap),
    ),
    max_size=6,
)


@given(st.integers(0, 99), filters, segments)
@settings(max_examples=300)
def test_what_indices_leave_open_is_decided_by_the_rest(
    seed: int, node: Node, given_segments: list[Any]
) -> None:
    table = table_of(seed)
    indices = Indices(
        [
            (Segment(table, column, is_exact=exact, knows_nulls=nulls), coverage)
            for column, exact, nulls, coverage in given_segments
        ]
    )
    fragments = {key: SimpleNamespace(physical_rows=len(own)) for key, own in table.items()}
    snapshot: Any = SimpleNamespace(fragments_by_id=fragments)
    answer = ask_indices(
        parts_of(node, find_leaf),
        indices,  # type: ignore[arg-type]
        CurrentRows(TableFiles(ByteCache(0)), snapshot, None),
        BitMap(table),
        MemoryStore(),
        lambda: None,
    )
    seen = BitMap()
    for group in answer.groups:
        assert not seen & group.fragments
        seen |= group.fragments
        for number in group.fragments:
            own = table[number]
            expected = {i for i, row in enumerate(own) if truth(node, row) is True}
            certain = set(group.answer.certain.get(number, ()))
            open_rows = set(group.answer.unsure.get(number, ()))
            assert certain <= expected <= certain | open_rows
            if group.rest is None:
                assert certain == expected
            else:
                left = {i for i in open_rows if truth(group.rest, own[i]) is True}
                assert certain | left == expected
    assert answer.covered <= answer.fragments == seen


def test_equalities_of_a_column_are_asked_for_together() -> None:
    column = Column("a", INT, 1)
    node = Or(tuple(InSet(column, pa.array([i]), has_null=False, place=1) for i in range(3)), 1)
    part = parts_of(node, find_leaf)
    assert isinstance(part, Lookup)
    (query,) = part.leaf.queries
    assert isinstance(query, AnyOf)
    assert query.values.to_pylist() == [0, 1, 2]
    negated = parts_of(Not(node, 1), find_leaf)
    assert isinstance(negated, Lookup)
    assert negated.leaf.is_negated


def test_both_ends_of_a_range_are_asked_for_together() -> None:
    low, high = (Compare(op, Column("a", INT, 1), literal(n), 1) for op, n in ((">", 1), ("<=", 3)))
    other = IsNullNode(Column("b", INT, 1), 1)
    for order in ((low, other, high), (high, other, low)):
        part = parts_of(And(order, 1), find_leaf)
        assert isinstance(part, AllOf)
        ranges, nulls = lookups_of(part)
        (query,) = ranges.leaf.queries
        assert isinstance(query, Between)
        bounds = (query.lower, query.upper, query.includes_lower, query.includes_upper)
        assert bounds == (pa.scalar(1), pa.scalar(3), False, True)
        assert nulls.node is other
