"""The request for rows that are near a vector, and whose texts fit some words, as one answer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lance_core.errors import InvalidRequestError
from lance_core.query.fusion import RRF, Fusion
from lance_core.query.request import VectorQuery, all_texts, column_names
from lance_core.query.request_checks import (
    check_columns,
    check_flag,
    check_minimum,
    check_whole,
    hashable,
)
from lance_core.query.text_request import TextQuery
from lance_core.scan.projection import PseudoColumn

if TYPE_CHECKING:
    from collections.abc import Hashable

    from lance_core.query.request import NamedExpression

_FOUND = (PseudoColumn.ROW_ADDRESS.value,)
"""All that has to be known of a row to fuse and to read it."""


@dataclass(frozen=True, slots=True, eq=False)
class HybridQuery:
    """A vector query and a text query whose answers are fused into one.

    Parameters
    ----------
    vector, text
        Both queries, each with its own filter. What they say of ``k``, ``offset``, columns and row
        ids does not count. The vector query has one query vector, or one row id.
    k
        Rows wanted; None = all that either finds.
    offset
        Rows to skip after both were fused; both queries look for ``offset + k`` rows.
    columns
        Columns of the answer in order, by name or computed; None = all columns of the table.
        ``_distance``, ``_score`` and ``_relevance_score`` are added behind them; the first two are
        null where a query did not find the row.
    with_row_id
        Add ``_rowid`` unless it is among the columns.
    fusion
        How relevance is made of places, or of distances and scores.
    """

    vector: VectorQuery
    text: TextQuery
    k: int | None = 10
    offset: int = 0
    columns: tuple[str | NamedExpression, ...] | None = None
    with_row_id: bool = False
    fusion: Fusion = RRF()  # noqa: RUF009 - frozen

    def __post_init__(self) -> None:
        for name, kind in (("vector", VectorQuery), ("text", TextQuery)):
            if not isinstance(getattr(self, name), kind):
                given = type(getattr(self, name)).__name__
                raise InvalidRequestError(f"{name} is {given}; give a {kind.__name__}")
        if self.vector.row_ids is not None and len(self.vector.row_ids) > 1:
            raise InvalidRequestError(
                f"{len(self.vector.row_ids)} row ids are given; a hybrid query has one"
            )
        if not isinstance(self.fusion, Fusion):
            raise InvalidRequestError(f"fusion is {self.fusion!r}; give RRF or WeightedFusion")
        check_minimum("k", self.k, 1)
        check_whole("offset", self.offset, 0)
        check_columns(column_names(self.columns))
        check_flag("with_row_id", self.with_row_id)

    @property
    def nearest(self) -> VectorQuery:
        """The vector query as it is run."""
        return replace(
            self.vector,
            k=self._num_ranked,
            offset=0,
            columns=_FOUND,
            with_row_id=False,
            batched=self.vector.num_queries > 1,  # the vectors of one query where rows hold lists
        )

    @property
    def matching(self) -> TextQuery:
        """The text query as it is run."""
        return replace(self.text, k=self._num_ranked, offset=0, columns=_FOUND, with_row_id=False)

    @property
    def shown(self) -> Hashable:
        """Everything that decides what an answer shows of its rows."""
        return self.columns, self.with_row_id, hashable(self.vector.params)

    @property
    def texts(self) -> str:
        """All expressions."""
        return all_texts(None, self.columns)

    @property
    def _num_ranked(self) -> int | None:
        return None if self.k is None else self.k + self.offset
