"""Posting lists: which documents have a token, and how often."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from lance_core.errors import CorruptFileError
from lance_core.index.stored_columns import stored_column
from lance_core.index.text.block_lists import BlockLists
from lance_core.index.text.layout import LISTS_OF_BYTES, PostingLayout
from lance_core.index.text.positions import go_on, read_positions
from lance_core.kernels.text_postings import ALL_FIT, read_postings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from lance_core.file.reader import ColumnTarget, LanceFileReader
    from lance_core.index.text.positions import PositionList


@dataclass(frozen=True, slots=True, eq=False)
class PostingList:
    """The documents that have one token; shared, do not change it.

    Parameters
    ----------
    docs
        Shape ``(n,)``, ascending: numbers of documents of the partition, each below their number.
    frequencies
        Shape ``(n,)``: how often each has the token.
    """

    docs: NDArray[np.uint32]
    frequencies: NDArray[np.uint32]

    def __len__(self) -> int:
        return len(self.docs)

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return int(self.docs.nbytes + self.frequencies.nbytes)


class PostingFile(Protocol):
    """Reads posting lists of a partition, whatever release wrote them."""

    @property
    def num_tokens(self) -> int:
        """How many posting lists there are."""

    @property
    def has_positions(self) -> bool:
        """Whether positions can be read."""

    @property
    def reader(self) -> LanceFileReader:
        """The file."""

    def counts(self) -> NDArray[np.int64]:
        """Return how many postings each token has, shape ``(num_tokens,)``."""

    def read(self, tokens: Sequence[int], check: Callable[[], object] = ...) -> list[PostingList]:
        """Read the posting lists of some tokens in one go.

        ``check`` is called before each is decoded; it raises when the work has to stop.

        Raises
        ------
        CorruptFileError
            The bytes contradict the format.
        """

    def read_positions(
        self,
        tokens: Sequence[int],
        postings: Sequence[PostingList],
        check: Callable[[], object] = ...,
    ) -> list[PositionList]:
        """Read the positions of tokens, whose postings are given, in one go, as `read` does."""


@dataclass(frozen=True, slots=True, eq=False)
class BlockPostings:
    """A file with a row for each token; see `PostingFile`.

    Parameters
    ----------
    reader
        The file.
    layout
        How it is stored.
    columns
        Those of blocks and lengths. Best scores and impacts are not read: searches take bounds from
        the weights themselves, which are decoded anyway, with the statistics of today.
    num_docs
        Documents of the partition.
    """

    reader: LanceFileReader
    layout: PostingLayout
    columns: tuple[ColumnTarget, ColumnTarget]
    num_docs: int

    @classmethod
    def of(
        cls, reader: LanceFileReader, of_segment: Mapping[str, str], num_docs: int
    ) -> BlockPostings:
        """Look at a file; ``UnusableSegmentError`` if it is of an unknown form."""
        layout = PostingLayout.of(reader, of_segment)
        columns = (
            stored_column(reader, "_posting", LISTS_OF_BYTES),
            stored_column(reader, "_length", [pa.uint32()]),
        )
        return cls(reader, layout, columns, num_docs)

    @property
    def num_tokens(self) -> int:
        """How many posting lists there are."""
        return self.reader.num_rows

    @property
    def has_positions(self) -> bool:
        """Whether positions can be read."""
        return self.layout.positions is not None

    def counts(self) -> NDArray[np.int64]:
        """Return how many postings each token has; reads a column, and keeps it nowhere."""
        (stored,) = self.reader.read([self.columns[1]], [(0, self.reader.num_rows)])
        if stored.null_count > 0:
            raise CorruptFileError(self.reader.path, "a token has a null in its row")
        return np.asarray(stored.to_numpy(), np.int64)

    def read(self, tokens: Sequence[int], check: Callable[[], object] = go_on) -> list[PostingList]:
        """Read the posting lists of some tokens in one go; see `PostingFile.read`."""
        stored = self.reader.take(self.columns, tokens)
        if any(column.null_count > 0 for column in stored):
            raise CorruptFileError(self.reader.path, "a token has a null in its row")
        blocks = BlockLists.of(stored[0], self.reader.path)
        lengths = stored[1].to_pylist()
        found = []
        for index, token in enumerate(tokens):
            check()
            own = blocks.of_list(index)
            found.append(PostingList(*self._decode(token, blocks.base, own, lengths[index])))
        return found

    def read_positions(
        self,
        tokens: Sequence[int],
        postings: Sequence[PostingList],
        check: Callable[[], object] = go_on,
    ) -> list[PositionList]:
        """Read positions of tokens in one go; see `PostingFile.read`."""
        counts = [each.frequencies for each in postings]
        return read_positions(self.reader, self.layout, tokens, counts, check)

    def _decode(
        self, token: int, base: int, offsets: NDArray[np.int64], length: int
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        needed = -(-length // self.layout.block_size)
        if length > self.num_docs or len(offsets) - 1 != needed:
            raise CorruptFileError(
                self.reader.path,
                f"token {token} has {length} postings in {len(offsets) - 1} blocks, and there are"
                f" {self.num_docs} documents",
            )
        docs, frequencies = np.empty(length, np.uint32), np.empty(length, np.uint32)
        bad = read_postings(
            base,
            offsets,
            self.layout.block_size,
            self.layout.is_varint,
            self.num_docs,
            docs,
            frequencies,
        )
        if bad != ALL_FIT:
            raise CorruptFileError(
                self.reader.path, f"block {bad} of the postings of token {token} is damaged"
            )
        return docs, frequencies
