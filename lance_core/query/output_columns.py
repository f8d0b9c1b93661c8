"""The columns of an answer: those that are read, and those that expressions make of them."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_core.errors import InvalidRequestError
from lance_core.expr.filter import Expression, parse_expression
from lance_core.expr.tree import Column
from lance_core.query.row_filter import LIMITS
from lance_core.scan.projection import Projection, PseudoColumn, resolve_projection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from lance_core.expr.limits import Check
    from lance_core.query.request import NamedExpression
    from lance_core.schema.tree import LanceSchema

    Compute = Callable[[pa.RecordBatch, Check], pa.Array]
    """Makes a column of the columns that were read."""


@dataclass(frozen=True, slots=True, eq=False)
class OutputColumns:
    """What is read, and what is made of it.

    Attributes
    ----------
    stored
        What is read.
    schema
        Of the answer.
    computed
        What makes each column of the answer; None = it is what was read.
    """

    stored: Projection
    schema: pa.Schema
    computed: tuple[Compute, ...] | None

    def of(self, batch: pa.RecordBatch, check: Check) -> pa.RecordBatch:
        """Return the answer's columns of some rows that were read."""
        if self.computed is None:
            return batch
        arrays = [compute(batch, check) for compute in self.computed]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def has_expressions(columns: Sequence[str | NamedExpression] | None) -> bool:
    """Tell whether a column of an answer is computed."""
    return columns is not None and not all(isinstance(each, str) for each in columns)


def output_columns(
    schema: LanceSchema,
    columns: Sequence[str | NamedExpression] | None,
    *,
    with_row_id: bool,
    params: Mapping[str, object] | None,
    check: Check,
    others: Sequence[pa.Field] = (),
) -> OutputColumns:
    """Resolve the columns of an answer.

    Parameters
    ----------
    schema
        Of the table.
    columns
        By name or computed; None = all columns of the table.
    with_row_id
        Add ``_rowid`` at the end unless it is among them.
    params
        Values of the ``$name`` in expressions.
    check
        Called while expressions are read.
    others
        Columns that rows have beside those of the table, to be named as those are.

    Raises
    ------
    UnknownColumnError
        The table has no such column.
    TypeMismatchError
        An expression combines what does not go together.
    InvalidRequestError
        A column of the answer is named twice, or a text is no expression.
    """
    if columns is None or not (has_expressions(columns) or others):
        names = None if columns is None else [str(each) for each in columns]
        stored = resolve_projection(schema, names, with_row_id=with_row_id)
        return OutputColumns(stored, stored.schema, None)
    sources: dict[str, Expression | str] = {}
    for each in columns:
        name = each if isinstance(each, str) else each.name
        if name in sources:
            raise InvalidRequestError(f'column "{name}" is asked for twice')
        if isinstance(each, str):
            sources[name] = each
        else:
            with _told_of(name):
                sources[name] = _expression(schema, each.text, params, check, others)
    if with_row_id:
        sources.setdefault(PseudoColumn.ROW_ID.value, PseudoColumn.ROW_ID.value)
    return _made_of(schema, sources, others)


def _expression(
    schema: LanceSchema,
    text: str,
    params: Mapping[str, object] | None,
    check: Check,
    others: Sequence[pa.Field],
) -> Expression | str:
    """Return an expression, or the path of a column that is shown as it is."""
    parsed = parse_expression(
        text, schema, params=params, others=others, limits=LIMITS, check=check
    )
    return parsed.tree.path if isinstance(parsed.tree, Column) else parsed


def _made_of(
    schema: LanceSchema,
    sources: Mapping[str, Expression | str],
    others: Sequence[pa.Field],
) -> OutputColumns:
    beside = {each.name: each for each in others}
    stored = resolve_projection(
        schema, [path for path in _paths(sources.values()) if path not in beside]
    )
    makers: list[Compute] = []
    fields: list[pa.Field] = []
    for name, source in sources.items():
        if isinstance(source, Expression):
            makers.append(_computed(name, source))
            fields.append(pa.field(name, source.type))
        else:
            makers.append(_picked(source))
            field = beside[source] if source in beside else stored.schema.field(source)
            fields.append(field.with_name(name))
    return OutputColumns(stored, pa.schema(fields), tuple(makers))


def _paths(sources: Iterable[Expression | str]) -> list[str]:
    """Return the columns that are looked at, each once."""
    paths: dict[str, None] = {}
    for each in sources:
        paths.update(dict.fromkeys((each,) if isinstance(each, str) else each.columns))
    return list(paths)


def _computed(name: str, source: Expression) -> Compute:
    def compute(batch: pa.RecordBatch, check: Check) -> pa.Array:
        with _told_of(name):
            return source.evaluate(batch, check)

    return compute


@contextmanager
def _told_of(name: str) -> Iterator[None]:
    """Say in errors which column they are about; places in its text stay."""
    try:
        yield
    except InvalidRequestError as error:
        error.args = (f'column "{name}": {error}'.replace("the filter", "the expression", 1),)
        raise


def _picked(path: str) -> Compute:
    return lambda batch, _: batch.column(path)
