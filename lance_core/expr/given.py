"""What placeholders of a parse tree stand for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from lance_core.expr.parameters import parameter_values

if TYPE_CHECKING:
    from lance_core.expr.convert import Values
    from lance_core.expr.tokens import Tokens


def given_of(tokens: Tokens, node: exp.Expr) -> Values | None:
    """Return the value that a placeholder stands for, an array if it is a list; else None."""
    if not isinstance(node, exp.Parameter):
        return None
    given = tokens.given[int(node.this.name)]
    return parameter_values(given.value, given.place)


def is_parameter(tokens: Tokens, node: exp.Expr) -> bool:
    """Whether a placeholder is a parameter, not a list that was cut out of the text."""
    if not isinstance(node, exp.Parameter):
        return False
    return not isinstance(tokens.given[int(node.this.name)].value, pa.Array)
