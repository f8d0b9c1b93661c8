"""The columns of ranked rows: those of the table, what a search tells, and what is computed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_core.errors import InvalidRequestError
from lance_core.query.output_columns import output_columns
from lance_core.query.query_result import AnswerRows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lance_core.query.deadline import Deadline
    from lance_core.query.output_columns import OutputColumns
    from lance_core.query.request import NamedExpression
    from lance_core.scan.projection import Projection
    from lance_core.schema.tree import LanceSchema

DOC_INDEX_FIELD = pa.field("_doc_index", pa.list_(pa.field("item", pa.uint32())))
"""Which element of its list an answer's row is about, where each is found by itself."""


@dataclass(frozen=True, slots=True, eq=False)
class RankedShape:
    """The columns of an answer.

    Parameters
    ----------
    output
        What is taken of the rows that were found, and what is made of it.
    found
        What a search tells of rows, for these to name.
    """

    output: OutputColumns
    found: tuple[pa.Field, ...]

    @classmethod
    def of(
        cls,
        schema: LanceSchema,
        columns: Sequence[str | NamedExpression] | None,
        found: tuple[pa.Field, ...],
        deadline: Deadline,
        *,
        with_row_id: bool,
        params: Mapping[str, object] | None,
    ) -> RankedShape:
        """Resolve the columns of an answer.

        They are the columns asked for, behind them what a search tells unless it is among them,
        then ``_rowid`` if wanted and not asked for.

        Raises
        ------
        UnknownColumnError
            The table has no such column.
        InvalidRequestError
            A column is named twice, or the table has one of a name that the answer needs.
        """
        wanted: list[str | NamedExpression] = [*(schema.names if columns is None else columns)]
        names = {each if isinstance(each, str) else each.name for each in wanted}
        for field in found:
            if field.name in schema.names:
                raise InvalidRequestError(
                    f'the table has a column "{field.name}" of its own, which cannot stand beside'
                    " the one of the answer: rename it"
                )
        wanted += [field.name for field in found if field.name not in names]
        output = output_columns(
            schema,
            wanted,
            with_row_id=with_row_id,
            params=params,
            check=partial(deadline.check, "reading expressions"),
            others=found,
        )
        return cls(output, found)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.output.schema.names)

    @property
    def stored(self) -> Projection:
        """What is taken of the rows."""
        return self.output.stored

    def answer(
        self,
        stored: Sequence[pa.Array | pa.ChunkedArray],
        found: Sequence[pa.Array],
        deadline: Deadline,
    ) -> AnswerRows:
        """Put what was taken of rows and what a search told of them beside each other.

        Parameters
        ----------
        stored
            The stored columns of the rows found.
        found
            One array for each field of ``found``.
        deadline
            Looked at while columns are computed.
        """
        taken = [
            each.combine_chunks() if isinstance(each, pa.ChunkedArray) else each for each in stored
        ]
        schema = pa.schema([*self.stored.schema, *self.found])
        batch = pa.RecordBatch.from_arrays([*taken, *found], schema=schema)
        check = partial(deadline.check, "computing columns")
        return AnswerRows(self.output.schema, self.output.of(batch, check).columns)
