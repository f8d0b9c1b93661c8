"""Filters and expressions: text, bound to a table, judged over batches of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from lance_core.errors import InvalidRequestError
from lance_core.expr.bind import Binder, require_value
from lance_core.expr.coerce import as_test
from lance_core.expr.dialect import parse_tokens
from lance_core.expr.evaluate import evaluate
from lance_core.expr.limits import go_on
from lance_core.expr.names import Names
from lance_core.expr.parameters import plain_parameters
from lance_core.expr.tokens import read_tokens
from lance_core.expr.tree import Literal
from lance_core.expr.walk import columns_of
from lance_core.file.arguments import checked_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lance_core.expr.limits import Check, FilterLimits
    from lance_core.expr.tree import Node
    from lance_core.schema.tree import LanceSchema


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """A value for every row.

    Attributes
    ----------
    text
        As it is spelled without needless blanks, with the values of parameters: equal texts mean
        the same.
    columns
        What it looks at, as paths, each once; batches have columns of these names.
    tree
        What it says.
    """

    text: str
    columns: tuple[str, ...]
    tree: Node

    @property
    def type(self) -> pa.DataType:
        """Type of the values."""
        return self.tree.type

    def evaluate(self, batch: pa.RecordBatch, check: Check = go_on) -> pa.Array:
        """Return the value for each row of a batch; `check` is called in between.

        Raises
        ------
        TypeMismatchError
            A value cannot be had as another type, or is divided by zero.
        """
        return evaluate(self.tree, batch, check)


@dataclass(frozen=True, slots=True, eq=False)
class Filter:
    """A test of every row.

    Attributes
    ----------
    text, columns
        See `Expression`.
    expression
        What it says.
    """

    text: str
    columns: tuple[str, ...]
    expression: Node

    def evaluate(self, batch: pa.RecordBatch, check: Check = go_on) -> pa.BooleanArray:
        """Tell for each row whether the filter is true, false or, as null, unknown.

        Parameters
        ----------
        batch
            Rows that have the columns.
        check
            Called between comparisons.

        Raises
        ------
        TypeMismatchError
            A value cannot be had as another type, or is divided by zero.
        """
        return evaluate(self.expression, batch, check)

    def holds(self, batch: pa.RecordBatch, check: Check = go_on) -> pa.BooleanArray:
        """Tell for each row whether the filter is true; parameters and errors as `evaluate`."""
        return pc.fill_null(self.evaluate(batch, check), fill_value=False)


def parse_filter(
    text: str,
    schema: LanceSchema | pa.Schema,
    *,
    params: Mapping[str, object] | None = None,
    others: Sequence[pa.Field] = (),
    limits: FilterLimits | None = None,
    check: Check = go_on,
) -> Filter:
    """Parse a filter and bind it to the columns of a table.

    Parameters
    ----------
    text
        The filter, in the language of `lance_core.expr`.
    schema
        Of the table.
    params
        Values for the ``$name``s of the text.
    others
        Columns beside those of the table that it may name.
    limits
        How large it may be; None = as it likes.
    check
        Called every few thousand characters.

    Raises
    ------
    InvalidRequestError
        It is none: tells the character, what was expected and what was found. Or it is too large:
        tells the limit.
    UnknownColumnError, TypeMismatchError
        A column is not there, or cannot be compared so; tells the character.

    Examples
    --------
    >>> schema = pa.schema({"x": pa.float64(), "name": pa.string()})
    >>> parsed = parse_filter("x > 1.5 AND NOT name IN ('a', 'b')", schema)
    >>> parsed.columns
    ('x', 'name')
    >>> parsed.holds(pa.record_batch({"x": [2.0, 3, 3], "name": ["c", "a", None]})).to_pylist()
    [True, False, False]
    """
    spelled, tree = _parsed(text, schema, params, others, limits, check)
    if isinstance(tree, Literal) and pa.types.is_null(tree.type):
        raise InvalidRequestError(
            f"the filter at character {tree.place}: expected a test, found NULL"
        )
    tree = as_test(tree)
    return Filter(spelled, columns_of(tree), tree)


def parse_expression(
    text: str,
    schema: LanceSchema | pa.Schema,
    *,
    params: Mapping[str, object] | None = None,
    others: Sequence[pa.Field] = (),
    limits: FilterLimits | None = None,
    check: Check = go_on,
) -> Expression:
    """Parse an expression of any type, as a filter is parsed; parameters and errors as there.

    Examples
    --------
    >>> doubled = parse_expression("price * 2", pa.schema({"price": pa.int32()}))
    >>> doubled.evaluate(pa.record_batch({"price": pa.array([1, None], pa.int32())})).to_pylist()
    [2, None]
    """
    spelled, tree = _parsed(text, schema, params, others, limits, check)
    require_value(tree)
    return Expression(spelled, columns_of(tree), tree)


def _parsed(
    text: str,
    schema: LanceSchema | pa.Schema,
    params: Mapping[str, object] | None,
    others: Sequence[pa.Field],
    limits: FilterLimits | None,
    check: Check,
) -> tuple[str, Node]:
    if not isinstance(text, str):
        raise InvalidRequestError(f'the filter is {text!r}; give text such as "id = 3"')
    if limits is not None and len(text) > limits.characters:
        raise InvalidRequestError(
            f"the filter has {len(text)} characters, the limit is {limits.characters}"
        )
    tokens = read_tokens(
        checked_text("the filter", text),
        {} if params is None else plain_parameters(params),
        limits,
        check,
    )
    tree = Binder(Names(schema, others), tokens, check).bind(
        parse_tokens(tokens.tokens, text, check)
    )
    return " ".join(tokens.words), tree
