"""Posting lists: which documents have a token, and how often."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from lance_core.errors import CorruptFileError
from lance_core.index.text.block_lists import BlockLists
from lance_core.index.text.impacts import NO_IMPACTS, Impacts, decode_impacts
from lance_core.index.text.layout import LISTS_OF_BYTES, PostingLayout
from lance_core.index.text.positions import read_positions
from lance_core.index.text.source import stored_column
from lance_core.kernels.text_postings import ALL_FIT, read_postings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
    max_score
        The best score of one as the writer computed it, with statistics of its time.
    impacts
        What blocks of `block_size` documents can have at best; none where the file does not say.
    block_size
        Documents of a block.
    """

    docs: NDArray[np.uint32]
    frequencies: NDArray[np.uint32]
    max_score: float
    impacts: Impacts
    block_size: int

    def __len__(self) -> int:
        return len(self.docs)

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return int(self.docs.nbytes + self.frequencies.nbytes) + self.impacts.nbytes


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

    def read(self, tokens: Sequence[int]) -> list[PostingList]:
        """Read the posting lists of some tokens in one go.

        Raises
        ------
        CorruptFileError
            The bytes contradict the format.
        """

    def read_positions(
        self, tokens: Sequence[int], postings: Sequence[PostingList]
    ) -> list[PositionList]:
        """Read the positions of tokens, whose postings are given, in one go; errors as `read`."""


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
        Those of blocks, lengths, best scores and, where there is one, impacts.
    num_docs
        Documents of the partition.
    """

    reader: LanceFileReader
    layout: PostingLayout
    columns: tuple[ColumnTarget, ...]
    num_docs: int

    @classmethod
    def of(
        cls, reader: LanceFileReader, of_segment: Mapping[str, str], num_docs: int
    ) -> BlockPostings:
        """Look at a file; ``UnusableSegmentError`` if it is of an unknown form."""
        layout = PostingLayout.of(reader, of_segment)
        columns = [
            stored_column(reader, "_posting", LISTS_OF_BYTES),
            stored_column(reader, "_length", [pa.uint32()]),
            stored_column(reader, "_max_score", [pa.float32()]),
        ]
        if layout.has_impacts:
            columns.append(stored_column(reader, "_impacts", LISTS_OF_BYTES))
        return cls(reader, layout, tuple(columns), num_docs)

    @property
    def num_tokens(self) -> int:
        """How many posting lists there are."""
        return self.reader.num_rows

    @property
    def has_positions(self) -> bool:
        """Whether positions can be read."""
        return self.layout.positions is not None

    def read(self, tokens: Sequence[int]) -> list[PostingList]:
        """Read the posting lists of some tokens in one go; errors as `PostingFile.read`."""
        stored = self.reader.take(self.columns, tokens)
        if any(column.null_count > 0 for column in stored):
            raise CorruptFileError(self.reader.path, "a token has a null in its row")
        blocks = BlockLists.of(stored[0], self.reader.path)
        impacts = self._impacts(stored[3:], blocks)
        lengths, scores = stored[1].to_pylist(), stored[2].to_pylist()
        return [
            PostingList(
                *self._decode(token, blocks.base, blocks.of_list(index), lengths[index]),
                scores[index],
                impacts[index],
                self.layout.block_size,
            )
            for index, token in enumerate(tokens)
        ]

    def read_positions(
        self, tokens: Sequence[int], postings: Sequence[PostingList]
    ) -> list[PositionList]:
        """Read positions of tokens in one go; errors as `PostingFile.read`."""
        counts = [each.frequencies for each in postings]
        return read_positions(self.reader, self.layout, tokens, counts)

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

    def _impacts(self, stored: Sequence[pa.Array], blocks: BlockLists) -> list[Impacts]:
        if len(stored) == 0:
            return [NO_IMPACTS] * (len(blocks.firsts) - 1)
        entries = BlockLists.of(stored[0], self.reader.path)
        return [
            decode_impacts(entries.base, entries.of_list(index), num_blocks)
            for index, num_blocks in enumerate(np.diff(blocks.firsts).tolist())
        ]
