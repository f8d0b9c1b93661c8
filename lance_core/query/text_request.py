"""The request for the rows whose texts fit some words best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lance_core.errors import InvalidRequestError
from lance_core.index.text.queries import TextNode
from lance_core.query.request import all_texts, column_names
from lance_core.query.request_checks import (
    check_columns,
    check_filter,
    check_flag,
    check_minimum,
    check_whole,
    checked_params,
    hashable,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from lance_core.query.request import NamedExpression


@dataclass(frozen=True, slots=True)
class TextQuery:
    """A query for the rows that rank first by the score of their texts (BM25).

    Parameters
    ----------
    query
        What is looked for; see `lance_core.index.text.queries`, ``text_query`` for plain words.
    k
        Rows wanted; None = all that are found.
    columns
        Columns of the answer in order, by name or computed; None = all columns of the table.
    filter
        Predicate over the rows, see `lance_core.expr`; rows for which it is unknown do not pass.
        None = all rows pass.
    params
        Values of the ``$name`` in the filter and in expressions.
    prefilter
        True: only rows that pass take places in the answer. False: the ``offset + k`` best rows
        are found first, then those that do not pass are left out, so that fewer than ``k`` may
        remain; the filter may then name ``_score``.
    offset
        Rows to skip after ranking.
    with_row_id
        Add ``_rowid`` unless it is among the columns.
    fast_search
        True: search only rows that an index covers.
    use_index
        False: search all rows without the text index, as if none of their fragments were covered;
        the index still tells how tokens are made and what its documents say of their frequency.
    """

    query: TextNode
    k: int | None = 10
    columns: tuple[str | NamedExpression, ...] | None = None
    filter: str | None = None
    params: Mapping[str, object] | None = None
    prefilter: bool = True
    offset: int = 0
    with_row_id: bool = False
    fast_search: bool = False
    use_index: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.query, TextNode):
            raise InvalidRequestError(
                f"query is {type(self.query).__name__}; give a text query, such as"
                ' text_query("words")'
            )
        check_minimum("k", self.k, 1)
        check_columns(column_names(self.columns))
        check_filter(self.filter)
        check_flag("prefilter", self.prefilter)
        check_whole("offset", self.offset, 0)
        check_flag("with_row_id", self.with_row_id)
        check_flag("fast_search", self.fast_search)
        check_flag("use_index", self.use_index)
        # how a frozen value is finished
        object.__setattr__(self, "params", checked_params(self.params))

    @property
    def parameters(self) -> Hashable:
        """Everything but the query: what decides how its rows are filtered and shown."""
        return (
            self.k,
            self.columns,
            self.filter,
            hashable(self.params),
            self.prefilter,
            self.offset,
            self.with_row_id,
            self.fast_search,
            self.use_index,
        )

    @property
    def texts(self) -> str:
        """The filter and all expressions."""
        return all_texts(self.filter, self.columns)
