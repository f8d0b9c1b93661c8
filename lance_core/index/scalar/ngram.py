"""NGRAM: for each trigram the rows whose text has it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.errors import CorruptFileError
from lance_core.expr.index_query import ContainsAll, StartsWith
from lance_core.index.registry import IndexKind, UnusableSegmentError
from lance_core.index.scalar.answer import RowAnswer
from lance_core.index.scalar.fragment_rows import NO_ROWS, KeptRows, intersect, num_rows
from lance_core.index.scalar.trigrams import trigrams
from lance_core.index.stored_columns import find_stored, read_stored
from lance_core.table.treemap import decode_bitmaps

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from numpy.typing import NDArray

    from lance_core.expr.index_query import LeafQuery
    from lance_core.file.reader import ColumnTarget, LanceFileReader
    from lance_core.index.scalar.fragment_rows import FragmentRows
    from lance_core.index.scalar.segment import Check, RowNames, ScalarSource

_FILE = "ngram_postings.lance"
_TOKENS = "tokens"
_POSTINGS = {"posting_list": pa.binary()}
_MOST_POSTINGS = 64
"""Postings that are intersected at most: more would not make a set much smaller."""


def open_ngram(source: ScalarSource) -> NgramSegment:
    """Read the numbers of the trigrams; errors as ``open_scalar_segment``.

    Notes
    -----
    Scalar index page, section 5.
    """
    reader = source.open(_FILE)
    if _holds_texts(reader):
        raise UnusableSegmentError("it was written by an early release of Lance: rebuild it")
    (column,) = read_stored(reader, {_TOKENS: pa.uint32()})
    tokens = column.to_numpy(zero_copy_only=False)
    if column.null_count > 0 or (tokens[1:] <= tokens[:-1]).any():
        raise CorruptFileError(reader.path, "trigrams are out of order")
    (postings,) = find_stored(reader, _POSTINGS)
    return NgramSegment(source, reader, tokens, postings)


@dataclass(frozen=True, slots=True, eq=False)
class NgramSegment:
    """A segment that finds rows whose text may contain others; see ``ScalarSegment``.

    Parameters
    ----------
    source
        The segment.
    reader
        Its file.
    tokens
        Shape ``(n,)``, ascending: number of the trigram of each row of the file. 0 stands for
        nulls, and for three letters that are as good as never written.
    postings
        The rows of the table of each.
    """

    source: ScalarSource
    reader: LanceFileReader
    tokens: NDArray[np.uint32]
    postings: ColumnTarget

    @property
    def kind(self) -> IndexKind:
        """Which index it is."""
        return IndexKind.NGRAM

    @property
    def names_rows_by(self) -> RowNames:
        """How answers name rows."""
        return "row_id"

    @property
    def knows_nulls(self) -> bool:
        """Whether answers tell the null rows if asked: other rows may be among them."""
        return False

    @property
    def nbytes(self) -> int:
        """Memory held, without what is kept in the cache."""
        return self.reader.nbytes + int(self.tokens.nbytes)

    def watch_growth(self, told: Callable[[], object]) -> None:
        """Call ``told`` from now on after each read that may have made `nbytes` larger."""
        self.reader.watch_growth(told)

    @property
    def num_parts(self) -> int:
        """Postings."""
        return len(self.tokens)

    def load_parts(self, start: int, stop: int) -> int:
        """Bring postings into the cache; return the memory they take."""
        return sum(each.nbytes for each in self._kept(range(start, stop)))

    def supports(self, query: LeafQuery) -> bool:
        """Tell whether the index can answer a query: one with a trigram; reads nothing."""
        return any(len(trigrams(part)) > 0 for part in _parts(query))

    def search(self, query: LeafQuery, *, with_nulls: bool, check: Check) -> RowAnswer:
        """Find rows; parameters and errors as ``ScalarSegment.search``.

        Exactly none where a trigram occurs nowhere.
        """
        check()
        numbers = np.unique(np.concatenate([trigrams(part) for part in _parts(query)]))
        places = np.searchsorted(self.tokens, numbers)
        if not np.isin(numbers, self.tokens).all():
            return RowAnswer.exact(NO_ROWS)
        rows = sorted(self._postings(places[:_MOST_POSTINGS].tolist()), key=num_rows)
        check()
        return RowAnswer.at_most(reduce(intersect, rows))

    def _postings(self, places: Sequence[int]) -> list[FragmentRows]:
        return [each.rows for each in self._kept(places)]

    def _kept(self, places: Sequence[int]) -> list[KeptRows]:
        by_key: dict[Hashable, int] = {
            self.source.key("postings", place): place for place in places
        }
        return self.source.cache.get_or_load_many(
            list(by_key), lambda missing: self._read([by_key[key] for key in missing])
        )

    def _read(self, places: Sequence[int]) -> list[KeptRows]:
        """Read the postings of some trigrams in one go."""
        (column,) = self.reader.take([self.postings], places)
        if column.null_count > 0:
            raise CorruptFileError(self.reader.path, "a trigram has no postings")
        return [_rows(each, self.reader.path) for each in column.to_pylist()]


def _rows(postings: bytes, path: str) -> KeptRows:
    bitmaps = decode_bitmaps(postings, path)
    return KeptRows.of({key: bitmap for key, bitmap in bitmaps.items() if bitmap})


def _parts(query: LeafQuery) -> Sequence[str]:
    """Return texts that must all occur."""
    match query:
        case ContainsAll(parts):
            return parts
        case StartsWith(prefix):
            return (prefix.as_py(),)
    return ()


def _holds_texts(reader: LanceFileReader) -> bool:
    """Tell whether a file names trigrams by their letters, as pylance 0.24 wrote them."""
    return _TOKENS in reader.schema.names and pa.types.is_string(reader.target(_TOKENS).arrow_type)
