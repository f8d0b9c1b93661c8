"""The documents of a partition: which rows they are, and how many tokens they have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa

from lance_core.errors import CorruptFileError
from lance_core.index.stored_columns import stored_column

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lance_core.cache.keys import CacheKey
    from lance_core.file.reader import LanceFileReader
    from lance_core.index.segment_source import SegmentSource

_Number = TypeVar("_Number", np.uint32, np.uint64)
_ROW_IDS = "_rowid"
_LENGTHS = "_num_tokens"
_ELEMENTS = "_doc_index_0"
_MOST_DIGITS = 19
_MOST_DOCS = 1 << 32


@dataclass(frozen=True, slots=True, eq=False)
class Documents:
    """The documents of one partition, by their numbers; columns are read when they are asked for.

    Parameters
    ----------
    source
        The segment.
    reader
        The file.
    partition_id
        Which partition.
    in_row_order
        Whether documents are numbered in the order of their row ids, and not by rows of the file.
    """

    source: SegmentSource
    reader: LanceFileReader
    partition_id: int
    in_row_order: bool

    @classmethod
    def open(
        cls, source: SegmentSource, file_name: str, partition_id: int, *, in_row_order: bool = False
    ) -> Documents:
        """Open the file; errors as `open_text_segment`."""
        reader = source.open(file_name)
        if reader.num_rows > _MOST_DOCS:
            raise CorruptFileError(reader.path, f"{reader.num_rows} documents in one partition")
        stored_column(reader, _ROW_IDS, [pa.uint64()])
        stored_column(reader, _LENGTHS, [pa.uint32()])
        return cls(source, reader, partition_id, in_row_order)

    def __len__(self) -> int:
        return self.reader.num_rows

    @property
    def has_elements(self) -> bool:
        """Whether each document is one element of a list."""
        return _ELEMENTS in self.reader.schema.names

    def total_tokens(self) -> int:
        """Return the sum of all lengths; reads nothing where the file tells it."""
        told = self._told_tokens()
        return int(self.lengths().sum(dtype=np.int64)) if told is None else told

    def _told_tokens(self) -> int | None:
        """Return the sum of all lengths as the file tells it, None if it does not."""
        told = self.reader.schema.metadata.get("total_tokens")
        if told is None:
            return None
        if not told.isdecimal() or len(told) > _MOST_DIGITS:
            raise CorruptFileError(self.reader.path, f'"total_tokens" is "{told}"')
        return int(told)

    def lengths(self) -> NDArray[np.uint32]:
        """Return how many tokens each document has, shape ``(n,)``; shared.

        Raises ``CorruptFileError`` if they are not as many as the file tells: wrong ones would be
        wrong scores in silence.
        """
        return self.source.cache.get_or_load(self._key(_LENGTHS), self._read_lengths)

    def row_ids(self) -> NDArray[np.uint64]:
        """Return the row of each document, shape ``(n,)``; shared."""
        return self._column(_ROW_IDS, pa.uint64(), np.uint64)

    @property
    def holds_row_ids(self) -> bool:
        """Whether `row_ids` would read nothing."""
        return self._key(_ROW_IDS) in self.source.cache

    def elements(self) -> NDArray[np.uint32]:
        """Return which element of its row's list each document is, shape ``(n,)``; shared."""
        return self._column(_ELEMENTS, pa.uint32(), np.uint32)

    def row_ids_of(self, docs: NDArray[np.uint32]) -> NDArray[np.uint64]:
        """Return the rows of some documents; reads no others if the column is not held."""
        if self.in_row_order or self.holds_row_ids:
            return self.row_ids()[docs]
        (stored,) = self.reader.take([_ROW_IDS], docs.astype(np.int64))
        return self._values(stored, np.uint64)

    def _key(self, name: str) -> CacheKey:
        return self.source.key("text documents", self.partition_id, name)

    def _column(self, name: str, kind: pa.DataType, dtype: type[_Number]) -> NDArray[_Number]:
        return self.source.cache.get_or_load(self._key(name), lambda: self._read(name, kind, dtype))

    def _read_lengths(self) -> NDArray[np.uint32]:
        lengths = self._read(_LENGTHS, pa.uint32(), np.uint32)
        told, found = self._told_tokens(), int(lengths.sum(dtype=np.int64))
        if told is not None and told != found:
            raise CorruptFileError(self.reader.path, f'"total_tokens" is not {found}')
        return lengths

    def _read(self, name: str, kind: pa.DataType, dtype: type[_Number]) -> NDArray[_Number]:
        column = stored_column(self.reader, name, [kind])
        (stored,) = self.reader.read([column], [(0, self.reader.num_rows)])
        values = self._values(stored, dtype)
        return values[self._order()] if self.in_row_order else values

    def _order(self) -> NDArray[np.int64]:
        key = self.source.key("text document order", self.partition_id)
        return self.source.cache.get_or_load(key, self._read_order)

    def _read_order(self) -> NDArray[np.int64]:
        (stored,) = self.reader.read([_ROW_IDS], [(0, self.reader.num_rows)])
        return np.argsort(self._values(stored, np.uint64), kind="stable")

    def _values(self, stored: pa.Array, dtype: type[_Number]) -> NDArray[_Number]:
        if stored.null_count > 0:
            raise CorruptFileError(self.reader.path, "a document has a null in its row")
        return np.array(stored.to_numpy(), dtype)
