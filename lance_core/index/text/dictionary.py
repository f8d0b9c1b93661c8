"""Token dictionaries: from tokens to their numbers in a partition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_core.errors import CorruptFileError, InvalidRequestError
from lance_core.index.text.byte_keys import bytes_of
from lance_core.index.text.fst_write import fst_bytes
from lance_core.kernels.text_fst import (
    DAMAGED,
    FOOTER_BYTES,
    HEADER_BYTES,
    NOT_FOUND,
    find_keys,
)
from lance_core.kernels.text_fst_fuzzy import find_near_keys
from lance_core.kernels.text_fst_walk import DEEPER, DONE, STEP_FIELDS, start_walk, walk_keys

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

_VERSION = 3
_MAP = 0
_CHAR_BYTES = 4
_MOST_STEPS = 1 << 26
"""Nodes that a search for near tokens enters at most; dictionaries of words need far fewer."""

_LONGEST_NEAR = 1024
_KEYS_AT_ONCE = 1 << 16
_BYTES_AT_ONCE = 1 << 20
_STEPS_AT_ONCE = 1 << 20
_DEPTH = 64


@dataclass(frozen=True, slots=True, eq=False)
class TokenDictionary:
    """The tokens of one partition, as the bytes of an FST.

    Parameters
    ----------
    fst
        The bytes, checked no further than their ends: look-ups check what they meet.
    root
        Address of the root.
    num_tokens
        Numbers of tokens are less than this.
    path
        The file that they came from, for errors.
    """

    fst: NDArray[np.uint8]
    root: int
    num_tokens: int
    path: str

    @classmethod
    def of_fst(cls, fst: pa.Buffer, num_tokens: int, path: str) -> TokenDictionary:
        """Take the bytes of an FST, which are copied.

        Raises
        ------
        CorruptFileError
            They are too short, of another version, or say that there are more keys than numbers.
        """
        view = np.frombuffer(fst, np.uint8).copy()
        if len(view) < HEADER_BYTES + FOOTER_BYTES:
            raise CorruptFileError(path, f"the token dictionary has {len(view)} bytes")
        version, kind = view[:HEADER_BYTES].view("<u8").tolist()
        footer = len(view) - FOOTER_BYTES
        num_keys, root = view[footer : footer + HEADER_BYTES].copy().view("<u8").tolist()
        if (version, kind) != (_VERSION, _MAP) or num_keys > num_tokens or root >= footer:
            raise CorruptFileError(
                path,
                f"the token dictionary has version {version}, type {kind}, {num_keys} keys for"
                f" {num_tokens} tokens, and its root at {root}",
            )
        return cls(view, root, num_tokens, path)

    @classmethod
    def of_table(
        cls, tokens: pa.Array, numbers: pa.Array, num_tokens: int, path: str
    ) -> TokenDictionary:
        """Take tokens and their numbers, in any order, as releases before 1.0 stored them.

        Raises
        ------
        CorruptFileError
            One is null, or a token occurs twice.
        """
        if tokens.null_count + numbers.null_count > 0:
            raise CorruptFileError(path, "a token or its number is null")
        keys = tokens.cast(pa.large_binary())
        order = pc.sort_indices(keys)
        try:
            fst = fst_bytes(keys.take(order), numbers.take(order).to_numpy().astype(np.int64))
        except InvalidRequestError as error:
            raise CorruptFileError(path, "a token occurs twice") from error
        return cls.of_fst(pa.py_buffer(fst), num_tokens, path)

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return int(self.fst.nbytes)

    def find(self, tokens: Sequence[str]) -> NDArray[np.int64]:
        """Return the number of each token, shape ``(n,)``; -1 for those that are not there.

        Raises
        ------
        CorruptFileError
            The FST is damaged.
        """
        keys, offsets = bytes_of(tokens)
        found = np.empty(len(tokens), np.int64)
        find_keys(self.fst, self.root, keys, offsets, found)
        self._check(found)
        return found

    def near(
        self, token: str, distance: int, *, num_fixed: int, most: int
    ) -> tuple[list[str], NDArray[np.int64]]:
        """Return the first tokens, in the order of their bytes, that are nearly the same.

        Parameters
        ----------
        token
            The token.
        distance
            Characters that are inserted, left out or replaced at most.
        num_fixed
            Characters at the beginning that must be the same; all where the token has fewer.
        most
            How many are returned at most.

        Returns
        -------
        tuple[list[str], NDArray[np.int64]]
            The tokens and their numbers.

        Raises
        ------
        InvalidRequestError
            The token or the distance is too long to compare in reasonable time.
        CorruptFileError
            The FST is damaged.
        """
        if len(token) + distance > _LONGEST_NEAR:
            raise InvalidRequestError(
                f"tokens near one of {len(token)} characters at a distance of {distance}: both"
                f" together are {_LONGEST_NEAR} at most"
            )
        text = np.array([ord(char) for char in token], np.int64)
        longest = _CHAR_BYTES * (len(text) + distance + 1)
        wanted = min(most, self.num_tokens)
        out = np.zeros((wanted, longest), np.uint8)
        lengths, numbers = np.zeros(wanted, np.int64), np.zeros(wanted, np.int64)
        fixed = min(num_fixed, len(text))
        found = find_near_keys(
            self.fst, self.root, text, fixed, distance, _MOST_STEPS, out, lengths, numbers
        )
        if found == DAMAGED:
            raise self._damaged()
        self._check(numbers[:found])
        texts = [self._text(out[at, : lengths[at]].tobytes()) for at in range(found)]
        return texts, numbers[:found]

    def items(self) -> Iterator[tuple[pa.LargeStringArray, NDArray[np.int64]]]:
        """Yield all tokens in the order of their bytes, with their numbers, many at a time.

        An array may be empty. Raises ``CorruptFileError`` if the FST is damaged.
        """
        stack = np.zeros((_DEPTH, STEP_FIELDS), np.int64)
        key = np.zeros(_DEPTH, np.uint8)
        if not start_walk(self.fst, self.root, stack):
            raise self._damaged()
        state, depth, told = DEEPER, 1, 0
        while state != DONE:
            out = np.empty(_BYTES_AT_ONCE + len(key), np.uint8)
            ends, numbers = np.empty(_KEYS_AT_ONCE, np.int64), np.empty(_KEYS_AT_ONCE, np.int64)
            state, depth, count = walk_keys(
                self.fst, stack, depth, key, _STEPS_AT_ONCE, out, ends, numbers
            )
            told += count
            if state == DAMAGED or told > self.num_tokens:
                raise self._damaged()
            self._check(numbers[:count])
            yield self._texts(out, ends[:count]), numbers[:count]
            if state == DEEPER:
                stack, key = np.concatenate([stack, np.zeros_like(stack)]), np.tile(key, 2)

    def _texts(self, out: NDArray[np.uint8], ends: NDArray[np.int64]) -> pa.LargeStringArray:
        offsets = np.append(0, ends)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(out[: offsets[-1]].copy())]
        keys = pa.Array.from_buffers(pa.large_string(), len(ends), buffers)
        try:
            keys.validate(full=True)
        except pa.ArrowInvalid as error:
            raise CorruptFileError(self.path, "a token is no UTF-8") from error
        return keys

    def _text(self, key: bytes) -> str:
        try:
            return key.decode()
        except UnicodeDecodeError as error:
            raise CorruptFileError(self.path, "a token is no UTF-8") from error

    def _check(self, numbers: NDArray[np.int64]) -> None:
        if len(numbers) > 0 and (numbers.min() < NOT_FOUND or numbers.max() >= self.num_tokens):
            raise self._damaged()

    def _damaged(self) -> CorruptFileError:
        return CorruptFileError(self.path, "the token dictionary is damaged")
