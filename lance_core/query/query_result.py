"""The answer of a query: rows, facts and the plan that made them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa

from lance_core.encodings.arrow_arrays import PlainValues, as_array
from lance_core.query.answer_shape import DISTANCE_FIELD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.expr.limits import Check
    from lance_core.index.candidates import Candidates
    from lance_core.query.answer_shape import AnswerShape
    from lance_core.query.measure import Measures
    from lance_core.query.output_columns import OutputColumns
    from lance_core.query.plan import Plan
    from lance_core.query.stats import QueryStats

T = TypeVar("T", bound=np.generic)


@dataclass(frozen=True, slots=True, eq=False)
class AnswerRows:
    """The columns of an answer, all of one length, with their schema.

    What a table says of itself, without the checks that making one brings: most answers are few
    rows that are turned into bytes at once.
    """

    schema: pa.Schema
    columns: Sequence[pa.Array | pa.ChunkedArray | PlainValues]

    @property
    def num_rows(self) -> int:
        """Length of every column; every answer has one."""
        return len(self.columns[0])

    def to_table(self) -> pa.Table:
        """Return the rows as a table."""
        return pa.Table.from_arrays(list(map(as_array, self.columns)), schema=self.schema)


@dataclass(frozen=True, slots=True, eq=False)
class QueryResult:
    """Rows of one query with what was done for them.

    ``measures`` are empty unless the run was to be measured.
    """

    rows: pa.Table | AnswerRows
    stats: QueryStats
    plan: Plan
    measures: Measures

    @property
    def table(self) -> pa.Table:
        """The rows as a table."""
        return self.rows.to_table() if isinstance(self.rows, AnswerRows) else self.rows


def joined(parts: Sequence[NDArray[T]]) -> NDArray[T]:
    """Return the parts one after another; a single one as it is."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def vector_answer(
    stored: Sequence[pa.Array | pa.ChunkedArray | PlainValues],
    found: Sequence[Candidates],
    shape: AnswerShape,
    *,
    batched: bool,
    check: Check,
) -> AnswerRows:
    """Put distances beside the rows that were taken, and compute what is to be computed.

    Parameters
    ----------
    stored
        The stored columns of all rows found, query by query.
    found
        Per query vector its rows, nearest first.
    shape
        Columns of the answer.
    batched
        Begin with the column ``query_index``.
    check
        Called while columns are computed.
    """
    ranked = joined([each.distances for each in found])
    distances = PlainValues(ranked.view(np.uint8), len(ranked), DISTANCE_FIELD.type)
    arrays: Sequence[pa.Array | pa.ChunkedArray | PlainValues]
    if shape.output is None:
        arrays = [distances if place is None else stored[place] for place in shape.places]
    else:
        arrays = _computed(shape.output, [*stored, distances], check)
    if not batched:
        return AnswerRows(shape.schema, arrays)
    counts = [len(each) for each in found]
    owners = pa.array(np.repeat(np.arange(len(found), dtype=np.int32), counts))
    return AnswerRows(shape.schema, [owners, *arrays])


def _computed(
    output: OutputColumns,
    columns: Sequence[pa.Array | pa.ChunkedArray | PlainValues],
    check: Check,
) -> list[pa.Array]:
    whole = [as_array(each) for each in columns]
    flat = [each.combine_chunks() if isinstance(each, pa.ChunkedArray) else each for each in whole]
    schema = output.stored.schema.append(DISTANCE_FIELD)
    made: list[pa.Array] = output.of(pa.RecordBatch.from_arrays(flat, schema=schema), check).columns
    return made
