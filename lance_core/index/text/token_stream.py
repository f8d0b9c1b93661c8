"""Tokens of very many texts, as numbers of a dictionary that grows."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.index.text.piece_tokens import Occurrences, PieceTokens, piece_tokens
from lance_core.kernels.text_known import none_known, number_pieces
from lance_core.kernels.text_pieces import Pieces, find_ngrams, find_runs, room_for

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from lance_core.index.text.tokenizer import Tokenizer

_NO_LIMIT = np.iinfo(np.int64).max
BYTES_OF_PIECE = 150
"""About what a piece, or a token, takes in memory."""


class TokenStream:
    """Makes tokens of any number of arrays of texts; for one thread.

    A kernel finds the pieces of texts, and the tokenizer sees each distinct piece once.

    Parameters
    ----------
    tokenizer
        Of the index.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokens: list[str] = []
        """By token id, in the order of their first occurrence."""
        self._tokenizer = tokenizer
        self._ids: dict[str, int] = {}
        self._known = none_known()
        self._num_known = 0
        self._of_pieces = piece_tokens([], [])

    @property
    def nbytes(self) -> int:
        """About the memory held: Python keeps a text in some hundred bytes."""
        return BYTES_OF_PIECE * (self._num_known + len(self.tokens))

    def ids_of(self, tokens: Sequence[str]) -> NDArray[np.int32]:
        """Return the ids of tokens, new ones the next; shape ``(n,)``."""
        return np.array([self._id_of(each) for each in tokens], np.int32)

    def add(self, texts: pa.Array) -> Occurrences:
        """Return the tokens of texts; their ids say which of `tokens` they are.

        Parameters
        ----------
        texts
            Of type ``string``, ``large_string``, ``string_view`` or JSON, which is taken as text.
            A null has no tokens.
        """
        texts = texts.storage if isinstance(texts, pa.ExtensionArray) else texts
        rows = np.flatnonzero(texts.is_valid().to_numpy(zero_copy_only=False)).astype(np.int32)
        wide = texts.cast(pa.large_string()).drop_null()
        _, stored, data = wide.buffers()
        offsets = np.frombuffer(stored, np.int64)[wide.offset : wide.offset + len(wide) + 1]
        base = 0 if data is None else data.address
        pieces = self._find(base, offsets.copy())  # kernels take writable arrays only
        numbers = self._numbers(base, pieces)
        found = self._of_pieces.occurrences(pieces, numbers)
        return Occurrences(rows[found.texts], found.token_ids, found.positions)

    def _find(self, base: int, offsets: NDArray[np.int64]) -> Pieces:
        parameters, classes = self._tokenizer.parameters, self._tokenizer.classes
        limit = parameters.max_token_length
        most_bytes = _NO_LIMIT if limit is None or self._tokenizer.has_parts else limit
        if parameters.base_tokenizer == "raw":
            return _whole_texts(offsets, most_bytes)
        if classes is not None:
            return _all(lambda room: find_runs(base, offsets, classes, most_bytes, room))
        least, most = parameters.min_ngram_length, parameters.max_ngram_length
        is_prefix = parameters.prefix_only
        return _all(
            lambda room: find_ngrams(base, offsets, least, most, is_prefix, most_bytes, room)
        )

    def _numbers(self, base: int, pieces: Pieces) -> NDArray[np.int32]:
        """Return the number of each piece, after the tokens of new ones are known."""
        numbers = np.empty(len(pieces.texts), np.int32)
        before = self._num_known
        self._known, self._num_known = number_pieces(
            base, pieces.starts, pieces.sizes, self._known, before, numbers
        )
        if self._num_known > before:
            self._of_pieces = self._of_pieces.extended(self._tokens_from(before))
        return numbers

    def _tokens_from(self, before: int) -> PieceTokens:
        """Make tokens of the pieces that were numbered last."""
        starts = self._known.ends[before : self._num_known + 1]
        data = self._known.data[starts[0] : starts[-1]].tobytes()
        places = (starts - starts[0]).tolist()
        found = [
            self._tokenizer.tokens_of_piece(data[start:stop].decode("utf-8", "replace"))
            for start, stop in pairwise(places)
        ]
        ids = [self._id_of(token.text) for tokens, _ in found for token in tokens]
        return piece_tokens(found, ids)

    def _id_of(self, text: str) -> int:
        token_id = self._ids.setdefault(text, len(self.tokens))
        if token_id == len(self.tokens):
            self.tokens.append(text)
        return token_id


def _all(find: Callable[[Pieces], int]) -> Pieces:
    """Call a kernel twice: how much room it needs, and with that room."""
    room = room_for(find(room_for(0)))
    find(room)
    return room


def _whole_texts(offsets: NDArray[np.int64], most_bytes: int) -> Pieces:
    """Return each text as a piece, an empty one too."""
    sizes = np.diff(offsets)
    (kept,) = np.nonzero(sizes < most_bytes)
    texts = kept.astype(np.int32)
    positions = np.zeros(len(kept), np.int32)
    return Pieces(texts, offsets[kept], sizes[kept].astype(np.int32), positions)
