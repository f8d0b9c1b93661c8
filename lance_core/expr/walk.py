"""Going through bound trees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.expr import tree

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from lance_core.expr.tree import Node


_BELOW: Mapping[type, tuple[str, ...]] = {
    tree.Column: (),
    tree.Literal: (),
    tree.Compare: ("left", "right"),
    tree.Distinct: ("left", "right"),
    tree.Arithmetic: ("left", "right"),
    tree.Between: ("child", "low", "high"),
    tree.Like: ("child", "pattern"),
    tree.Item: ("child", "index"),
}
"""Attributes that hold what is below a node; of others, it is ``child``."""
_OF_CHILDREN = (tree.And, tree.Or, tree.Items)


def children_of(node: Node) -> tuple[Node, ...]:
    """Return the nodes right below a node, in the order in which they are written."""
    if isinstance(node, _OF_CHILDREN):
        return node.children
    if isinstance(node, tree.Call):
        return node.arguments
    return tuple(getattr(node, name) for name in _BELOW.get(type(node), ("child",)))


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and all below it, parents first."""
    waiting = [node]
    while len(waiting) > 0:
        each = waiting.pop()
        yield each
        waiting.extend(reversed(children_of(each)))


def columns_of(node: Node) -> tuple[str, ...]:
    """Return the paths of the columns that an expression looks at, each once, in order."""
    paths: dict[str, None] = {}
    waiting = [node]
    while len(waiting) > 0:
        each = waiting.pop()
        if isinstance(each, tree.Column):
            paths[each.path] = None
        elif not isinstance(each, tree.Literal):
            waiting.extend(reversed(children_of(each)))
    return tuple(paths)
