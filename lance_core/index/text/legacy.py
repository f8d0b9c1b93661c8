"""Segments as releases up to 0.27 wrote them: a row for each posting, with its row id.

Documents have no numbers there: here they get them in the order of their row ids, as the postings
of a token are ordered.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa

from lance_core.errors import CorruptFileError
from lance_core.index.stored_columns import stored_column
from lance_core.index.text.block_lists import list_items
from lance_core.index.text.positions import PositionList, go_on, starts_of
from lance_core.index.text.postings import PostingList

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from lance_core.file.reader import ColumnTarget, LanceFileReader
    from lance_core.index.text.documents import Documents

_Number = TypeVar("_Number", np.int64, np.float32)
_POSITIONS = "_position"
_MOST_FREQUENCY = 1 << 31


@dataclass(frozen=True, slots=True, eq=False)
class RowPostings:
    """A file with a row for each posting; see `PostingFile`.

    Parameters
    ----------
    reader
        The file.
    columns
        Those of row ids and frequencies.
    starts
        The rows of token ``i`` go from ``starts[i]`` to ``starts[i + 1]``; shape ``(n + 1,)``.
    documents
        The documents.
    """

    reader: LanceFileReader
    columns: tuple[ColumnTarget, ColumnTarget]
    starts: NDArray[np.int64]
    documents: Documents

    @classmethod
    def of(cls, reader: LanceFileReader, documents: Documents) -> RowPostings:
        """Look at a file; errors as `open_text_segment`."""
        starts = _numbers(reader, "offsets", np.int64)
        bounds = np.append(starts, reader.num_rows)
        if bounds[0] != 0 or (np.diff(bounds) < 0).any():
            raise CorruptFileError(reader.path, '"offsets" are not those of its rows')
        columns = (
            stored_column(reader, "_rowid", [pa.uint64()]),
            stored_column(reader, "_frequency", [pa.float32()]),
        )
        return cls(reader, columns, bounds, documents)

    @property
    def num_tokens(self) -> int:
        """How many posting lists there are."""
        return len(self.starts) - 1

    @property
    def has_positions(self) -> bool:
        """Whether positions can be read."""
        return _POSITIONS in self.reader.schema.names

    def counts(self) -> NDArray[np.int64]:
        """Return how many postings each token has."""
        return np.diff(self.starts)

    def read(self, tokens: Sequence[int], check: Callable[[], object] = go_on) -> list[PostingList]:
        """Read the posting lists of some tokens in one go; see `PostingFile.read`."""
        check()
        row_ids, frequencies = self.reader.read(self.columns, self._ranges(tokens))
        if row_ids.null_count + frequencies.null_count > 0:
            raise CorruptFileError(self.reader.path, "a posting has a null in its row")
        docs = self._docs(row_ids.to_numpy())
        counts = self._counts(frequencies.to_numpy())
        ends = np.cumsum([stop - start for start, stop in self._ranges(tokens)])[:-1]
        found = zip(tokens, np.split(docs, ends), np.split(counts, ends), strict=True)
        return [self._list(token, own_docs, own_counts) for token, own_docs, own_counts in found]

    def read_positions(
        self,
        tokens: Sequence[int],
        postings: Sequence[PostingList],
        check: Callable[[], object] = go_on,
    ) -> list[PositionList]:
        """Read the positions of some tokens in one go; see `PostingFile.read`."""
        check()
        column = stored_column(self.reader, _POSITIONS, [pa.list_(pa.int32())])
        (stored,) = self.reader.read([column], self._ranges(tokens))
        firsts, items = list_items(stored, self.reader.path)
        expected = np.concatenate([each.frequencies for each in postings])
        if items.null_count > 0 or not np.array_equal(np.diff(firsts), expected):
            raise CorruptFileError(self.reader.path, "positions do not fit the frequencies")
        values = items.to_numpy()
        if values.min(initial=0) < 0:
            raise CorruptFileError(self.reader.path, "a position is negative")
        all_starts = [starts_of(each.frequencies) for each in postings]
        ends = np.cumsum([starts[-1] for starts in all_starts])[:-1]
        parts = np.split(values.astype(np.uint32), ends)
        return [
            PositionList(starts, own.copy()) for starts, own in zip(all_starts, parts, strict=True)
        ]

    def _ranges(self, tokens: Sequence[int]) -> list[tuple[int, int]]:
        return [(int(self.starts[token]), int(self.starts[token + 1])) for token in tokens]

    def _docs(self, row_ids: NDArray[np.uint64]) -> NDArray[np.uint32]:
        known = self.documents.row_ids()
        docs = np.searchsorted(known, row_ids)
        is_known = docs < len(known)
        is_known[is_known] = known[docs[is_known]] == row_ids[is_known]
        if not is_known.all():
            raise CorruptFileError(self.reader.path, "a posting is of a row that is no document")
        return docs.astype(np.uint32)

    def _counts(self, frequencies: NDArray[np.float32]) -> NDArray[np.uint32]:
        are_counts = (frequencies >= 0) & (frequencies < _MOST_FREQUENCY)
        counts = np.where(are_counts, frequencies, 0).astype(np.uint32)
        if not np.array_equal(counts, frequencies):
            raise CorruptFileError(self.reader.path, "a frequency is no count")
        return counts

    def _list(
        self, token: int, docs: NDArray[np.uint32], counts: NDArray[np.uint32]
    ) -> PostingList:
        if (docs[1:] <= docs[:-1]).any():
            raise CorruptFileError(self.reader.path, f"postings of token {token} are out of order")
        return PostingList(docs.copy(), counts.copy())


def _numbers(reader: LanceFileReader, key: str, dtype: type[_Number]) -> NDArray[_Number]:
    """Return the numbers of a JSON array in the metadata."""
    try:
        numbers = np.array(json.loads(reader.schema.metadata.get(key, "")), dtype)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise CorruptFileError(reader.path, f'"{key}" is no list of numbers') from error
    if numbers.ndim != 1:
        raise CorruptFileError(reader.path, f'"{key}" is no list of numbers')
    return numbers
