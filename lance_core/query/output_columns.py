"""The columns of a plain answer: those of the table, and those that expressions make of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_core.errors import InvalidRequestError
from lance_core.expr.filter import parse_expression
from lance_core.expr.tree import Column
from lance_core.query.row_filter import LIMITS
from lance_core.scan.projection import Projection, PseudoColumn, resolve_projection

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lance_core.expr.filter import Expression
    from lance_core.expr.limits import Check
    from lance_core.query.request import ScanQuery
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


def output_columns(schema: LanceSchema, query: ScanQuery, check: Check) -> OutputColumns:
    """Resolve the columns of a plain query.

    Parameters
    ----------
    schema
        Of the table.
    check
        Called while expressions are read.

    Raises
    ------
    UnknownColumnError
        The table has no such column.
    TypeMismatchError
        An expression combines what does not go together.
    InvalidRequestError
        A column of the answer is named twice, or a text is no expression.
    """
    if query.columns is None or all(isinstance(each, str) for each in query.columns):
        names = None if query.columns is None else [str(each) for each in query.columns]
        stored = resolve_projection(schema, names, with_row_id=query.with_row_id)
        return OutputColumns(stored, stored.schema, None)
    return _computed(schema, query, check)


def _computed(schema: LanceSchema, query: ScanQuery, check: Check) -> OutputColumns:
    parsed: dict[str, Expression | str] = {}
    for each in (*(query.columns or ()), *_row_id(query)):
        name = each if isinstance(each, str) else each.name
        if name in parsed:
            raise InvalidRequestError(f'column "{name}" is asked for twice')
        parsed[name] = each if isinstance(each, str) else _parsed(schema, query, each.text, check)
    stored = resolve_projection(schema, _paths(list(parsed.values())))
    makers, fields = [], []
    for name, source in parsed.items():
        if isinstance(source, str):
            makers.append(_picked(source))
            fields.append(stored.schema.field(source).with_name(name))
        else:
            makers.append(source.evaluate)
            fields.append(pa.field(name, source.type))
    return OutputColumns(stored, pa.schema(fields), tuple(makers))


def _row_id(query: ScanQuery) -> tuple[str, ...]:
    name = PseudoColumn.ROW_ID.value
    named = {each if isinstance(each, str) else each.name for each in query.columns or ()}
    return (name,) if query.with_row_id and name not in named else ()


def _parsed(schema: LanceSchema, query: ScanQuery, text: str, check: Check) -> Expression | str:
    """Return an expression, or the path of a column that is shown as it is."""
    parsed = parse_expression(text, schema, params=query.params, limits=LIMITS, check=check)
    return parsed.tree.path if isinstance(parsed.tree, Column) else parsed


def _paths(sources: Sequence[Expression | str]) -> list[str]:
    """Return the columns that are read, each once."""
    paths: dict[str, None] = {}
    for each in sources:
        paths.update(dict.fromkeys((each,) if isinstance(each, str) else each.columns))
    return list(paths)


def _picked(path: str) -> Compute:
    return lambda batch, _: batch.column(path)
