"""The answer of a query: rows, facts and the plan that made them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa

from lance_core.encodings.arrow_arrays import PlainValues, as_array
from lance_core.errors import InvalidRequestError
from lance_core.query.output_columns import output_columns
from lance_core.scan.projection import resolve_projection

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from lance_core.expr.limits import Check
    from lance_core.index.candidates import Candidates
    from lance_core.query.measure import Measures
    from lance_core.query.output_columns import OutputColumns
    from lance_core.query.plan import Plan
    from lance_core.query.request import NamedExpression
    from lance_core.query.stats import QueryStats
    from lance_core.scan.projection import Projection
    from lance_core.schema.tree import LanceSchema

T = TypeVar("T", bound=np.generic)

DISTANCE = "_distance"
QUERY_INDEX = "query_index"
ROW_ID = "_rowid"

DISTANCE_FIELD = pa.field(DISTANCE, pa.float32())
_QUERY_INDEX_FIELD = pa.field(QUERY_INDEX, pa.int32(), nullable=False)


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


@dataclass(frozen=True, slots=True, eq=False)
class AnswerShape:
    """The columns of a vector answer: those of the table to take, and where all of them stand.

    ``places[i]`` is the place of column ``i`` among the stored ones, None for ``_distance``. Of a
    batch, ``schema`` begins with ``query_index``, which neither ``columns`` nor ``places`` name.
    Where columns are computed, ``output`` makes all of them, and there are no places.
    """

    columns: tuple[str, ...]
    stored: Projection
    places: tuple[int | None, ...]
    schema: pa.Schema
    output: OutputColumns | None = None


def answer_shape(
    schema: LanceSchema, columns: Sequence[str] | None, *, with_row_id: bool, batched: bool
) -> AnswerShape:
    """Resolve the columns of a vector answer.

    They are the columns asked for, ``_distance`` behind them unless it was asked for itself, then
    ``_rowid`` if wanted and not asked for (rest-api page, section 5.5). ``query_index`` of a batch
    comes first in any case.

    Raises
    ------
    UnknownColumnError
        The table has no such column.
    InvalidRequestError
        A column is named twice, or a column of the table has a name that the answer needs.
    """
    names = list(schema.names if columns is None else columns)
    for taken in (DISTANCE, QUERY_INDEX) if batched else (DISTANCE,):
        if taken in names and taken in schema.names:
            raise InvalidRequestError(
                f'the table has a column "{taken}" of its own, which cannot stand beside the one'
                " of the answer: name the other columns"
            )
    if batched and QUERY_INDEX in names:
        names.remove(QUERY_INDEX)
    if DISTANCE not in names:
        names.append(DISTANCE)
    if with_row_id and ROW_ID not in names:
        names.append(ROW_ID)
    stored_names = [name for name in names if name != DISTANCE]
    stored = resolve_projection(schema, stored_names)
    if names.count(DISTANCE) > 1:
        raise InvalidRequestError(f'column "{DISTANCE}" is asked for twice')
    places = [None if name == DISTANCE else stored_names.index(name) for name in names]
    fields = [DISTANCE_FIELD if at is None else stored.schema.field(at) for at in places]
    if batched:
        fields.insert(0, _QUERY_INDEX_FIELD)
    return AnswerShape(tuple(names), stored, tuple(places), pa.schema(fields))


def computed_shape(
    schema: LanceSchema,
    columns: Sequence[str | NamedExpression],
    *,
    with_row_id: bool,
    batched: bool,
    params: Mapping[str, object] | None,
    check: Check,
) -> AnswerShape:
    """Resolve the columns of a vector answer some of which are computed.

    Where columns stand and what is refused is as of `answer_shape`; expressions may name
    ``_distance``, and are bound with ``params`` for ``$name``.
    """
    wanted = [each for each in columns if not batched or each != QUERY_INDEX]
    names = [each if isinstance(each, str) else each.name for each in wanted]
    if batched and QUERY_INDEX in names:
        raise InvalidRequestError(f'column "{QUERY_INDEX}" of a batch cannot be computed')
    if DISTANCE not in names:
        wanted.append(DISTANCE)
        names.append(DISTANCE)
    if DISTANCE in schema.names:
        raise InvalidRequestError(
            f'the table has a column "{DISTANCE}" of its own: columns cannot be computed beside it'
        )
    output = output_columns(
        schema,
        wanted,
        with_row_id=with_row_id,
        params=params,
        check=check,
        others=(DISTANCE_FIELD,),
    )
    fields = [_QUERY_INDEX_FIELD, *output.schema] if batched else list(output.schema)
    return AnswerShape(tuple(output.schema.names), output.stored, (), pa.schema(fields), output)


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
