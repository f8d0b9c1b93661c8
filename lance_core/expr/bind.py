"""Parse trees bound to columns: the whitelist of what a filter may hold.

Every kind of node of sqlglot that is not listed here is refused, with its place.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, NoReturn

from sqlglot import exp

from lance_core.errors import InvalidRequestError
from lance_core.expr import bind_calls, bind_tests, bind_values
from lance_core.expr.limits import MAX_TREE_DEPTH
from lance_core.expr.places import place_of
from lance_core.expr.tokens import fail
from lance_core.expr.tree import Call

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from lance_core.expr.limits import Check
    from lance_core.expr.names import Names
    from lance_core.expr.tokens import Tokens
    from lance_core.expr.tree import Node

_NODES_BETWEEN_CHECKS = 1024


class Binder:
    """Walks through one parse tree.

    Parameters
    ----------
    names
        Columns that may be named.
    tokens
        What placeholders stand for.
    check
        Called every thousand nodes.

    Attributes
    ----------
    now
        The one time that all of the filter takes for the present.
    """

    def __init__(self, names: Names, tokens: Tokens, check: Check) -> None:
        self.names = names
        self.tokens = tokens
        self._check = check
        self._depth = self._num_nodes = 0
        self.now = dt.datetime.now(dt.UTC)

    def bind(self, node: exp.Expr) -> Node:
        """Return the bound form of a node.

        Raises
        ------
        InvalidRequestError, UnknownColumnError, TypeMismatchError
            The dialect has no such thing, no such column is there, or types do not fit; tells the
            character.
        """
        while isinstance(node, exp.Paren):
            node = node.this
        bind = _BIND.get(type(node))
        if bind is None:
            self._refuse(node)
        self._depth += 1
        self._num_nodes += 1
        if self._depth > MAX_TREE_DEPTH:
            raise InvalidRequestError(
                f"the filter at character {place_of(node)}: more than {MAX_TREE_DEPTH} operators"
                " are inside one another, which is the limit"
            )
        if self._num_nodes % _NODES_BETWEEN_CHECKS == 0:
            self._check()
        made = bind(self, node)
        self._depth -= 1
        return made

    def left(self, node: exp.Expr) -> Node:
        """Bind the left operand of a comparison, which may be one itself: ``a < b = c``."""
        if isinstance(node, _NEEDS_BRACKETS) and not isinstance(node, _PATTERNS):
            return self.bind(node)
        return self.operand(node)

    def operand(self, node: exp.Expr) -> Node:
        """Bind an operand; a test has to stand in brackets to be one."""
        if isinstance(node, _NEEDS_BRACKETS):
            fail(
                place_of(node),
                "a value",
                "a test",
                "put tests that are compared in brackets",
            )
        return self.inside(node)

    def inside(self, node: exp.Expr) -> Node:
        """Bind what stands alone between brackets or commas, so may be a test as well."""
        return require_value(self.bind(node))

    def _refuse(self, node: exp.Expr) -> NoReturn:
        name = type(node).__name__.upper()
        fail(place_of(node), "a column, a literal, an operator or a function", name)


def require_value(node: Node) -> Node:
    """Refuse what is only a test, ``regexp_match``, where a value is asked for."""
    if isinstance(node, Call) and node.function.name == "regexp_match":
        fail(node.place, "a value", "regexp_match", "use regexp_like, which is true or false")
    return node


_PATTERNS = (exp.Like, exp.ILike, exp.Escape, exp.And, exp.Or)
_NEEDS_BRACKETS = (exp.Predicate, exp.Not, exp.Escape, exp.And, exp.Or)
_BIND: Mapping[type, Callable[[Binder, Any], Node]] = {
    exp.And: bind_tests.joined,
    exp.Or: bind_tests.joined,
    exp.Not: bind_tests.negated,
    **dict.fromkeys(bind_tests.OPERATORS, bind_tests.compared),
    exp.Is: bind_tests.is_something,
    exp.NullSafeEQ: bind_tests.distinct,
    exp.NullSafeNEQ: bind_tests.distinct,
    exp.In: bind_tests.listed,
    exp.Between: bind_tests.between,
    exp.Like: bind_tests.like,
    exp.ILike: bind_tests.like,
    exp.Escape: bind_tests.escaped,
    exp.Column: bind_values.column,
    exp.Dot: bind_values.column,
    exp.Bracket: bind_values.bracket,
    exp.Array: bind_values.items,
    exp.Literal: bind_values.literal,
    exp.Boolean: bind_values.constant,
    exp.Null: bind_values.constant,
    exp.HexString: bind_values.binary,
    exp.Parameter: bind_values.parameter,
    exp.Neg: bind_values.negative,
    exp.Cast: bind_values.cast,
    exp.TryCast: bind_values.cast,
    **dict.fromkeys(bind_values.OPERATORS, bind_values.arithmetic),
    exp.Anonymous: bind_calls.call,
}
