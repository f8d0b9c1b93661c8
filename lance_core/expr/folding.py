"""Expressions of nothing but literals, computed while a filter is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from lance_core.expr.evaluate import evaluate
from lance_core.expr.limits import go_on
from lance_core.expr.tree import Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance_core.expr.tree import Node

_ONE_ROW = pa.record_batch({"": pa.array([0], pa.int8())})


def folded(node: Node, children: Sequence[Node]) -> Node:
    """Return the value of an expression of nothing but literals; other expressions as they are.

    Raises
    ------
    TypeMismatchError
        It has none.
    """
    if not all(isinstance(each, Literal) for each in children):
        return node
    return Literal(evaluate(node, _ONE_ROW, go_on)[0], node.place)
