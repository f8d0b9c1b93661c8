"""Where in the text a node of a parse tree begins."""

from __future__ import annotations

from sqlglot import exp

_KNOW_THEIR_PLACE = frozenset(
    (
        *(exp.Literal, exp.Boolean, exp.Null, exp.HexString),
        *(exp.Identifier, exp.Anonymous, exp.Paren),
    )
)


def place_of(node: exp.Expr) -> int:
    """Return the character that a node begins at, from 1: that of its leftmost part."""
    while type(node) not in _KNOW_THEIR_PLACE:
        below = (
            next(iter(node.parts), None) if isinstance(node, exp.Column) else node.args.get("this")
        )
        if isinstance(node, exp.Array) and len(node.expressions) > 0:
            below = node.expressions[0]
        if not isinstance(below, exp.Expr):
            break
        node = below
    start: int = node.meta.get("start", 0)
    return start + 1
