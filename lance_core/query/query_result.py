"""The answer of a query: rows, facts and the plan that made them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance_core.index.candidates import Candidates
    from lance_core.query.measure import Measures
    from lance_core.query.plan import Plan
    from lance_core.query.stats import QueryStats

DISTANCE = "_distance"
QUERY_INDEX = "query_index"
ROW_ID = "_rowid"

_DISTANCE_FIELD = pa.field(DISTANCE, pa.float32())
_QUERY_INDEX_FIELD = pa.field(QUERY_INDEX, pa.int32(), nullable=False)


@dataclass(frozen=True, slots=True, eq=False)
class QueryResult:
    """Rows of one query with what was done for them."""

    table: pa.Table
    stats: QueryStats
    plan: Plan
    measures: Measures


def answer_columns(
    columns: Sequence[str] | None, schema_names: Sequence[str], *, with_row_id: bool
) -> tuple[str, ...]:
    """Return the columns of a vector answer in order.

    The columns asked for, ``_distance`` behind them unless it was asked for itself, then ``_rowid``
    if wanted and not asked for (rest-api page, section 5.5).
    """
    names = list(schema_names if columns is None else columns)
    if DISTANCE not in names:
        names.append(DISTANCE)
    if with_row_id and ROW_ID not in names:
        names.append(ROW_ID)
    return tuple(names)


def stored_columns(columns: Sequence[str]) -> tuple[str, ...]:
    """Return those columns of an answer that are taken from the table."""
    return tuple(name for name in columns if name != DISTANCE)


def vector_answer(
    rows: pa.Table, found: Sequence[Candidates], columns: Sequence[str], *, batched: bool
) -> pa.Table:
    """Put distances beside the rows that were taken.

    Parameters
    ----------
    rows
        The stored columns of all rows found, query by query.
    found
        Per query vector its rows, nearest first.
    columns
        All columns of the answer in order.
    batched
        Begin with the column ``query_index``.
    """
    distances = pa.array(np.concatenate([each.distances for each in found]))
    arrays: list[pa.ChunkedArray | pa.Array] = []
    fields: list[pa.Field] = []
    if batched:
        counts = [len(each) for each in found]
        arrays.append(pa.array(np.repeat(np.arange(len(found), dtype=np.int32), counts)))
        fields.append(_QUERY_INDEX_FIELD)
    for name in columns:
        if name == DISTANCE:
            arrays.append(distances)
            fields.append(_DISTANCE_FIELD)
        else:
            place = rows.schema.get_field_index(name)
            arrays.append(rows.column(place))
            fields.append(rows.schema.field(place))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields, metadata=rows.schema.metadata))
