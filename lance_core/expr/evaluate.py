"""Bound trees over batches of rows, in three-valued logic."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from lance_core.errors import TypeMismatchError
from lance_core.expr import tree
from lance_core.expr.arithmetic import compute, negate
from lance_core.expr.compare import compare, is_distinct, is_in
from lance_core.expr.convert import convert
from lance_core.expr.like import like
from lance_core.expr.lists import as_array, item_at, made_list
from lance_core.expr.made_size import require_size
from lance_core.expr.names import plain_type

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from lance_core.expr.convert import Values
    from lance_core.expr.limits import Check


def evaluate(node: tree.Node, batch: pa.RecordBatch, check: Check) -> pa.Array:
    """Return the value of an expression for each row of a batch.

    Parameters
    ----------
    node
        The expression.
    batch
        Rows, with a column for each path.
    check
        Called between comparisons.

    Returns
    -------
    pa.Array
        Shape ``(num_rows,)``, of the type of the node.

    Raises
    ------
    TypeMismatchError, InvalidRequestError
        A value cannot be had as another type, or is divided by zero; tells the character.
    """
    values = _Evaluation(batch, check).of(node)
    return as_array(values, batch.num_rows)


_ROW_NUMBER = tree.Literal(pa.scalar(0), 1)
"""What functions without arguments are given, once per row."""


_PLACE = "the filter at character"


class _Evaluation:
    """One batch that expressions are evaluated over."""

    def __init__(self, batch: pa.RecordBatch, check: Check) -> None:
        self._batch = batch
        self._check = check

    def of(self, node: tree.Node) -> Values:
        try:
            return _EVALUATE[type(node)](self, node)
        except TypeMismatchError as error:
            if str(error).startswith(_PLACE):  # told by what lies below
                raise
            raise TypeMismatchError(f"{_PLACE} {node.place}: {error}") from error
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            told = str(error).splitlines()[0]
            raise TypeMismatchError(f"{_PLACE} {node.place}: {told}") from None

    def column(self, node: tree.Column) -> Values:
        return plain_values(self._batch[node.path])

    def joined(self, node: tree.And | tree.Or) -> Values:
        join = pc.and_kleene if isinstance(node, tree.And) else pc.or_kleene
        first, *others = node.children
        found = self.of(first)
        for each in others:
            self._check()
            found = join(found, self.of(each))
        return found

    def compared(self, node: tree.Compare) -> Values:
        return compare(node.operator, self.of(node.left), self.of(node.right))

    def between(self, node: tree.Between) -> Values:
        child = self.of(node.child)
        return pc.and_kleene(
            compare(">=", child, self.of(node.low)), compare("<=", child, self.of(node.high))
        )

    def truth(self, node: tree.IsTruth) -> Values:
        child = self.of(node.child)
        return pc.fill_null(child if node.truth else pc.invert(child), fill_value=False)

    def cast(self, node: tree.Cast) -> Values:
        child = self.of(node.child)
        return convert(child, node.type, gives_null=node.gives_null)

    def arithmetic(self, node: tree.Arithmetic) -> Values:
        left, right = self.of(node.left), self.of(node.right)
        if node.operator == "||":
            require_size(_size(left, self._batch.num_rows) + _size(right, self._batch.num_rows))
        return compute(node.operator, left, right, node.type)

    def call(self, node: tree.Call) -> Values:
        self._check()
        first, *others = (self.of(each) for each in (node.arguments or (_ROW_NUMBER,)))
        num_rows = self._batch.num_rows
        made = node.function.evaluate(as_array(first, num_rows), others)
        return convert(made, node.type)

    def part(self, node: tree.Part) -> Values:
        child = self.of(node.child)
        made = pc.struct_field(child, child.type.get_field_index(node.name))
        return plain_values(made) if isinstance(made, pa.Array) else made

    def items(self, node: tree.Items) -> Values:
        values = [self.of(each) for each in node.children]
        return made_list(values, node.type, self._batch.num_rows)


_EVALUATE: Mapping[type, Callable[[_Evaluation, Any], Values]] = {
    tree.Column: _Evaluation.column,
    tree.Literal: lambda _, node: node.value,
    tree.And: _Evaluation.joined,
    tree.Or: _Evaluation.joined,
    tree.Not: lambda self, node: pc.invert(self.of(node.child)),
    tree.Compare: _Evaluation.compared,
    tree.Distinct: lambda self, node: is_distinct(self.of(node.left), self.of(node.right)),
    tree.Between: _Evaluation.between,
    tree.InSet: lambda self, node: is_in(self.of(node.child), node.values, has_null=node.has_null),
    tree.IsNull: lambda self, node: pc.is_null(self.of(node.child)),
    tree.IsTruth: _Evaluation.truth,
    tree.Like: lambda self, node: like(
        self.of(node.child),
        self.of(node.pattern),
        ignores_case=node.ignores_case,
        check=self._check,
    ),
    tree.Cast: _Evaluation.cast,
    tree.Arithmetic: _Evaluation.arithmetic,
    tree.Negative: lambda self, node: negate(self.of(node.child)),
    tree.Call: _Evaluation.call,
    tree.Part: _Evaluation.part,
    tree.Item: lambda self, node: item_at(
        self.of(node.child), self.of(node.index), self._batch.num_rows
    ),
    tree.Items: _Evaluation.items,
}


def _size(values: Values, num_rows: int) -> int:
    if isinstance(values, pa.Array):
        return int(values.nbytes)
    return int(pa.array([values], values.type).nbytes) * num_rows


def plain_values(column: pa.Array) -> pa.Array:
    """Return the values of a column without extension, dictionary or view."""
    if isinstance(column, pa.ExtensionArray):
        return plain_values(column.storage)
    if pa.types.is_dictionary(column.type):
        return plain_values(column.dictionary_decode())
    kind = plain_type(column.type)
    return column if column.type == kind else column.cast(kind)
