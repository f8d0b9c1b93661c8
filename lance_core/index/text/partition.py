"""One partition of a segment: its own tokens, posting lists and documents."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from lance_core.errors import CorruptFileError, InvalidRequestError
from lance_core.index.stored_columns import stored_column
from lance_core.index.text.dictionary import TokenDictionary
from lance_core.index.text.positions import NEEDS_POSITIONS, go_on
from lance_core.index.text.rounded_lengths import rounded_lengths
from lance_core.kernels.text_postings import SMALL_BLOCK

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from lance_core.cache.byte_cache import Sized
    from lance_core.cache.keys import CacheKey
    from lance_core.file.reader import LanceFileReader
    from lance_core.index.segment_source import SegmentSource
    from lance_core.index.text.documents import Documents
    from lance_core.index.text.positions import PositionList
    from lance_core.index.text.postings import PostingFile, PostingList

_Kept = TypeVar("_Kept", bound="Sized")
_FST = "_token_fst_bytes"


@dataclass(frozen=True, slots=True, eq=False)
class TextPartition:
    """An opened partition: what is read of it stays in the session's cache.

    Parameters
    ----------
    source
        The segment.
    partition_id
        Its number; random in segments of several workers.
    tokens
        The file of its dictionary.
    postings_file
        The file of its posting lists.
    documents
        Its documents.
    block_size
        Postings of a block.
    """

    source: SegmentSource
    partition_id: int
    tokens: LanceFileReader
    postings_file: PostingFile
    documents: Documents
    block_size: int

    @property
    def num_docs(self) -> int:
        """Documents, deleted rows among them."""
        return len(self.documents)

    @property
    def num_tokens(self) -> int:
        """Distinct tokens; their numbers go from 0 to this."""
        return self.postings_file.num_tokens

    @property
    def has_positions(self) -> bool:
        """Whether `positions` can be read, whatever the segment's parameters say."""
        return self.postings_file.has_positions

    @property
    def nbytes(self) -> int:
        """Memory held by open files, without what is in the cache."""
        readers = (self.tokens, self.postings_file.reader, self.documents.reader)
        return sum(each.nbytes for each in readers)

    def watch_growth(self, told: Callable[[], object]) -> None:
        """Call ``told`` from now on after each read that may have made `nbytes` larger."""
        for each in (self.tokens, self.postings_file.reader, self.documents.reader):
            each.watch_growth(told)

    def token_ids(self, tokens: Sequence[str]) -> NDArray[np.int64]:
        """Return the number of each token, shape ``(n,)``; -1 for those that do not occur.

        Raises
        ------
        CorruptFileError
            The dictionary is damaged.
        """
        return self.dictionary().find(tokens)

    def expand(
        self, token: str, distance: int, *, prefix_length: int, most: int
    ) -> tuple[list[str], NDArray[np.int64]]:
        """Return tokens near one, and their numbers; see `TokenDictionary.near`."""
        return self.dictionary().near(token, distance, num_fixed=prefix_length, most=most)

    def all_tokens(self) -> Iterator[tuple[pa.LargeStringArray, NDArray[np.int64]]]:
        """Yield all tokens by their bytes, and their numbers; see `TokenDictionary.items`."""
        return self.dictionary().items()

    def postings(
        self, token_ids: Sequence[int], check: Callable[[], object] = go_on
    ) -> list[PostingList]:
        """Return the posting lists of some tokens; what is not in the cache is read in one go.

        ``check`` is that of `PostingFile.read`.

        Raises
        ------
        CorruptFileError
            They are damaged.
        """
        read = partial(self.postings_file.read, check=check)
        return self._cached("text postings", token_ids, read)

    def positions(
        self, token_ids: Sequence[int], check: Callable[[], object] = go_on
    ) -> list[PositionList]:
        """Return the positions of some tokens, in documents as `postings` has them.

        ``check`` is that of `PostingFile.read`.

        Raises
        ------
        InvalidRequestError
            The index was built without positions.
        CorruptFileError
            They are damaged.
        """
        if not self.has_positions:
            raise InvalidRequestError(NEEDS_POSITIONS)
        file = self.postings_file
        return self._cached(
            "text positions",
            token_ids,
            lambda some: file.read_positions(some, file.read(some, check), check),
        )

    def holds_positions(self, token_ids: Sequence[int]) -> bool:
        """Tell whether `positions` would read nothing."""
        cache = self.source.cache
        return all(
            self.source.key("text positions", self.partition_id, token) in cache
            for token in token_ids
        )

    def scoring_lengths(self) -> NDArray[np.uint32]:
        """Return the document lengths that scores are computed with, shape ``(num_docs,)``.

        Notes
        -----
        Scalar index page, 8.7: they are rounded where blocks have 256 postings.
        """
        if self.block_size == SMALL_BLOCK:
            return self.documents.lengths()
        key = self.source.key("text rounded lengths", self.partition_id)
        return self.source.cache.get_or_load(key, lambda: rounded_lengths(self.documents.lengths()))

    @property
    def holds_dictionary(self) -> bool:
        """Whether `dictionary` would read nothing."""
        return self._dictionary_key in self.source.cache

    def dictionary(self) -> TokenDictionary:
        """Return the dictionary, read if it is not in the cache."""
        return self.source.cache.get_or_load(self._dictionary_key, self._read_dictionary)

    @property
    def _dictionary_key(self) -> CacheKey:
        return self.source.key("text dictionary", self.partition_id)

    def _cached(
        self,
        what: str,
        token_ids: Sequence[int],
        read: Callable[[Sequence[int]], list[_Kept]],
    ) -> list[_Kept]:
        by_key: dict[Hashable, int] = {
            self.source.key(what, self.partition_id, token): token for token in token_ids
        }
        kept = self.source.cache.get_or_load_many(
            list(by_key), lambda missing: read([by_key[key] for key in missing])
        )
        by_token = dict(zip(by_key.values(), kept, strict=True))
        return [by_token[token] for token in token_ids]

    def _read_dictionary(self) -> TokenDictionary:
        if _FST in self.tokens.schema.names:
            return self._read_fst()
        columns = [
            stored_column(self.tokens, "_token", [pa.string(), pa.large_string()]),
            stored_column(self.tokens, "_token_id", [pa.uint32()]),
        ]
        tokens, numbers = self.tokens.read(columns, [(0, self.tokens.num_rows)])
        return TokenDictionary.of_table(tokens, numbers, self.num_tokens, self.tokens.path)

    def _read_fst(self) -> TokenDictionary:
        column = stored_column(self.tokens, _FST, [pa.large_binary(), pa.binary()])
        if self.tokens.num_rows != 1:
            raise CorruptFileError(self.tokens.path, f"{self.tokens.num_rows} token dictionaries")
        (stored,) = self.tokens.read([column], [(0, 1)])
        if stored.null_count > 0:
            raise CorruptFileError(self.tokens.path, "the token dictionary is null")
        return TokenDictionary.of_fst(stored[0].as_buffer(), self.num_tokens, self.tokens.path)
