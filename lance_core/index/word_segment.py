"""A segment of an inverted index, asked which rows have words: the filter ``contains_tokens``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial, reduce
from typing import TYPE_CHECKING

import numpy as np

from lance_core.expr.index_query import HasWords
from lance_core.index.registry import IndexKind
from lance_core.index.scalar.answer import RowAnswer
from lance_core.index.scalar.named_rows import rows_of_names
from lance_core.index.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from lance_core.expr.index_query import LeafQuery
    from lance_core.index.scalar.segment import Check, RowNames
    from lance_core.index.text.partition import TextPartition
    from lance_core.index.text.segment import TextSegment


@dataclass(frozen=True, slots=True, eq=False)
class WordSegment:
    """Finds rows that may have words; see ``ScalarSegment``.

    Parameters
    ----------
    segment
        The segment.
    """

    segment: TextSegment

    @property
    def kind(self) -> IndexKind:
        """Which index it is."""
        return IndexKind.INVERTED

    @property
    def names_rows_by(self) -> RowNames:
        """How answers name rows."""
        return "row_id"

    @property
    def knows_nulls(self) -> bool:
        """Whether answers tell the null rows if asked: the index has no rows without tokens."""
        return False

    @property
    def nbytes(self) -> int:
        """Memory held, without what is kept in the cache."""
        return self.segment.nbytes

    def watch_growth(self, told: Callable[[], object]) -> None:
        """Call ``told`` from now on after each read that may have made `nbytes` larger."""
        self.segment.watch_growth(told)

    def supports(self, query: LeafQuery) -> bool:
        """Tell whether the index can answer a query; reads nothing.

        Notes
        -----
        Scalar index page, 8.10, and observed with pylance 14.0.2: only tokens that differ from
        words in their case or accents, or that are left out, are asked for.
        """
        made = self.segment.parameters
        return (
            isinstance(query, HasWords)
            and made.lance_tokenizer == "text"
            and made.base_tokenizer == "simple"
            and made.max_token_length is None
            and made.language == "English"
            and not made.stem
        )

    def search(self, query: LeafQuery, *, with_nulls: bool, check: Check) -> RowAnswer:
        """Find rows; parameters and errors as ``ScalarSegment.search``.

        Words that the index leaves out are not looked at; where it leaves out all of them it finds
        no row, as pylance 14.0.2 does.
        """
        tokens = self._tokens(query)
        found = [_rows(each, tokens, check) for each in self.segment.partitions]
        return RowAnswer.at_most(rows_of_names(found))

    def _tokens(self, query: LeafQuery) -> list[str]:
        text = query.text if isinstance(query, HasWords) else ""
        made = Tokenizer(self.segment.parameters).tokens(text)
        return list(dict.fromkeys(token.text for token in made))


def _rows(partition: TextPartition, tokens: Sequence[str], check: Check) -> NDArray[np.uint64]:
    """Return the rows of a partition that have all tokens, of which there may be none."""
    check()
    numbers = partition.token_ids(tokens)
    if len(numbers) == 0 or (numbers < 0).any():
        return np.zeros(0, np.uint64)
    lists = sorted(partition.postings(numbers.tolist(), check), key=len)
    common = partial(np.intersect1d, assume_unique=True)
    return partition.documents.row_ids_of(reduce(common, [each.docs for each in lists]))
