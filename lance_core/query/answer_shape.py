"""The columns of a vector answer: which are stored, which are computed, and where all stand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_core.errors import InvalidRequestError
from lance_core.query.output_columns import has_expressions, output_columns
from lance_core.scan.projection import resolve_projection

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lance_core.expr.limits import Check
    from lance_core.query.output_columns import OutputColumns
    from lance_core.query.request import NamedExpression, VectorQuery
    from lance_core.scan.projection import Projection
    from lance_core.schema.tree import LanceSchema

DISTANCE = "_distance"
QUERY_INDEX = "query_index"
ROW_ID = "_rowid"

DISTANCE_FIELD = pa.field(DISTANCE, pa.float32())
SCORE_FIELD = pa.field("_score", pa.float32())
QUERY_INDEX_FIELD = pa.field(QUERY_INDEX, pa.int32(), nullable=False)


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
        fields.insert(0, QUERY_INDEX_FIELD)
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
    fields = [QUERY_INDEX_FIELD, *output.schema] if batched else list(output.schema)
    return AnswerShape(tuple(output.schema.names), output.stored, (), pa.schema(fields), output)


def shape_of_answer(
    schema: LanceSchema, request: VectorQuery, *, batched: bool, check: Check
) -> AnswerShape:
    """Return the shape that a request asks for; parameters and errors as `computed_shape`."""
    columns, with_row_id = request.columns, request.with_row_id
    if columns is None or not has_expressions(columns):
        names = None if columns is None else [str(each) for each in columns]
        return answer_shape(schema, names, with_row_id=with_row_id, batched=batched)
    return computed_shape(
        schema,
        columns,
        with_row_id=with_row_id,
        batched=batched,
        params=request.params,
        check=check,
    )
